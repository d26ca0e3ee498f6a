"""Published coreference: OntoGUM's CoNLL-U, and CoNLL-2012's columns, as LitBank has them."""

import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ...text.formats import Line, line_error, read_lines, split_spaces
from ...utils import count_things
from ..shared.penn_words import unescape
from ..shared.sentence_docs import make_doc
from .brackets import OpenBrackets
from .clusters import Cluster, set_gold_clusters

_CONLLU_COLUMNS = 10
# Numbers of words and heads: `str.isdigit` takes more for one than `int` does.
_NUMBER = re.compile(r"[0-9]{1,9}")
# Of the words that are written as one.
_RANGE = re.compile(r"[0-9]{1,9}-([0-9]{1,9})")
# Document, part, number, word and, last, coreference.
_LEAST_COLUMNS = 5


class Word(NamedTuple):
    """text (str). brackets (str): see `split_brackets`. space (bool): whether one follows.
    parse (Optional[Sequence[str]]): lemma, POS, tag, number of the head from 1 or 0, relation."""

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
    RAISES (ValueError): EL197 for a line that is none of these, and for a file without any mention.
    """
    n_clusters, last = 0, None
    for lines in _split_documents(path, "# newdoc"):
        sentences, clusters = _read_document(path, _join_words(lines), _parse_conllu)
        # All of them may be words that nobody said.
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
    RAISES (ValueError): EL197 for a line that is none of these.
    """
    for lines in _split_documents(path, "#begin document"):
        sentences, clusters = _read_document(path, lines, _parse_columns)
        yield _make_clusters_doc(nlp, sentences, clusters, {})


def _split_documents(path: Path, mark: str) -> Iterator[List[Line]]:
    lines: List[Line] = []
    for line in read_lines(path):
        if line[1].startswith(mark):
            if any(text.strip() and text[0] != "#" for _, text in lines):
                yield lines
            lines = []
        lines.append(line)
    if any(text.strip() and text[0] != "#" for _, text in lines):
        yield lines


def _read_document(
    path: Path, lines: List[Line], parse: Callable[[str], Optional[Word]]
) -> Tuple[List[Sentence], Sequence[Cluster]]:
    sentences: List[Sentence] = [[]]
    brackets, n_words = OpenBrackets(), 0
    for number, text in lines:
        with _located(path, number):
            word = None if _is_comment(text) else parse(text)
            if word is not None:
                sentences[-1].append(word)
                brackets.read(n_words, word.brackets)
                n_words += 1
            elif not text.strip() and sentences[-1]:
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


def _is_comment(text: str) -> bool:
    # "#" is also a word, with a number before it.
    return not text.strip() or text.startswith("#")


def _parse_conllu(text: str) -> Optional[Word]:
    cells = text.split("\t")
    if len(cells) != _CONLLU_COLUMNS:
        raise ValueError(f"columns: {len(cells)}, expected {_CONLLU_COLUMNS} with tabs between")
    number, word, lemma, pos, tag, _, head, relation, _, misc = cells
    if not _NUMBER.fullmatch(number):
        # "3-4" are two words written as one, "3.1" is a word that nobody said.
        return None
    if not _NUMBER.fullmatch(head):
        raise ValueError(f"'{head}' is no number of a head")
    values = _read_misc(misc)
    space = values.get("SpaceAfter") != "No"
    # "_" is nothing; of a lemma, unless that is the word.
    pos, tag, relation = ("" if cell == "_" else cell for cell in (pos, tag, relation))
    lemma = "" if lemma == "_" != word else lemma
    return Word(word, values.get("Entity", ""), space, (lemma, pos, tag, head, relation))


def _read_misc(cell: str) -> Dict[str, str]:
    values: Dict[str, str] = {}
    key = ""
    for piece in cell.split("|"):
        name, is_pair, value = piece.partition("=")
        if is_pair:
            key = name
            values[key] = value
        elif key:
            # Brackets may have "|" between them, too.
            values[key] += "|" + piece
    return values


def _parse_columns(text: str) -> Optional[Word]:
    # The last cell may be empty.
    cells = text.split("\t") if "\t" in text else split_spaces(text)
    if len(cells) < _LEAST_COLUMNS:
        raise ValueError(f"columns: {len(cells)}, expected {_LEAST_COLUMNS} or more")
    if not cells[3]:
        raise ValueError("column 4, the word, is empty")
    return Word(unescape(cells[3]), cells[-1])


def _join_words(lines: List[Line]) -> List[Line]:
    """Say of the words of "don't" that no space is between: CoNLL-U has one line more for all."""
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
    nlp: Language,
    sentences: List[Sentence],
    clusters: Sequence[Cluster],
    parse: Dict[str, Any],
) -> Doc:
    words = [word for sentence in sentences for word in sentence]
    texts = [[word.text for word in sentence] for sentence in sentences]
    doc = make_doc(nlp, texts, spaces=[word.space for word in words], **parse)
    set_gold_clusters(doc, clusters)
    return doc


def _make_parse(sentences: List[Sentence]) -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): Arguments of `Doc`. RAISES (ValueError): for a head that its
    sentence does not have, and for heads in a circle."""
    parses = [word.parse for sentence in sentences for word in sentence if word.parse]
    lemmas, pos, tags, _, relations = map(list, zip(*parses))
    heads: List[int] = []
    for sentence in sentences:
        offset = len(heads)
        for i, word in enumerate(sentence, start=offset):
            # CoNLL-U counts from 1 in each sentence, and the root has 0.
            head = int(word.parse[3]) if word.parse else 0
            if head > len(sentence):
                words = count_things(len(sentence), "word")
                raise ValueError(f"'{word.text}' has the head {head} of {words}")
            heads.append(offset + head - 1 if head else i)
        _require_tree(heads, offset)
    return {"lemmas": lemmas, "pos": pos, "tags": tags, "heads": heads, "deps": relations}


def _require_tree(heads: List[int], offset: int) -> None:
    """heads (List[int]): of all words, those of the last sentence from offset on. RAISES
    (ValueError): if some of these go in a circle, in which spaCy would, too."""
    rooted: Set[int] = set()
    for i in range(offset, len(heads)):
        path: Dict[int, None] = {}
        while i not in rooted and i not in path:
            path[i] = None
            if heads[i] == i:
                rooted.add(i)
            i = heads[i]
        if i not in rooted:
            raise ValueError(f"the heads of {count_things(len(path), 'word')} go in a circle")
        rooted.update(path)
