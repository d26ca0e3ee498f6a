"""Corpus readers that give components some of the gold annotation: spaCy's own makes the docs to be
predicted from the text alone, and loses spans where it cuts docs into sentences."""

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterable, Iterator, List, Optional

from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.training.corpus import create_docbin_reader

from ...errors import Errors
from ...utils import kept_hooks

Augmenter = Callable[[Language, Example], Iterator[Example]]


def build_span_corpus_v1(
    path: Optional[Path],
    groups: List[str],
    sentences: bool = False,
    gold_preproc: bool = False,
    max_length: int = 0,
    limit: int = 0,
    augmenter: Optional[Augmenter] = None,
) -> "SpanCorpus":
    """Read a corpus as spacy.Corpus.v1 does, and give some of the gold spans to the component.

    path (Optional[Path]): a .spacy file or a folder of them.
    groups (List[str]): span groups that the docs to be predicted get.
    sentences (bool): whether they get the sentence starts, too.
    gold_preproc (bool): the docs to be predicted have the words of the data, not the tokenizer's.
        They are not cut into sentences.
    max_length (int): docs of at least this many tokens are left out; 0 for no limit.
    limit, augmenter: see spacy.Corpus.v1.
    RETURNS (SpanCorpus): nlp -> examples.
    """
    read = create_docbin_reader(path, False, 0, limit, augmenter and KeptSpans(augmenter))
    return SpanCorpus(read, list(groups), sentences, gold_preproc, max_length)


def build_coref_corpus_v1(
    path: Optional[Path],
    gold_tokens: bool = True,
    sentences: bool = True,
    limit: int = 0,
    augmenter: Optional[Callable] = None,
) -> "SpanCorpus":
    """Read a corpus as spacy.Corpus.v1 does, document by document.

    path (Optional[Path]): a .spacy file or a folder of them.
    gold_tokens (bool): the docs to be predicted have the words of the data, as in CoNLL-2012;
        false for those of the tokenizer.
    sentences (bool): they have its sentence starts, too. Mentions end where sentences do.
    limit, augmenter: see spacy.Corpus.v1.
    RETURNS (SpanCorpus): nlp -> examples.
    """
    return build_span_corpus_v1(path, [], sentences, gold_tokens, 0, limit, augmenter)


@dataclass
class SpanCorpus:
    """See `build_span_corpus_v1`. Can be pickled."""

    read: Callable[[Language], Iterable[Example]]
    groups: List[str]
    sentences: bool
    gold_preproc: bool = False
    max_length: int = 0

    def __call__(self, nlp: Language) -> Iterable[Example]:
        with kept_hooks():
            for example in self.read(nlp):
                reference = example.reference
                # The limit of spaCy's reader.
                if self.max_length and len(reference) >= self.max_length:
                    continue
                if self.gold_preproc:
                    words, spaces = [t.text for t in reference], [t.whitespace_ for t in reference]
                    predicted = Doc(reference.vocab, words=words, spaces=list(map(bool, spaces)))
                    example = Example(predicted, reference)
                for group in self.groups:
                    copy_spans(example, group)
                if self.sentences and reference.has_annotation("SENT_START"):
                    for token, start in zip(example.predicted, example.get_aligned_sent_starts()):
                        token.is_sent_start = start == 1
                yield example


@dataclass
class KeptSpans:
    """An augmenter whose docs keep their span groups as tokens. spaCy's own carry them over as
    characters, which belong to other words where a word got longer, without their attributes."""

    augment: Augmenter

    def __call__(self, nlp: Language, example: Example) -> Iterator[Example]:
        doc = example.reference
        groups = {name: (group.attrs, list(group)) for name, group in doc.spans.items()}
        for name in groups:
            del doc.spans[name]
        made = list(self.augment(nlp, example))
        for each in [example, *(other for other in made if other.reference is not doc)]:
            if len(each.reference) != len(doc):
                problem = f"the augmenter makes {len(each.reference)} tokens of {len(doc)}"
                fix = "Use an augmenter that keeps the tokens, such as spacy.lower_case.v1"
                raise ValueError(Errors.EL196.format(text=doc.text[:50], problem=problem, fix=fix))
            for name, (attrs, spans) in groups.items():
                moved = [
                    Span(each.reference, s.start, s.end, s.label, kb_id=s.kb_id, span_id=s.id)
                    for s in spans
                ]
                group = SpanGroup(each.reference, name=name, attrs=attrs, spans=moved)
                each.reference.spans[name] = group
        yield from made


def copy_spans(example: Example, group: str) -> None:
    """Give the predicted doc a span group of the reference, if that has it."""
    reference, predicted = example.reference, example.predicted
    if group not in reference.spans:
        return
    spans = []
    for span in filter(len, reference.spans[group]):
        copied = predicted.char_span(span.start_char, span.end_char, label=span.label_)
        if copied is None:
            problem = f"'{span.text[:50]}' of '{group}' begins or ends inside of a token"
            fix = (
                "Convert the data with the tokenizer of the pipeline; or set `gold_preproc = true` "
                "in the block of spacy-elmo.SpanCorpus.v1, to read the words of the data"
            )
            text = reference.text[:50]
            raise ValueError(Errors.EL196.format(text=text, problem=problem, fix=fix))
        spans.append(copied)
    predicted.spans[group] = spans
