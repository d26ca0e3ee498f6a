"""Sentences whose words have senses."""

import json
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Sequence, Tuple

from ..errors import Errors
from ..text.formats import read_lines
from .inventory import map_pos

_EXPECTED = (
    'expected a JSON object with "tokens" and "instances", such as '
    '"instances": [[0, "bank", "NN", ["bank%1:17:01::"]]]'
)


class Instance(NamedTuple):
    """Words of a sentence with a sense: any of the keys is right."""

    start: int
    end: int
    lemma: str
    pos: str
    keys: Tuple[str, ...]


class SenseSentence(NamedTuple):
    """A sentence, and the doc that it is of."""

    doc: str
    words: List[str]
    instances: List[Instance]


def read_sentences(path: Path) -> Iterator[SenseSentence]:
    """Read JSONL, plain or .gz, .xz, .zst: in each line "tokens", "instances" (lists of the index
    of a token, its lemma, Penn Treebank tag, and sense keys) and perhaps "id", whose part before
    the first dot is the doc. Underscores join the words of a token."""
    is_empty = True
    for number, line in read_lines(path):
        if line.strip():
            try:
                sentence = _make_sentence(json.loads(line), number)
            except (ValueError, RecursionError) as err:
                raise _make_error(path, number, err) from err
            is_empty = False
            yield sentence
    if is_empty:
        raise _make_error(path, 1, "the file is empty")


def _make_error(path: Path, line: int, problem: object) -> ValueError:
    return ValueError(Errors.EL197.format(path=path, line=line, problem=f"{problem}; {_EXPECTED}"))


def _make_sentence(line: Any, number: int) -> SenseSentence:
    if not isinstance(line, dict):
        raise ValueError(f"it contains {type(line).__name__}, expected an object {{...}}")
    if not _are_strings(line.get("tokens")):
        raise ValueError('no list of words in "tokens"')
    if not isinstance(line.get("instances"), list):
        raise ValueError('no list in "instances"')
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
    if not isinstance(item, list) or len(item) != 4:
        raise ValueError(f"{item!r} is not an instance")
    index, lemma, tag, keys = item
    if type(index) is not int or not 0 <= index < len(spans):
        raise ValueError(f"{index!r} is not the index of one of {len(spans)} tokens")
    if not _are_strings([lemma, tag]) or not _are_strings(keys):
        raise ValueError(f"{item!r} is not an instance")
    return Instance(*spans[index], lemma, map_pos("", tag), tuple(keys))


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
