"""Named entities in columns: CoNLL-2003 and files of the same format, and LitBank's nested ones.
Spans and classes in the JSONL of annotation tools."""

from itertools import chain, islice
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import filter_spans

from ..files import parse_json_object
from ..text.formats import Line, line_error, read_blocks, read_lines, split_cells
from ..utils import require_known
from .shared.annotations import LabelledSpan, make_docs, make_spans, read_tags

_DOC_START = "-DOCSTART-"
# Sentences that show what the first column is.
_N_FIRST = 3
# Keys of spans and classes. Size of a group of annotated texts, whose last one is for dev.
_MARKS, _N_GROUP = ("spans", "entities", "labels", "label"), 5


class ColumnSentence(NamedTuple):
    words: List[str]
    # Spans of each column of tags.
    layers: List[List[LabelledSpan]]
    # Number of the document.
    document: int


class AnnotatedText(NamedTuple):
    line: int
    text: str
    # First character, character behind the last, label.
    spans: List[Tuple[int, int, str]]
    # Value of each class that is named.
    cats: Dict[str, float]
    # Whether the other classes are unknown.
    is_alone: bool


def read_conll2003(nlp: Language, path: Path, *, joined: bool = False) -> Iterator[Doc]:
    """Read entities in columns: the word first, its tag (IOB1, IOB2, IOBES or BILUO) last, with
    spaces or tabs between. Documents begin with -DOCSTART- or `# newdoc`.

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    joined (bool): make a Doc of each document, not of each sentence, so that windows of the biLM
        reach across sentences. A file without documents becomes one Doc.
    YIELDS (Doc): with `ents` and sentence starts.
    RAISES (ValueError): EL197 for a line of another format, or if the first column counts the words
        of each sentence, as in Universal NER's files.
    """
    sentences = _read_sentences(path, last_only=True)
    first = list(islice(sentences, _N_FIRST))
    counted = [[str(i + 1) for i in range(len(sentence.words))] for sentence in first]
    if any(len(each) > 1 for each in counted) and [s.words for s in first] == counted:
        raise line_error(path, 1, "the first column counts the words, which should stand there")
    for doc, group in make_docs(nlp, chain(first, sentences), joined):
        spans = [span for start, s in group for span in make_spans(doc, s.layers[0], start)]
        doc.ents = tuple(spans)
        yield doc


def read_litbank_entities(
    nlp: Language, path: Path, *, joined: bool = False, key: str = "sc"
) -> Iterator[Doc]:
    """Read nested entities: the word first, then layers of tags, tabs between. Documents begin
    with a line such as `# 1206_the_flying_u_ranch_brat.tsv`.

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    joined (bool): make a Doc of each document, not of each sentence.
    key (str): name of the span group, the `spans_key` of `spancat`.
    YIELDS (Doc): with all layers in one span group, and sentence starts.
    """
    for doc, group in make_docs(nlp, _read_sentences(path, last_only=False), joined):
        layers = [(i, start, spans) for start, s in group for i, spans in enumerate(s.layers)]
        # Layer after layer.
        ordered = sorted(layers, key=lambda layer: layer[0])
        doc.spans[key] = [s for _, start, spans in ordered for s in make_spans(doc, spans, start)]
        yield doc


