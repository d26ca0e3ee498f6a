"""Sentences whose words have senses."""

import json
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from ..errors import Errors
from ..text.text_files import DAMAGED, open_binary
from ..util.reading import require_file
from .inventory import map_pos

# Of a line.
_MOST_BYTES = 10_000_000


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
    RAISES (ValueError): EL069 for a line that is none of these, EL082 for .zst without its
        package, EL083 for a damaged file, EL100 and EL101 if there is no file.
    """
    require_file(path)
    is_empty = True
    with open_binary(path) as lines:
        for i, line in enumerate(_read_lines(lines, path)):
            if not line.strip():
                continue
            try:
                sentence = _make_sentence(_parse(line), i)
            except (ValueError, RecursionError) as err:
                raise ValueError(Errors.EL069.format(path=path, line=i + 1, error=err)) from err
            is_empty = False
            yield sentence
    if is_empty:
        raise ValueError(Errors.EL069.format(path=path, line=1, error="there is none"))


def _read_lines(lines: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        # In bounded memory: a compressed file may be one line of any length.
        while line := lines.readline(_MOST_BYTES):
            yield line
    except DAMAGED as err:
        raise ValueError(Errors.EL083.format(path=path, error=err)) from err


def _parse(line: bytes) -> Dict[str, Any]:
    if len(line) == _MOST_BYTES:
        raise ValueError(f"it has {_MOST_BYTES} bytes or more")
    content: Any = json.loads(line.decode("utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"it holds {type(content).__name__}, expected an object {{...}}")
    _require(_is_strings(content.get("tokens")), 'no list of words in "tokens"')
    _require(isinstance(content.get("instances"), list), 'no list in "instances"')
    return content


def _make_sentence(line: Dict[str, Any], i: int) -> Sentence:
    words: List[str] = []
    spans: List[Tuple[int, int]] = []
    for token in line["tokens"]:
        parts = [part for part in token.split("_") if part] or [token]
        spans.append((len(words), len(words) + len(parts)))
        words += parts
    instances = [_make_instance(item, spans) for item in line["instances"]]
    # Without an id, each sentence is a doc.
    return Sentence(str(line.get("id", i)).split(".")[0], words, instances)


def _make_instance(item: Any, spans: Sequence[Tuple[int, int]]) -> Instance:
    _require(isinstance(item, list) and len(item) == 4, f"{item!r} is no instance")
    place, lemma, tag, keys = item
    is_place = type(place) is int and 0 <= place < len(spans)
    _require(is_place, f"{place!r} is no place of its tokens: {len(spans)}")
    _require(_is_strings([lemma, tag]) and _is_strings(keys), f"{item!r} is no instance")
    start, end = spans[place]
    return Instance(start, end, lemma, map_pos("", tag), tuple(keys))


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _require(is_right: bool, problem: str) -> None:
    if not is_right:
        raise ValueError(problem)
