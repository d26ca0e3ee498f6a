"""Sources of text as one reproducible stream of sequences, read from any position on."""

import logging
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ..errors import Errors, Warnings
from ..files import atomic_file
from ..registry import corpus_readers
from .cutting import Chunk, Cutter, cut_all
from .formats import read_text
from .languages import make_tokenizer
from .text_files import BOM, decode, find_files, get_format

logger = logging.getLogger("spacy_elmo")

STDIN, STDIN_FILE = "-", "stdin.txt"
# Files read at the same time, and characters taken from one of them at once.
_N_OPEN = 32
_CHUNK_CHARS = 16_384


@dataclass
class _OpenFile:
    index: int
    offset: int
    texts: Iterator[Tuple[str, int]]
    size: int


class TextSource:
    """Read the files of a path, without those in the folder `but`, over and over. In each epoch
    their order is drawn anew; some are open at a time, and the next chunk comes from one of them,
    larger files more often: so that neighbours in the stream come from all over the corpus. The
    order depends on the seed, the files and the position alone; positions have JSON's types."""

    def __init__(self, path: str, seed: int, but: Optional[Path] = None) -> None:
        self.files = find_files(path, but=but)
        self.seed = seed

    @property
    def n_bytes(self) -> int:
        """Size of the files as they are stored."""
        return sum(file.stat().st_size for file in self.files)

    def start(self) -> Dict[str, Any]:
        """The position of the first text."""
        return {"epoch": 0, "n_chunks": 0, "next_file": 0, "open": []}

    def read(
        self, position: Dict[str, Any], *, endless: bool = True
    ) -> Iterator[Tuple[Chunk, Dict[str, Any]]]:
        """Read from a position on: chunks, and the position after each."""
        while True:
            # Files without text would be read forever.
            is_empty = position["next_file"] == 0 and not position["open"]
            epoch = self._read_epoch(position)
            for chunk, position in epoch:
                is_empty = is_empty and not any(text.strip() for text in chunk.texts)
                yield chunk, position
            if is_empty or not endless:
                return
            position = {**position, "epoch": position["epoch"] + 1, "next_file": 0, "open": []}

    def read_in_order(self) -> Iterator[Tuple[Chunk, None]]:
        """Read all chunks once, file after file; positions are None."""
        n_chunks = 0
        for index in range(len(self.files)):
            file = self._open(index, 0)
            while texts := _take_chunk(file):
                yield Chunk(texts, n_chunks), None
                n_chunks += 1

    def read_texts(self) -> Iterator[str]:
        """Read all texts once, file after file."""
        for chunk, _ in self.read_in_order():
            yield from chunk.texts

    def require_readable(self) -> None:
        """Read the first text of each file, to find damaged files early."""
        for index in range(len(self.files)):
            next(self._open(index, 0).texts, None)

    def _read_epoch(self, position: Dict[str, Any]) -> Iterator[Tuple[Chunk, Dict[str, Any]]]:
        epoch, n_chunks, next_file = (position[k] for k in ("epoch", "n_chunks", "next_file"))
        order = np.random.default_rng([self.seed, 1, epoch]).permutation(len(self.files))
        opened = [self._open(index, offset) for index, offset in position["open"]]
        while opened or next_file < len(order):
            while len(opened) < _N_OPEN and next_file < len(order):
                opened.append(self._open(int(order[next_file]), 0))
                next_file += 1
            # Seeded by the number of the chunk, so that there is no state of a generator to keep.
            rng = np.random.default_rng([self.seed, 2, n_chunks])
            sizes = np.cumsum([file.size for file in opened])  # (n_opened,)
            k = int(np.searchsorted(sizes, rng.random() * sizes[-1], side="right"))
            texts = _take_chunk(opened[k])
            if not texts:
                del opened[k]
                continue
            n_chunks += 1
            offsets = [[file.index, file.offset] for file in opened]
            after = {"epoch": epoch, "n_chunks": n_chunks, "next_file": next_file, "open": offsets}
            yield Chunk(texts, n_chunks - 1), after

    def _open(self, index: int, offset: int) -> _OpenFile:
        path = self.files[index]
        reader = corpus_readers.get(get_format(path))
        return _OpenFile(index, offset, reader(path, offset), max(1, path.stat().st_size))


def _take_chunk(file: _OpenFile) -> List[str]:
    texts: List[str] = []
    n_chars = 0
    for text, offset in file.texts:
        file.offset = offset
        texts.append(text)
        n_chars += len(text) + 1
        if n_chars >= _CHUNK_CHARS:
            break
    return texts


