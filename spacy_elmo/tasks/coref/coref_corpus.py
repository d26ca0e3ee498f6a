"""`CorefCorpus.v1`: whole documents with the words of the data.

spaCy's reader has the words of the data only where it cuts documents into sentences
(`gold_preproc`), and mentions of other words can neither be learned nor found.
"""

from pathlib import Path
from typing import Callable, Iterable, Optional

from spacy.language import Language
from spacy.training import Example

from ..shared.span_corpus import DocBinReader, Reader, copy_sentences, copy_words


class CorefCorpus:
    """See `build_coref_corpus_v1`. An object, so that it can be pickled."""

    def __init__(self, read: Reader, gold_tokens: bool, sentences: bool) -> None:
        self.read = read
        self.gold_tokens = gold_tokens
        self.sentences = sentences

    def __call__(self, nlp: Language) -> Iterable[Example]:
        """nlp (Language): its tokenizer is used without `gold_tokens`. YIELDS (Example): whole
        documents."""
        for example in self.read(nlp):
            if self.gold_tokens:
                example = Example(copy_words(example.reference), example.reference)
            if self.sentences:
                copy_sentences(example)
            yield example


def build_coref_corpus_v1(
    path: Optional[Path],
    gold_tokens: bool = True,
    sentences: bool = True,
    limit: int = 0,
    augmenter: Optional[Callable] = None,
) -> CorefCorpus:
    """Read a corpus as spacy.Corpus.v1 does, document by document.

    path (Optional[Path]): a .spacy file or a folder of them.
    gold_tokens (bool): the docs to be predicted have the words of the data, as in CoNLL-2012;
        false for those of the tokenizer.
    sentences (bool): they have its sentence starts, too. Mentions end where sentences do.
    limit, augmenter: see spacy.Corpus.v1.
    RETURNS (CorefCorpus): nlp -> examples.
    """
    return CorefCorpus(DocBinReader(path, limit, augmenter), gold_tokens, sentences)
