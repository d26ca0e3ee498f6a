"""Semantic roles in columns: PropBank over the English Web Treebank, CoNLL-2005 and CoNLL-2012."""

import re
from pathlib import Path
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ...text.formats import line_error, read_blocks, split_spaces
from ..shared.annotations import LabelledSpan, make_docs, make_spans, unescape
from .frames import VERB, Frame, write_frames

Cells = List[str]
Columns = Tuple[Sequence[str], Sequence[Sequence[str]]]
# The cells of a sentence -> its words, and a column for each predicate.
Parse = Callable[[List[Cells]], Columns]
# "(A1*", "*", "*)", "(V*)", and "*A1)" as of 2004.
_CELL = re.compile(r"((?:\([^()*\s]+)*)\*((?:[^()*\s]*\))*)")


class RoleSentence(NamedTuple):
    document: str
    words: List[str]
    # For each predicate, itself and its arguments.
    frames: List[List[LabelledSpan]]


def read_propbank_spans(nlp: Language, path: Path, *, joined: bool = False) -> Iterator[Doc]:
    """Read columns with tabs between: index, word, two parts of speech, frame file, roleset, and a
    column for each predicate. Sentences begin with a line such as `# sent_id = DOCUMENT-0001`.

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    joined (bool): make a Doc of each document, not of each sentence, so that windows of the biLM
        reach across sentences.
    YIELDS (Doc): with frames and sentence starts.
    """
    return _make_docs(nlp, _read_sentences(path, _parse_propbank, "\t"), joined)


def read_conll2005(nlp: Language, path: Path) -> Iterator[Doc]:
    """Read the columns of CoNLL-2005 (and 2004), the files of a split pasted together: the word
    first, the predicates ("-" for other tokens) and a column for each of them last. Columns between
    are not read. Words are unescaped: "-LRB-" is "(".

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    YIELDS (Doc): a sentence, with frames.
    """
    return _make_docs(nlp, _read_sentences(path, _parse_conll2005, None), False)


def read_conll2012(nlp: Language, path: Path, *, joined: bool = False) -> Iterator[Doc]:
    """Read the columns of CoNLL-2012 (OntoNotes 5, files `*.v4_gold_conll`). Words are unescaped:
    "-LRB-" is "(".

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    joined (bool): make a Doc of each part of a document, not of each sentence.
    YIELDS (Doc): with frames and sentence starts.
    """
    return _make_docs(nlp, _read_sentences(path, _parse_conll2012, None), joined)


def _parse_propbank(rows: List[Cells]) -> Columns:
    columns = _get_columns(rows, 6)
    return columns[1], columns[6:]


def _parse_conll2005(rows: List[Cells]) -> Columns:
    columns = _get_columns(rows, 2)
    # From the right: a predicate's column has more cells than there are columns after it.
    for i in reversed(range(1, len(columns))):
        n_predicates = sum(cell != "-" for cell in columns[i])
        last = columns[i + 1 :]
        if n_predicates == len(last) and all(_CELL.fullmatch(c) for each in last for c in each):
            return [*map(unescape, columns[0])], last
    raise ValueError("no column of predicates is followed by as many columns of brackets")


def _parse_conll2012(rows: List[Cells]) -> Columns:
    columns = _get_columns(rows, 12)
    return [*map(unescape, columns[3])], columns[11:-1]


def _get_columns(rows: List[Cells], least: int) -> List[Tuple[str, ...]]:
    for row in rows:
        if len(row) < least:
            raise ValueError(f"columns of '{' '.join(row)[:50]}': {len(row)}, expected {least}")
        if len(row) != len(rows[0]):
            raise ValueError(f"columns: {len(row)}, before it: {len(rows[0])}")
    return list(zip(*rows))


def _read_sentences(path: Path, parse: Parse, separator: Optional[str]) -> Iterator[RoleSentence]:
    document = ""
    for block in read_blocks(path):
        lines = []
        for number, text in block:
            # "#" is a word, too, with columns after it.
            mark = (text[1:].split() or ["begin"])[0] if text.startswith("#") else ""
            if mark == "sent_id":
                document = text.partition("=")[2].strip().rpartition("-")[0]
            elif mark in ("begin", "end"):
                document = text if text.startswith("#begin") else document
            else:
                lines.append((number, text))
        if not lines:
            continue
        try:
            rows = [t.split(separator) if separator else split_spaces(t) for _, t in lines]
            words, columns = parse(rows)
            if not all(words):
                raise ValueError("a word is empty")
            frames = [read_brackets(column) for column in columns]
        except ValueError as err:
            raise line_error(path, lines[0][0], f"in the sentence from there on, {err}") from err
        yield RoleSentence(document, list(words), frames)


def read_brackets(cells: Sequence[str]) -> List[LabelledSpan]:
    """Read the column of a predicate, whose span is labelled "V"."""
    spans: List[LabelledSpan] = []
    opened: List[Tuple[int, str]] = []
    for i, cell in enumerate(cells):
        match = _CELL.fullmatch(cell)
        if match is None:
            raise ValueError(f"'{cell}' is not a cell such as (ARG1*, * or *)")
        opened += [(i, label) for label in match[1].split("(")[1:]]
        for _ in range(match[2].count(")")):
            if not opened:
                raise ValueError(f"'{cell}' closes a bracket that was not opened")
            start, label = opened.pop()
            spans.append(LabelledSpan(start, i + 1, label))
    if opened:
        raise ValueError(f"the bracket of {opened[0][1]} is never closed")
    if sum(span.label == VERB for span in spans) != 1:
        raise ValueError("a predicate's column needs exactly one (V*)")
    return sorted(spans)


def _make_docs(nlp: Language, sentences: Iterable[RoleSentence], joined: bool) -> Iterator[Doc]:
    for doc, group in make_docs(nlp, sentences, joined):
        frames: List[Frame] = []
        for start, sentence in group:
            for labelled in sentence.frames:
                spans = make_spans(doc, labelled, start)
                (predicate,) = (span for span in spans if span.label_ == VERB)
                arguments = [(span.label_, span) for span in spans if span.label_ != VERB]
                frames.append(Frame(predicate, arguments))
        write_frames(doc, sorted(frames))
        yield doc
