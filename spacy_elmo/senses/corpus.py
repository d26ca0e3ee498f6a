"""Sentences whose words have senses."""

import json
from pathlib import Path
from typing import BinaryIO, Iterator, List, NamedTuple, Tuple

from ..corpora.files import DAMAGED, open_binary
from ..errors import Errors
from .inventory import map_pos


class Instance(NamedTuple):
    """Words with a sense. start, end (int): their places in the sentence. lemma (str), pos
    (str): as in an `Inventory`. keys (Tuple[str, ...]): any of them is right."""

    start: int
    end: int
    lemma: str
    pos: str
    keys: Tuple[str, ...]


class Sentence(NamedTuple):
    """doc (str): which doc it is of. words (List[str]). instances (List[Instance])."""

    doc: str
    words: List[str]
    instances: List[Instance]


def read_sentences(path: Path) -> Iterator[Sentence]:
    """Read sense-annotated sentences.

    path (Path): JSONL, plain or .gz, .xz, .zst: in each line "tokens", "instances" (lists
        of the index of a token, its lemma, Penn Treebank tag, and sense keys) and perhaps
        "id", whose part before the first dot is the doc. Underscores join the words of a
        token.
    YIELDS (Sentence): with the tokens cut into words.
    RAISES (ValueError): EL069 for a file without such lines, EL082 for .zst without its
        package, EL083 for a damaged file.
    """
    is_empty = True
    with open_binary(path) as lines:
        for i, line in enumerate(_read_lines(lines, path)):
            if not line.strip():
                continue
            try:
                sentence = _make_sentence(json.loads(line), i)
            except (KeyError, TypeError, IndexError, ValueError) as err:
                error = f"{type(err).__name__}: {err}"
                raise ValueError(Errors.EL069.format(path=path, line=i + 1, error=error)) from err
            is_empty = False
            yield sentence
    if is_empty:
        raise ValueError(Errors.EL069.format(path=path, line=1, error="there is none"))


def _read_lines(lines: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        yield from lines
    except DAMAGED as err:
        raise ValueError(Errors.EL083.format(path=path, error=err)) from err


def _make_sentence(line: dict, i: int) -> Sentence:
    words: List[str] = []
    spans: List[Tuple[int, int]] = []
    for token in line["tokens"]:
        parts = [part for part in token.split("_") if part] or [token]
        spans.append((len(words), len(words) + len(parts)))
        words += parts
    instances = [
        Instance(spans[place][0], spans[place][1], lemma, map_pos("", tag), tuple(keys))
        for place, lemma, tag, keys in line["instances"]
    ]
    # Without an id, each sentence is a doc.
    return Sentence(str(line.get("id", i)).split(".")[0], words, instances)