@dataclass
class Corpus:
    """Read sources side by side and cut their texts. The next chunk comes from the source that is
    furthest behind its share (`weights`) of the characters. `make_cutter` must be picklable;
    `n_workers` are processes that cut, 0 for none besides this one."""

    sources: Mapping[str, TextSource]
    weights: Mapping[str, float]
    make_cutter: Callable[[], Cutter]
    n_workers: int = 0

    def start(self) -> Dict[str, Any]:
        """The position of the first text."""
        return {
            "n_chunks": 0,
            "n_chars": dict.fromkeys(self.sources, 0),
            "sources": {name: source.start() for name, source in self.sources.items()},
        }

    def read(self, position: Dict[str, Any]) -> Iterator[Tuple[List[List[str]], Dict[str, Any]]]:
        """Read without end from a position on: sequences of words, and the position after them.
        RAISES (ValueError): as the readers, for damaged files; EL094 for a source without text."""
        return cut_all(self._read_chunks(position), self.make_cutter, self.n_workers)

    def read_once(self) -> Iterator[List[List[str]]]:
        """Read the sequences of all sources once."""
        for source in self.sources.values():
            chunks = source.read(source.start(), endless=False)
            for sequences, _ in cut_all(chunks, self.make_cutter, self.n_workers):
                yield sequences

    def read_in_order(self) -> Iterator[List[List[str]]]:
        """Read the sequences of all sources once, file after file."""
        for source in self.sources.values():
            yield from (s for s, _ in cut_all(source.read_in_order(), self.make_cutter, 0))

    def _read_chunks(self, position: Dict[str, Any]) -> Iterator[Tuple[Chunk, Dict[str, Any]]]:
        positions, n_chunks = dict(position["sources"]), position["n_chunks"]
        n_chars = dict(position["n_chars"])
        streams = {name: s.read(positions[name]) for name, s in self.sources.items()}
        while streams:
            name = min(streams, key=lambda name: n_chars[name] / self.weights[name])
            item = next(streams[name], None)
            if item is None:
                raise ValueError(Errors.EL094.format(path=f"the source '{name}'"))
            chunk, positions[name] = item
            n_chars[name] += sum(len(text) + 1 for text in chunk.texts)
            n_chunks += 1
            after = {"n_chunks": n_chunks, "n_chars": dict(n_chars), "sources": dict(positions)}
            # Numbered over all sources: the number decides how a chunk is cut.
            yield Chunk(chunk.texts, n_chunks - 1), after


def open_sources(
    train: str,
    sources: Mapping[str, Mapping[str, Any]],
    run_folder: Optional[Path],
    seed: int,
    *,
    spool: bool = True,
) -> Tuple[Dict[str, TextSource], Dict[str, float]]:
    """Find the files of a corpus: its sources and their weights, by name. `train` is a path, if
    there are no sources; "-" for the standard input, which is saved in `run_folder` (unless `spool`
    is False: then it is saved already). Other files of that folder are left out."""
    if not sources:
        if train != STDIN:
            return {"train": TextSource(train, seed, run_folder)}, {"train": 1.0}
        if run_folder is None:
            raise ValueError("The standard input cannot be read here. Give a file instead of '-'.")
        saved = spool_stdin(run_folder) if spool else run_folder / STDIN_FILE
        return {"train": TextSource(str(saved), seed)}, {"train": 1.0}
    opened: Dict[str, TextSource] = {}
    weights: Dict[str, float] = {}
    for i, (name, source) in enumerate(sources.items()):
        is_block = isinstance(source, Mapping) and set(source) == {"path", "weight"}
        weight = source["weight"] if is_block else None
        if not isinstance(weight, (int, float)) or not 0 < weight < inf:
            problem = f"needs a path and a weight above 0, found {source}."
            raise ValueError(f"The source '{name}' in [corpus.sources] {problem}")
        opened[name] = TextSource(str(source["path"]), seed + i, run_folder)
        weights[name] = float(weight)
    return opened, weights


def read_sequences(path: str, make_cutter: Callable[[], Cutter]) -> Iterator[List[str]]:
    """Read the sequences of a text (file, folder or glob) once and in order."""
    for part in Corpus(*open_sources(path, {}, None, seed=0), make_cutter).read_in_order():
        yield from part


def read_all_sequences(path: str, make_cutter: Callable[[], Cutter]) -> List[List[str]]:
    """As `read_sequences`, with one string for all occurrences of a word: about ten bytes a
    token."""
    texts: Dict[str, str] = {}
    sequences = read_sequences(path, make_cutter)
    return [[texts.setdefault(word, word) for word in words] for words in sequences]


def cutter_maker(lang: str, block: Dict[str, Any], **settings: Any) -> Callable[[], Cutter]:
    """Make a picklable function that makes a `Cutter`, for a language and its [nlp.tokenizer]."""
    return partial(Cutter, partial(make_tokenizer, lang, block), **settings)


def spool_stdin(folder: Path, stdin: Optional[IO[bytes]] = None) -> Path:
    """Save the standard input as stdin.txt in a folder, so that training can start over and
    resume. If it exists, nothing is read, with a warning WL011. RAISES (ValueError): EL094 if no
    text comes, EL155 if it is not in UTF-8; nothing is saved then."""
    path = folder / STDIN_FILE
    if path.exists():
        logger.warning(Warnings.WL011.format(path=path))
        return path
    folder.mkdir(parents=True, exist_ok=True)
    # None if it was closed before Python began.
    stdin = stdin or getattr(sys.stdin, "buffer", None)
    if stdin is None:
        raise ValueError(Errors.EL094.format(path="the standard input"))
    with atomic_file(path) as partial, partial.open("wb") as file:
        shutil.copyfileobj(stdin, file)
    try:
        # All of it, to find bytes that are not UTF-8.
        if not sum(bool(text.strip()) for text, _ in read_text(path, 0)):
            raise ValueError(Errors.EL094.format(path="the standard input"))
    except ValueError:
        path.unlink()
        raise
    return path


def read_stdin() -> str:
    """Read all of the standard input. RAISES (ValueError): EL094 if it is empty, EL155 if it is not
    in UTF-8."""
    with tempfile.TemporaryDirectory() as folder:
        path = spool_stdin(Path(folder))
        return decode(path.read_bytes(), path, 0).removeprefix(BOM)
