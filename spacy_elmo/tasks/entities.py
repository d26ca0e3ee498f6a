"""Named entities in columns: CoNLL-2003 and files of the same format, and LitBank's nested ones."""

from itertools import chain, islice
from pathlib import Path
from typing import Iterator, List, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..text.formats import Line, line_error, read_blocks, split_cells
from .shared.annotations import LabelledSpan, make_docs, make_spans, read_tags

_DOC_START = "-DOCSTART-"
# Sentences that show what the first column is.
_N_FIRST = 3


class ColumnSentence(NamedTuple):
    words: List[str]
    # Spans of each column of tags.
    layers: List[List[LabelledSpan]]
    # Number of the document.
    document: int


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
