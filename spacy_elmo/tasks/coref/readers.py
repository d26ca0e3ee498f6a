"""Published coreference: OntoGUM's CoNLL-U, and CoNLL-2012's columns, which LitBank has, too."""

import re
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ...text.formats import Line, line_error, read_lines, split_spaces
from ...utils import count_things, show_name
from ..shared.annotations import make_doc, unescape
from .clusters import Cluster, set_gold_clusters

_CONLLU_COLUMNS = 10
# Numbers of words and heads: `str.isdigit` accepts more than `int` does.
_NUMBER = re.compile(r"[0-9]{1,9}")
# Words that are written as one.
_RANGE = re.compile(r"[0-9]{1,9}-([0-9]{1,9})")
# Document, part, number, word and, last, coreference.
_LEAST_COLUMNS = 5
# "(3)", "(3" and "3)", in this order of groups; several of them stand together or with "|" between.
_PIECE = re.compile(r"(?:\(([^()|]+)\)|\(([^()|]+)|([^()|]+)\))\|*")
_NOTHING = {"", "-", "_"}
# A mention in parts, one after the other: "e1[1/2]", "e1[2/2]".
_PART = re.compile(r"(.+)\[(\d+)/(\d+)\]")


class Word(NamedTuple):
    """A word, its brackets, whether a space follows, and lemma, POS, tag, head and relation."""

    text: str
    brackets: str
    space: bool = True
    parse: Optional[Sequence[str]] = None


Sentence = List[Word]


def read_ontogum(nlp: Language, path: Path) -> Iterator[Doc]:
    """Read CoNLL-U with `Entity=(1` ... `Entity=1)` in its last column, as OntoGUM has it.

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed. Documents begin with `# newdoc`.
    YIELDS (Doc): a whole document with the clusters, sentence starts, tags, lemmas and parse.
    RAISES (ValueError): EL197 for a line of another format, and for a file without any mention.
    """
    n_clusters, last = 0, None
    for lines in _split_documents(path, "# newdoc"):
        sentences, clusters = _read_document(path, _join_words(lines), _parse_conllu)
        # All lines may be empty nodes.
        if sentences:
            with _located(path, lines[0][0], "in the document from there on, "):
                doc = _make_clusters_doc(nlp, sentences, clusters, _make_parse(sentences))
            yield doc
            n_clusters, last = n_clusters + len(clusters), lines[-1]
    if last and not n_clusters:
        # A treebank without coreference would teach that nothing refers to anything.
        raise line_error(path, last[0], "up to here, no word has `Entity=` in its last column")


def read_litbank_coref(nlp: Language, path: Path) -> Iterator[Doc]:
    """Read CoNLL-2012's columns: the word in the fourth, coreference in the last, with tabs or
    spaces between. LitBank has them. Words are unescaped: "-LRB-" is "(".

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed. Documents, or parts of them, begin with `#begin document`.
    YIELDS (Doc): a document, or part, with the clusters and sentence starts.
    RAISES (ValueError): EL197 for a line of another format.
    """
    for lines in _split_documents(path, "#begin document"):
        sentences, clusters = _read_document(path, lines, _parse_columns)
        yield _make_clusters_doc(nlp, sentences, clusters, {})


def _split_documents(path: Path, mark: str) -> Iterator[List[Line]]:
    lines: List[Line] = []
    for line in chain(read_lines(path), [(0, mark)]):
        if line[1].startswith(mark):
            if not all(map(_is_comment, lines)):
                yield lines
            lines = []
        lines.append(line)


def _is_comment(line: Line) -> bool:
    return not line[1].strip() or line[1].startswith("#")


def _read_document(
    path: Path, lines: List[Line], parse: Callable[[str], Optional[Word]]
) -> Tuple[List[Sentence], Sequence[Cluster]]:
    sentences: List[Sentence] = [[]]
    brackets, n_words = OpenBrackets(), 0
    for line in lines:
        with _located(path, line[0]):
            word = None if _is_comment(line) else parse(line[1])
            if word is not None:
                sentences[-1].append(word)
                brackets.read(n_words, word.brackets)
                n_words += 1
            elif not line[1].strip() and sentences[-1]:
                sentences.append([])
    with _located(path, lines[-1][0]):
        clusters = brackets.close()
    return [sentence for sentence in sentences if sentence], clusters


@contextmanager
def _located(path: Path, number: int, place: str = "") -> Iterator[None]:
    try:
        yield
    except ValueError as err:
        raise line_error(path, number, f"{place}{err}") from err


