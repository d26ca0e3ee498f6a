"""Sentences whose words have senses."""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from ..errors import Errors
from ..text.data_lines import read_lines
from .inventory import map_pos


class Instance(NamedTuple):
    """Words with a sense. start, end (int): their places in the sentence. lemma (str), pos
    (str): as in an `Inventory`. keys (Tuple[str, ...]): any of them is right."""

    start: int
    end: int
    lemma: str
    pos: str
    keys: Tuple[str, ...]


class SenseSentence(NamedTuple):
    """doc (str): which doc it is of. words (List[str]). instances (List[Instance])."""

    doc: str
    words: List[str]
    instances: List[Instance]


def read_sentences(path: Path) -> Iterator[SenseSentence]:
    """Read sense-annotated sentences.

    path (Path): JSONL, plain or .gz, .xz, .zst: in each line "tokens", "instances" (lists
        of the index of a token, its lemma, Penn Treebank tag, and sense keys) and perhaps
        "id", whose part before the first dot is the doc. Underscores join the words of a
        token.
    YIELDS (SenseSentence): with the tokens cut into words.
    RAISES (ValueError): EL069 for a line that is none of these, and as `read_lines`.
    """
    is_empty = True
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            sentence = _make_sentence(_parse(line), number)
        except (ValueError, RecursionError) as err:
            raise ValueError(Errors.EL069.format(path=path, line=number, error=err)) from err
        is_empty = False
        yield sentence
    if is_empty:
        raise ValueError(Errors.EL069.format(path=path, line=1, error="there is none"))


def _parse(line: str) -> Dict[str, Any]:
    content: Any = json.loads(line)
    if not isinstance(content, dict):
        raise ValueError(f"it holds {type(content).__name__}, expected an object {{...}}")
    _require(_is_strings(content.get("tokens")), 'no list of words in "tokens"')
    _require(isinstance(content.get("instances"), list), 'no list in "instances"')
    return content


def _make_sentence(line: Dict[str, Any], number: int) -> SenseSentence:
    words: List[str] = []
    spans: List[Tuple[int, int]] = []
    for token in line["tokens"]:
        parts = [part for part in token.split("_") if part] or [token]
        spans.append((len(words), len(words) + len(parts)))
        words += parts
    instances = [_make_instance(item, spans) for item in line["instances"]]
    # Without an id, each sentence is a doc.
    name = number if line.get("id") is None else line["id"]
    return SenseSentence(str(name).split(".")[0], words, instances)


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
