"""Annotations of published data (labelled spans, tags, categories, words of treebanks) as docs."""

from itertools import accumulate, groupby
from operator import attrgetter
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc, Span

# Start and end, tokens of a doc, the end not included.
Place = Tuple[int, int]

_STARTS, _ENDS = "BSU", "ESLU"
_PREFIXES = {*"BIOESLU"}
# Brackets and marks as the Penn Treebank and OntoNotes write them.
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_ESCAPED = {**_BRACKETS, "/.": ".", "/?": "?", "/-": "-"}


class LabelledSpan(NamedTuple):
    """Tokens, the end not included."""

    start: int
    end: int
    label: str


def read_tags(tags: Sequence[str]) -> List[LabelledSpan]:
    """Read tags in IOB1, IOB2, IOBES or BILUO: "B-PER", "I-PER", "O". A span begins wherever the
    label changes, so that the schemes need not be distinguished."""
    spans: List[LabelledSpan] = []
    opened: Optional[Tuple[int, str]] = None
    for i, (prefix, label) in enumerate([*map(_split, tags), ("O", "")]):
        is_new = prefix == "O" or prefix in _STARTS or (opened and opened[1] != label)
        if opened and is_new:
            spans.append(LabelledSpan(opened[0], i, opened[1]))
            opened = None
        if prefix != "O" and opened is None:
            opened = i, label
        if opened and prefix in _ENDS:
            spans.append(LabelledSpan(opened[0], i + 1, opened[1]))
            opened = None
    return spans


def _split(tag: str) -> Tuple[str, str]:
    prefix, _, label = tag.partition("-")
    if prefix not in _PREFIXES or (prefix == "O") == bool(label):
        raise ValueError(f"'{tag}' is not a tag such as O, B-PER or I-PER")
    return prefix, label


def make_spans(doc: Doc, spans: Sequence[LabelledSpan], offset: int = 0) -> List[Span]:
    """Make spaCy's spans. offset (int): the token of the doc that they count from."""
    return [Span(doc, offset + start, offset + end, label=label) for start, end, label in spans]


def make_doc(nlp: Language, sentences: Sequence[Sequence[str]], **annotations: Any) -> Doc:
    """Make a Doc with sentence starts from the words of each sentence."""
    words = [word for sentence in sentences for word in sentence]
    starts: Any = [i == 0 for sentence in sentences for i in range(len(sentence))]
    return Doc(nlp.vocab, words=words, sent_starts=starts, **annotations)


def make_docs(
    nlp: Language, sentences: Iterable[Any], joined: bool
) -> Iterator[Tuple[Doc, List[Tuple[int, Any]]]]:
    """Make a Doc of each sentence, which has `words` and a `document`, or of each document if
    `joined`. Yields also the first token of each sentence, and the sentence."""
    groups: Iterable[Iterable[Any]] = ([sentence] for sentence in sentences)
    if joined:
        groups = (group for _, group in groupby(sentences, key=attrgetter("document")))
    for group in map(list, groups):
        starts = accumulate((len(sentence.words) for sentence in group), initial=0)
        doc = make_doc(nlp, [sentence.words for sentence in group])
        yield doc, list(zip(starts, group))


def make_cats(labels: Sequence[str], chosen: str) -> Dict[str, float]:
    """Make `doc.cats`: 1.0 for the chosen label, 0.0 for the others."""
    return {label: float(label == chosen) for label in labels}


def unescape(word: str) -> str:
    r"""Restore a word of a treebank: "-LRB-" is "(", "1\/2" is "1/2", OntoNotes's "/." is "."."""
    return _ESCAPED.get(word) or word.replace(r"\/", "/").replace(r"\*", "*")


def find_places(doc: Doc) -> List[int]:
    """Where each token begins, and the end of the last one, in characters without whitespace: these
    agree in docs of the same text whatever the tokenizer and the spaces."""
    return [*accumulate((len("".join(token.text.split())) for token in doc), initial=0)]
