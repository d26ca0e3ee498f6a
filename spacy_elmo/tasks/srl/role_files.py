"""Semantic roles in columns: PropBank over the English Web Treebank, CoNLL-2005 and CoNLL-2012."""

from itertools import groupby
from pathlib import Path
from typing import Callable, Iterable, Iterator, List, NamedTuple, Sequence, Tuple, Union

from spacy.language import Language
from spacy.tokens import Doc

from ...text.formats import Line, line_error, read_blocks, split_spaces
from ..shared.bio_tags import LabelledSpan, make_spans
from ..shared.penn_words import unescape
from ..shared.sentence_docs import make_doc
from .frames import VERB, Frame, write_frames
from .role_columns import is_bracket, read_brackets

Cells = List[str]


class RoleSentence(NamedTuple):
    """document (str): which one it is of. words (List[str]). frames (List[List[LabelledSpan]]): of
    each predicate, itself and its arguments."""

    document: str
    words: List[str]
    frames: List[List[LabelledSpan]]


# The cells of a sentence -> its words, and a column for each predicate.
Parse = Callable[[List[Cells]], Tuple[Sequence[str], Sequence[Sequence[str]]]]


def read_propbank_spans(nlp: Language, path: Path, *, joined: bool = False) -> Iterator[Doc]:
    """Read columns with tabs between: index, word, two parts of speech, frame file, roleset, and a
    column for each predicate. Sentences begin with a line such as `# sent_id = DOCUMENT-0001`.

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    joined (bool): a Doc for each document, not for each sentence: windows of the biLM then reach
        across sentences.
    YIELDS (Doc): with frames and sentence starts.
    RAISES (ValueError): EL197 for a line that is none of these.
    """
    return _make_docs(nlp, _read_sentences(path, _parse_propbank, "\t"), joined)


def read_conll2005(nlp: Language, path: Path) -> Iterator[Doc]:
    """Read the columns of CoNLL-2005 (and 2004), the files of a split pasted together: the word
    first, the predicates ("-" for other tokens) and a column for each of them last. What is between
    is not read. Words are unescaped: "-LRB-" is "(".

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    YIELDS (Doc): a sentence, with frames.
    RAISES (ValueError): EL197 for a line that is none of these.
    """
    return _make_docs(nlp, _read_sentences(path, _parse_conll2005, None), False)


def read_conll2012(nlp: Language, path: Path, *, joined: bool = False) -> Iterator[Doc]:
    """Read the columns of CoNLL-2012 (OntoNotes 5, files `*.v4_gold_conll`). Words are unescaped:
    "-LRB-" is "(".

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    joined (bool): a Doc for each part of a document, not for each sentence.
    YIELDS (Doc): with frames and sentence starts.
    RAISES (ValueError): EL197 for a line that is none of these.
    """
    return _make_docs(nlp, _read_sentences(path, _parse_conll2012, None), joined)


def _parse_propbank(rows: List[Cells]) -> Tuple[Sequence[str], Sequence[Sequence[str]]]:
    _require_columns(rows, 6)
    columns = list(zip(*rows))
    return columns[1], columns[6:]


def _parse_conll2005(rows: List[Cells]) -> Tuple[Sequence[str], Sequence[Sequence[str]]]:
    _require_columns(rows, 2)
    columns = list(zip(*rows))
    # From the right: a predicate's column has more cells than there are columns behind it.
    for i in reversed(range(1, len(columns))):
        n_predicates = sum(cell != "-" for cell in columns[i])
        last = columns[i + 1 :]
        if n_predicates == len(last) and all(is_bracket(cell) for each in last for cell in each):
            return [*map(unescape, columns[0])], last
    raise ValueError("there is no column of predicates with as many columns of brackets behind it")


def _parse_conll2012(rows: List[Cells]) -> Tuple[Sequence[str], Sequence[Sequence[str]]]:
    _require_columns(rows, 12)
    columns = list(zip(*rows))
    return [*map(unescape, columns[3])], columns[11:-1]


def _require_columns(rows: List[Cells], least: int) -> None:
    for row in rows:
        if len(row) < least:
            raise ValueError(f"columns of '{' '.join(row)[:50]}': {len(row)}, expected {least}")
        if len(row) != len(rows[0]):
            raise ValueError(f"columns: {len(row)}, before it: {len(rows[0])}")


def _read_sentences(
    path: Path, parse: Parse, separator: Union[str, None]
) -> Iterator[RoleSentence]:
    document = ""
    for block in read_blocks(path):
        lines = []
        for line in block:
            if _is_comment(line[1]):
                document = _find_document(line[1], document)
            else:
                lines.append(line)
        if lines:
            yield _make_sentence(path, lines, document, parse, separator)


def _is_comment(text: str) -> bool:
    # "#" is a word, too, which has columns behind it.
    return text.startswith("#") and (text[1:].split() or ["begin"])[0] in (
        "begin",
        "end",
        "sent_id",
    )


def _find_document(text: str, before: str) -> str:
    if "sent_id" in text:
        return text.partition("=")[2].strip().rpartition("-")[0]
    return text if text.startswith("#begin") else before


def _make_sentence(
    path: Path, lines: List[Line], document: str, parse: Parse, separator: Union[str, None]
) -> RoleSentence:
    try:
        words, columns = parse([_split(text, separator) for _, text in lines])
        if not all(words):
            raise ValueError("a word is empty")
        return RoleSentence(document, list(words), [read_brackets(column) for column in columns])
    except ValueError as err:
        raise line_error(path, lines[0][0], f"in the sentence from there on, {err}") from err


def _split(text: str, separator: Union[str, None]) -> List[str]:
    return split_spaces(text) if separator is None else text.strip("\n").split(separator)


def _make_docs(nlp: Language, sentences: Iterable[RoleSentence], joined: bool) -> Iterator[Doc]:
    if not joined:
        yield from (_make_frames_doc(nlp, [sentence]) for sentence in sentences)
        return
    for _, group in groupby(sentences, key=_get_document):
        yield _make_frames_doc(nlp, list(group))


def _get_document(sentence: RoleSentence) -> str:
    return sentence.document


def _make_frames_doc(nlp: Language, sentences: List[RoleSentence]) -> Doc:
    doc = make_doc(nlp, [sentence.words for sentence in sentences])
    frames: List[Frame] = []
    offset = 0
    for sentence in sentences:
        frames += [_make_frame(doc, spans, offset) for spans in sentence.frames]
        offset += len(sentence.words)
    write_frames(doc, sorted(frames))
    return doc


def _make_frame(doc: Doc, labelled: List[LabelledSpan], offset: int) -> Frame:
    spans = make_spans(doc, labelled, offset)
    (predicate,) = (span for span in spans if span.label_ == VERB)
    return Frame(predicate, [(span.label_, span) for span in spans if span.label_ != VERB])