def read_annotations(
    nlp: Language, path: Path, *, part: str = "all", key: str = ""
) -> Iterator[Doc]:
    """Read the JSONL that annotation tools export (Prodigy, doccano and others): an object in each
    line, with "text". Spans are in "spans", "entities", "labels" or "label", as {"start", "end",
    "label"} or [start, end, label], in characters; classes in "accept", "cats", or names in "label"
    or "labels". Records whose "answer" is not "accept" are left out.

    nlp (Language): its tokenizer makes the tokens. A span that ends inside of one takes all of it.
    path (Path): plain or compressed.
    part (str): "train" for all but every fifth record, "dev" for these, "all" for both.
    key (str): name of the span group to make, the `spans_key` of `spancat`; without it, spans are
        entities, which do not overlap.
    YIELDS (Doc): with `ents` or a span group, and `cats` if there are classes.
    RAISES (ValueError): EL197 for a line of another format, or entities that overlap; EL012 for
        another part.
    """
    require_known("part", part, ("all", "train", "dev"))
    records = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = _parse_record(number, parse_json_object(line.encode("utf-8")))
        except (AttributeError, KeyError, TypeError, ValueError) as err:
            raise line_error(path, number, f"this is no annotated text ({err!r})") from err
        if record is not None:
            records.append(record)
    names = {name for record in records for name in record.cats}
    for i, record in enumerate(records):
        if part != "all" and (part == "dev") != (i % _N_GROUP == _N_GROUP - 1):
            continue
        doc = nlp.make_doc(record.text)
        found = [
            doc.char_span(start, end, label, alignment_mode="expand")
            for start, end, label in record.spans
        ]
        spans = [span for span in found if span is not None]
        if len(spans) < len(found):
            raise line_error(path, record.line, "a span is empty or ends outside of the text")
        if key:
            doc.spans[key] = spans
        elif len(filter_spans(spans)) == len(spans):
            doc.ents = tuple(spans)
        else:
            advice = "entities overlap: add `--key sc`, and train a spancat"
            raise line_error(path, record.line, advice)
        if record.cats:
            others = () if record.is_alone else names
            doc.cats = {**dict.fromkeys(others, 0.0), **record.cats}
        yield doc


def _parse_record(line: int, record: Dict[str, Any]) -> Optional[AnnotatedText]:
    """None for a record that was refused or ignored."""
    text, is_accepted = record["text"], record.get("answer", "accept") == "accept"
    marks: Any = next((record[key] for key in _MARKS if key in record), [])
    if isinstance(marks, str):
        # A question for one class, whose answer says nothing of the others.
        return AnnotatedText(line, text, [], {marks: float(is_accepted)}, is_alone=True)
    if not is_accepted:
        return None
    cats = dict(record.get("cats", {}))
    cats.update(dict.fromkeys(record.get("accept", ()), 1.0))
    spans = []
    for mark in marks:
        if isinstance(mark, str):
            cats[mark] = 1.0
        else:
            keys = ("start", "end", "label") if isinstance(mark, dict) else (0, 1, 2)
            start, end, label = (mark[key] for key in keys)
            spans.append((int(start), int(end), str(label)))
    return AnnotatedText(line, text, spans, cats, is_alone=False)


def _read_sentences(path: Path, *, last_only: bool) -> Iterator[ColumnSentence]:
    document = 0
    for block in read_blocks(path):
        has_tabs = any("\t" in text for _, text in block)
        lines = []
        for line in block:
            if not _is_mark(line[1], has_tabs):
                lines.append(line)
            # LitBank's comments have the document's name alone.
            elif line[1].startswith((_DOC_START, "# newdoc")) or not (
                last_only or line[1].startswith("# sent_id")
            ):
                document += 1
        if lines:
            yield _parse(path, lines, last_only, document)


def _is_mark(text: str, has_tabs: bool) -> bool:
    if text.split()[:1] == [_DOC_START]:
        return True
    if not text.startswith("# ") or "\t" in text or has_tabs:
        return text.startswith("# ") and "\t" not in text
    # "#" is a word of some corpora, with a tag last: a comment's last word is not a tag.
    try:
        read_tags(text.split()[-1:])
    except ValueError:
        return True
    return False


def _parse(path: Path, lines: List[Line], last_only: bool, document: int) -> ColumnSentence:
    rows = []
    for number, text in lines:
        cells = split_cells(text)
        if len(cells) < 2 or not cells[0]:
            missing = "tag" if len(cells) < 2 else "word"
            raise line_error(path, number, f"'{text[:50]}' has no {missing}")
        rows.append([cells[0], cells[-1]] if last_only else cells)
        if len(rows[-1]) != len(rows[0]):
            raise line_error(path, number, f"columns: {len(cells)}, before it: {len(rows[0])}")
    columns = list(zip(*rows))
    try:
        layers = [read_tags(tags) for tags in columns[1:]]
    except ValueError as err:
        raise line_error(path, lines[0][0], f"in the sentence from there on, {err}") from err
    return ColumnSentence(list(columns[0]), layers, document)
