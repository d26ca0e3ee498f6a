"""Named entities in columns: CoNLL-2003 and what looks like it, and LitBank's nested ones."""

from itertools import chain, islice
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from spacy.language import Language
from spacy.tokens import Doc

from ...text.formats import Line, line_error, read_blocks, split_cells
from ..shared.bio_tags import LabelledSpan, make_spans, read_tags
from ..shared.sentence_docs import make_doc

_DOC_START = "-DOCSTART-"
# Sentences that show what the first column is.
_N_FIRST = 3


class ColumnSentence(NamedTuple):
    """words (List[str]). layers (List[List[LabelledSpan]]): spans of each column of tags.
    starts_doc (bool): whether it is the first one of a document."""

    words: List[str]
    layers: List[List[LabelledSpan]]
    starts_doc: bool


def read_conll2003(nlp: Language, path: Path, *, joined: bool = False) -> Iterator[Doc]:
    """Read entities in columns: the word first, its tag (IOB1, IOB2, IOBES or BILUO) last, with
    spaces or tabs between. Documents begin with -DOCSTART- or `# newdoc`.

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    joined (bool): a Doc for each document, not for each sentence: windows of the biLM then reach
        across sentences. Of a file without documents, one Doc in all.
    YIELDS (Doc): with `ents` and sentence starts.
    RAISES (ValueError): EL197 for a line that is none of these.
    """
    for sentences in _group(_require_words(path), joined):
        doc = make_doc(nlp, [sentence.words for sentence in sentences])
        doc.ents = tuple(_collect(doc, sentences, 0))
        yield doc


def read_litbank_entities(
    nlp: Language, path: Path, *, joined: bool = False, key: str = "sc"
) -> Iterator[Doc]:
    """Read nested entities: the word first, then layers of tags, tabs between. Documents begin
    with a line such as `# 1206_the_flying_u_ranch_brat.tsv`.

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    joined (bool): a Doc for each document, not for each sentence.
    key (str): of the span group, which `spancat` calls `spans_key`.
    YIELDS (Doc): with all layers in one span group, and sentence starts.
    RAISES (ValueError): EL197 for a line that is none of these.
    """
    for sentences in _group(_read_sentences(path, last_only=False), joined):
        doc = make_doc(nlp, [sentence.words for sentence in sentences])
        n_layers = max(len(sentence.layers) for sentence in sentences)
        doc.spans[key] = [span for i in range(n_layers) for span in _collect(doc, sentences, i)]
        yield doc


def _require_words(path: Path) -> Iterator[ColumnSentence]:
    """YIELDS (ColumnSentence): those of a file whose first column has words. RAISES (ValueError):
    EL197 if it counts them instead, as in Universal NER's files."""
    sentences = _read_sentences(path, last_only=True)
    first = list(islice(sentences, _N_FIRST))
    counted = [[str(i + 1) for i in range(len(sentence.words))] for sentence in first]
    if any(len(each) > 1 for each in counted) and [s.words for s in first] == counted:
        raise line_error(path, 1, "the first column counts the words, which should stand there")
    yield from chain(first, sentences)


def _read_sentences(path: Path, *, last_only: bool) -> Iterator[ColumnSentence]:
    starts_doc = True
    for block in read_blocks(path):
        has_tabs = any("\t" in text for _, text in block)
        lines = []
        for line in block:
            if not _is_mark(line[1], has_tabs):
                lines.append(line)
            elif _starts_doc(line[1], last_only):
                starts_doc = True
        if lines:
            yield _parse(path, lines, last_only, starts_doc)
            starts_doc = False


def _is_mark(text: str, has_tabs: bool) -> bool:
    # "#" is a word of some corpora, with its tag behind it: where columns are cut at spaces, the
    # last word of a comment must be no tag.
    is_comment = text.startswith("# ") and "\t" not in text
    is_comment = is_comment and (has_tabs or _last_is_no_tag(text))
    return is_comment or text.split()[:1] == [_DOC_START]


def _last_is_no_tag(text: str) -> bool:
    try:
        read_tags(text.split()[-1:])
    except ValueError:
        return True
    return False


def _starts_doc(text: str, last_only: bool) -> bool:
    """Whether a comment says that a document begins; LitBank's has the document's name alone."""
    return text.startswith((_DOC_START, "# newdoc")) or not (
        last_only or text.startswith("# sent_id")
    )


def _parse(path: Path, lines: List[Line], last_only: bool, starts_doc: bool) -> ColumnSentence:
    rows = []
    for number, text in lines:
        cells = split_cells(text)
        if len(cells) < 2:
            raise line_error(path, number, f"'{text[:50]}' has no tag")
        if not cells[0]:
            raise line_error(path, number, f"'{text[:50]}' has no word")
        rows.append([cells[0], cells[-1]] if last_only else cells)
        if len(rows[-1]) != len(rows[0]):
            raise line_error(path, number, f"columns: {len(cells)}, before it: {len(rows[0])}")
    columns = list(zip(*rows))
    try:
        layers = [read_tags(tags) for tags in columns[1:]]
    except ValueError as err:
        raise line_error(path, lines[0][0], f"in the sentence from there on, {err}") from err
    return ColumnSentence(list(columns[0]), layers, starts_doc)


def _group(sentences: Iterator[ColumnSentence], joined: bool) -> Iterator[List[ColumnSentence]]:
    group: Optional[List[ColumnSentence]] = None
    for sentence in sentences:
        if group is not None and (sentence.starts_doc or not joined):
            yield group
            group = None
        group = [*(group or []), sentence]
    if group:
        yield group


def _collect(doc: Doc, sentences: List[ColumnSentence], layer: int) -> Iterator:
    offset = 0
    for sentence in sentences:
        if layer < len(sentence.layers):
            yield from make_spans(doc, sentence.layers[layer], offset)
        offset += len(sentence.words)
