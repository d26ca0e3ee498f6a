"""`TextSource`: texts of many files in a reproducible order, from any position on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ..registry import corpus_readers
from .text_files import find_files, get_format, is_hidden

# Files read at the same time, and text taken from one of them in a go.
_N_OPEN = 32
_CHUNK_CHARS = 16_384


class Chunk(NamedTuple):
    """Texts that follow each other in a file.

    texts (List[str]): lines or documents.
    number (int): how many chunks of its source came before, over all epochs.
    """

    texts: List[str]
    number: int


@dataclass
class _OpenFile:
    index: int
    offset: int
    texts: Iterator[Tuple[str, int]]
    size: int


def find_texts(
    path: str,
    is_excluded: Callable[[Path], bool] = is_hidden,
    but: Optional[Path] = None,
    *,
    may_be_none: bool = False,
) -> List[Path]:
    """path (str), is_excluded (Callable[[Path], bool]), but (Optional[Path]), may_be_none (bool):
    see `find_files`. RETURNS (List[Path]): files of the formats that corpora have. RAISES
    (ValueError): as `find_files`."""
    known = sorted(corpus_readers.get_all())
    return find_files(path, known, is_excluded, but, may_be_none=may_be_none)


class TextSource:
    """Read files over and over. In each epoch their order is drawn anew; some are open
    at a time, and the next chunk comes from one of them, larger files more often: so
    what is near in the stream comes from all over the corpus. The order depends on the
    seed, the files and the position alone.

    path (str): a file, folder or glob.
    seed (int): of the order.
    but (Optional[Path]): the folder of a run, whose files are left out.
    """

    def __init__(self, path: str, seed: int, but: Optional[Path] = None) -> None:
        self.files = find_texts(path, but=but)
        self.seed = seed

    @property
    def n_bytes(self) -> int:
        """RETURNS (int): Size of the files as they are stored."""
        return sum(file.stat().st_size for file in self.files)

    def start(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): The position of the first text, in JSON's types."""
        return {"epoch": 0, "n_chunks": 0, "next_file": 0, "open": []}

    def read(
        self, position: Dict[str, Any], *, endless: bool = True
    ) -> Iterator[Tuple[Chunk, Dict[str, Any]]]:
        """Read from a position on.

        position (Dict[str, Any]): what `start` or an earlier `read` gave.
        endless (bool): whether to start over when all is read.
        YIELDS (Tuple[Chunk, Dict[str, Any]]): a chunk, and the position after it.
        RAISES (ValueError): what the readers raise for damaged files.
        """
        while True:
            # Files without text would be read for ever.
            is_empty = position["next_file"] == 0 and not position["open"]
            epoch = self._read_epoch(position)
            for chunk, position in epoch:
                is_empty = is_empty and not any(text.strip() for text in chunk.texts)
                yield chunk, position
            if is_empty or not endless:
                return
            position = {**position, "epoch": position["epoch"] + 1, "next_file": 0, "open": []}

    def read_in_order(self) -> Iterator[Tuple[Chunk, None]]:
        """YIELDS (Tuple[Chunk, None]): all chunks once, file after file."""
        n_chunks = 0
        for index in range(len(self.files)):
            file = self._open(index, 0)
            while texts := _take(file):
                yield Chunk(texts, n_chunks), None
                n_chunks += 1

    def read_texts(self) -> Iterator[str]:
        """YIELDS (str): all texts once, file after file."""
        for chunk, _ in self.read_in_order():
            yield from chunk.texts

    def require_readable(self) -> None:
        """Read the first text of each file, where nobody reads all of them beforehand.

        RAISES (ValueError): what the readers raise.
        """
        for index in range(len(self.files)):
            next(self._open(index, 0).texts, None)

    def _read_epoch(self, position: Dict[str, Any]) -> Iterator[Tuple[Chunk, Dict[str, Any]]]:
        """The rest of an epoch, as `read`."""
        epoch, n_chunks, next_file = (position[k] for k in ("epoch", "n_chunks", "next_file"))
        order = np.random.default_rng([self.seed, 1, epoch]).permutation(len(self.files))
        opened = [self._open(index, offset) for index, offset in position["open"]]
        while opened or next_file < len(order):
            while len(opened) < _N_OPEN and next_file < len(order):
                opened.append(self._open(int(order[next_file]), 0))
                next_file += 1
            k = self._draw(opened, n_chunks)
            texts = _take(opened[k])
            if not texts:
                del opened[k]
                continue
            n_chunks += 1
            offsets = [[file.index, file.offset] for file in opened]
            after = {"epoch": epoch, "n_chunks": n_chunks, "next_file": next_file, "open": offsets}
            yield Chunk(texts, n_chunks - 1), after

    def _draw(self, opened: List[_OpenFile], n_chunks: int) -> int:
        """The file that the next chunk comes from: a draw of its own for each chunk, so that
        there is no state of a generator to keep."""
        rng = np.random.default_rng([self.seed, 2, n_chunks])
        sizes = np.cumsum([file.size for file in opened])  # (n_opened,)
        return int(np.searchsorted(sizes, rng.random() * sizes[-1], side="right"))

    def _open(self, index: int, offset: int) -> _OpenFile:
        path = self.files[index]
        reader = corpus_readers.get(get_format(path))
        return _OpenFile(index, offset, reader(path, offset), max(1, path.stat().st_size))


def _take(file: _OpenFile) -> List[str]:
    texts: List[str] = []
    n_chars = 0
    for text, offset in file.texts:
        file.offset = offset
        texts.append(text)
        n_chars += len(text) + 1
        if n_chars >= _CHUNK_CHARS:
            break
    return texts
