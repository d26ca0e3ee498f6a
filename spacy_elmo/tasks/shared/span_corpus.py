"""`SpanCorpus.v1`: a corpus whose docs to be predicted have some of the gold spans.

spaCy's own reader makes the docs to be predicted from the text alone. What a component is given
(the two texts of a pair, the predicates to be labelled) is missing there. Where it cuts docs into
sentences, for `gold_preproc` and `max_length`, it loses all their spans; here they stay whole.
"""

from pathlib import Path
from typing import Callable, Iterable, Iterator, List, Optional

from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.training.corpus import create_docbin_reader

from ...errors import Errors
from ...utils import kept_hooks

Reader = Callable[[Language], Iterable[Example]]
Augmenter = Callable[[Language, Example], Iterator[Example]]


class SpanCorpus:
    """See `build_span_corpus_v1`. An object, so that it can be pickled."""

    def __init__(
        self,
        read: Reader,
        groups: List[str],
        sentences: bool,
        gold_preproc: bool = False,
        max_length: int = 0,
    ) -> None:
        self.read = read
        self.groups = groups
        self.sentences = sentences
        self.gold_preproc = gold_preproc
        self.max_length = max_length

    def __call__(self, nlp: Language) -> Iterable[Example]:
        """nlp (Language): its tokenizer is used. YIELDS (Example): with the spans. RAISES
        (ValueError): EL196 if the tokens of a span are others in the doc to be predicted."""
        for example in self.read(nlp):
            # As many as spaCy's reader keeps.
            if self.max_length and len(example.reference) >= self.max_length:
                continue
            if self.gold_preproc:
                example = Example(copy_words(example.reference), example.reference)
            for group in self.groups:
                copy_spans(example, group)
            if self.sentences:
                copy_sentences(example)
            yield example


class DocBinReader:
    """Read docs as spacy.Corpus.v1 does, fast where they have span groups, which stay whole. An
    object, so that it can be pickled.

    path (Optional[Path]): a .spacy file or a folder of them. limit (int), augmenter
        (Optional[Augmenter]): see spacy.Corpus.v1.
    """

    def __init__(self, path: Optional[Path], limit: int, augmenter: Optional[Augmenter]) -> None:
        kept = KeptSpans(augmenter) if augmenter else None
        self.read = create_docbin_reader(path, False, 0, limit, kept)

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """nlp (Language): its tokenizer is used. YIELDS (Example): of each doc."""
        with kept_hooks():
            yield from self.read(nlp)


class KeptSpans:
    """An augmenter whose docs keep the span groups with all that they say. spaCy's carry them as
    characters, which are those of other words where a word got longer, and lose their attributes.

    augment (Augmenter): any that keeps the tokens.
    """

    def __init__(self, augment: Augmenter) -> None:
        self.augment = augment

    def __call__(self, nlp: Language, example: Example) -> Iterator[Example]:
        """nlp (Language): the pipeline. example (Example): of the corpus. YIELDS (Example): what
        is made of it. RAISES (ValueError): EL320 if that has another number of tokens."""
        doc = example.reference
        groups = {name: (group.attrs, list(group)) for name, group in doc.spans.items()}
        for name in groups:
            del doc.spans[name]
        made = list(self.augment(nlp, example))
        for each in [example, *(other for other in made if other.reference is not doc)]:
            if len(each.reference) != len(doc):
                found = len(each.reference)
                text = Errors.EL320.format(text=doc.text[:50], n=len(doc), found=found)
                raise ValueError(text)
            for name, (attrs, spans) in groups.items():
                moved = [_move(span, each.reference) for span in spans]
                each.reference.spans[name] = SpanGroup(
                    each.reference, name=name, attrs=attrs, spans=moved
                )
        yield from made


def _move(span: Span, doc: Doc) -> Span:
    """RETURNS (Span): the same of a doc with the same tokens."""
    start, end = span.start, span.end
    return Span(doc, start, end, label=span.label, kb_id=span.kb_id, span_id=span.id)


def copy_words(doc: Doc) -> Doc:
    """doc (Doc): any doc. RETURNS (Doc): Its words, and nothing else of it."""
    words, spaces = [t.text for t in doc], [bool(t.whitespace_) for t in doc]
    return Doc(doc.vocab, words=words, spaces=spaces)


def copy_spans(example: Example, group: str) -> None:
    """Give the predicted doc a span group of the reference, if that has it.

    example (Example): changed in place.
    group (str): name of the group.
    RAISES (ValueError): EL196 if its spans begin or end inside of tokens.
    """
    reference, predicted = example.reference, example.predicted
    if group not in reference.spans:
        return
    spans = []
    # Files of before have spans without tokens, which spaCy cannot copy.
    for span in filter(len, reference.spans[group]):
        copied = predicted.char_span(span.start_char, span.end_char, label=span.label_)
        if copied is None:
            raise ValueError(Errors.EL196.format(group=group, span=span.text[:50]))
        spans.append(copied)
    predicted.spans[group] = spans


def copy_sentences(example: Example) -> None:
    """Give the predicted doc the sentence starts of the reference, if that has any.

    example (Example): changed in place.
    """
    if example.reference.has_annotation("SENT_START"):
        for token, start in zip(example.predicted, example.get_aligned_sent_starts()):
            token.is_sent_start = start == 1


def build_span_corpus_v1(
    path: Optional[Path],
    groups: List[str],
    sentences: bool = False,
    gold_preproc: bool = False,
    max_length: int = 0,
    limit: int = 0,
    augmenter: Optional[Augmenter] = None,
) -> SpanCorpus:
    """Read a corpus as spacy.Corpus.v1 does, and give some of the gold spans to the component.

    path (Optional[Path]): a .spacy file or a folder of them.
    groups (List[str]): span groups that the docs to be predicted get.
    sentences (bool): whether they get the sentence starts, too.
    gold_preproc (bool): the docs to be predicted have the words of the data, not the tokenizer's.
        They are not cut into sentences.
    max_length (int): docs of so many tokens or more are left out; 0 for no limit.
    limit, augmenter: see spacy.Corpus.v1.
    RETURNS (SpanCorpus): nlp -> examples.
    """
    read = DocBinReader(path, limit, augmenter)
    return SpanCorpus(read, list(groups), sentences, gold_preproc, max_length)