class OpenBrackets:
    """The brackets of a document, read token after token."""

    def __init__(self) -> None:
        self.clusters: Dict[str, Cluster] = {}
        self._opened: Dict[str, List[int]] = {}
        # Cluster and number of parts -> where the first one begins.
        self._in_parts: Dict[Tuple[str, str], int] = {}

    def read(self, i: int, cell: str) -> None:
        """Read the brackets of token i, such as "(3|(1)", or "-"."""
        cell, end = "" if cell.strip() in _NOTHING else cell.strip("|"), 0
        # From end to end: a search would try every character of a long cell.
        while end < len(cell):
            match = _PIECE.match(cell, end)
            if match is None:
                raise ValueError(f"'{show_name(cell)}' is not a bracket such as (3, 3) or (3)")
            end = match.end()
            # GUM's own files have more after the name: "(3-person-giv:act".
            name = match[match.lastindex or 0].partition("-")[0]
            if match.lastindex == 1:
                self._add(name, i, i + 1)
            elif match.lastindex == 2:
                self._opened.setdefault(name, []).append(i)
            elif not self._opened.get(name):
                raise ValueError(f"the mention of {name} that ends here has no beginning")
            else:
                # Of two mentions of one cluster the inner one ends first.
                self._add(name, self._opened[name].pop(), i + 1)

    def _add(self, name: str, start: int, end: int) -> None:
        # A mention in parts reaches from the first to the last: spans have no holes.
        part = _PART.fullmatch(name)
        if part is not None:
            name, number, n_parts = part.groups()
            self._in_parts.setdefault((name, n_parts), start)
            if number != n_parts:
                return
            start = self._in_parts.pop((name, n_parts))
        self.clusters.setdefault(name, []).append((start, end))

    def close(self) -> Sequence[Cluster]:
        """The clusters, if no bracket is open."""
        names = sorted(name for name, starts in self._opened.items() if starts)
        names += sorted(name for name, _ in self._in_parts)
        if names:
            raise ValueError(f"mentions of {', '.join(names)} have no end")
        return list(self.clusters.values())


def _parse_conllu(text: str) -> Optional[Word]:
    cells = text.split("\t")
    if len(cells) != _CONLLU_COLUMNS:
        raise ValueError(f"columns: {len(cells)}, expected {_CONLLU_COLUMNS} with tabs between")
    number, word, lemma, pos, tag, _, head, relation, _, misc = cells
    if not _NUMBER.fullmatch(number):
        # "3-4" are two words written as one, "3.1" is an empty node.
        return None
    if not _NUMBER.fullmatch(head):
        raise ValueError(f"'{head}' is not the number of a head")
    values: Dict[str, str] = {}
    key = ""
    for piece in misc.split("|"):
        name, is_pair, value = piece.partition("=")
        if is_pair:
            key = name
            values[key] = value
        elif key:
            # Brackets may have "|" between them, too.
            values[key] += "|" + piece
    space = values.get("SpaceAfter") != "No"
    # "_" is empty; as a lemma, unless that is the word.
    pos, tag, relation = ("" if cell == "_" else cell for cell in (pos, tag, relation))
    lemma = "" if lemma == "_" != word else lemma
    return Word(word, values.get("Entity", ""), space, (lemma, pos, tag, head, relation))


def _parse_columns(text: str) -> Optional[Word]:
    # The last cell may be empty.
    cells = text.split("\t") if "\t" in text else split_spaces(text)
    if len(cells) < _LEAST_COLUMNS:
        raise ValueError(f"columns: {len(cells)}, expected {_LEAST_COLUMNS} or more")
    if not cells[3]:
        raise ValueError("column 4, the word, is empty")
    return Word(unescape(cells[3]), cells[-1])


def _join_words(lines: List[Line]) -> List[Line]:
    """Mark that no space is between the words of "don't", for which CoNLL-U has one more line."""
    joined: List[Line] = []
    last, spaced = 0, True
    for number, text in lines:
        first_cell = text.partition("\t")[0]
        if match := _RANGE.fullmatch(first_cell):
            last, spaced = int(match[1]), "SpaceAfter=No" not in text
        elif _NUMBER.fullmatch(first_cell) and int(first_cell) <= last:
            is_inside = int(first_cell) < last
            last = last if is_inside else 0
            text += "" if spaced and not is_inside else "|SpaceAfter=No"
        joined.append((number, text))
    return joined


def _make_clusters_doc(
    nlp: Language, sentences: List[Sentence], clusters: Sequence[Cluster], parse: Dict[str, Any]
) -> Doc:
    texts = [[word.text for word in sentence] for sentence in sentences]
    spaces = [word.space for sentence in sentences for word in sentence]
    doc = make_doc(nlp, texts, spaces=spaces, **parse)
    set_gold_clusters(doc, clusters)
    return doc


def _make_parse(sentences: List[Sentence]) -> Dict[str, Any]:
    """Arguments of `Doc`."""
    parses = [word.parse for sentence in sentences for word in sentence if word.parse]
    lemmas, pos, tags, _, relations = map(list, zip(*parses))
    heads: List[int] = []
    for sentence in sentences:
        # CoNLL-U counts from 1 in each sentence, and the root has 0.
        numbers = [int(word.parse[3]) if word.parse else 0 for word in sentence]
        own = np.array([head - 1 if head else i for i, head in enumerate(numbers)])
        if own.max() >= len(sentence):
            words = count_things(len(sentence), "word")
            raise ValueError(f"a word has the head {own.max() + 1} of {words}")
        # The ancestors 1, 2, 4 and so on words up: spaCy would hang where none is a root.
        ancestors = own
        for _ in range(len(own).bit_length()):
            ancestors = ancestors[ancestors]
        if n_lost := int((own[ancestors] != ancestors).sum()):
            raise ValueError(f"the heads of {count_things(n_lost, 'word')} lead into a circle")
        heads += (len(heads) + own).tolist()
    return {"lemmas": lemmas, "pos": pos, "tags": tags, "heads": heads, "deps": relations}
