"""Layers of a frozen biLM, kept from one epoch to the next.

Nothing that feeds a frozen biLM changes between epochs, so neither do its layers. What
is kept is keyed by the weights and the words of a sequence; what is full stays full,
since an epoch that reads everything in turn would throw out what it needs next.
"""

import logging
import sqlite3
import zlib
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from .errors import Warnings
from .util.checks import require_known, require_least

logger = logging.getLogger("spacy_elmo")

STORAGE_TYPES = {"float32": np.float32, "float16": np.float16}
# Keys of one query; SQLite's oldest limit is 999.
_N_KEYS = 500
# Seconds that a process waits for another one's write.
_TIMEOUT = 60.0
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS layers"
    " (key BLOB PRIMARY KEY, n_tokens INTEGER, checksum INTEGER, data BLOB)"
)


class ActivationCache:
    """Keep layers in memory, or in a file. See `build_activation_cache_v1`.

    Copies and pickles are empty and keep nothing: a cache belongs to a training run.
    """

    def __init__(self, path: Optional[Path], megabytes: int, dtype: str) -> None:
        require_known("dtype", dtype, list(STORAGE_TYPES))
        require_least("megabytes", megabytes, 0)
        self.path = path
        self.n_bytes_most = megabytes * 1_000_000
        self.dtype = np.dtype(STORAGE_TYPES[dtype])
        self.n_hits = 0
        self.n_misses = 0
        self._store: Any = None
        self._weights_key = b""

    def open(self, weights_key: bytes) -> None:
        """Be ready for a biLM; what was kept for another one is not used.

        weights_key (bytes): hash of its weights and of how it is run.
        """
        if self._store is not None and weights_key == self._weights_key:
            return
        self._weights_key = weights_key
        if self.path is None:
            self._store = _Memory(self.n_bytes_most)
        else:
            name = f"{weights_key.hex()[:32]}-{self.dtype.name}.sqlite"
            self._store = _Disk(self.path / name, self.n_bytes_most)

    def get(self, sequences: Sequence[Sequence[str]]) -> List[Optional[NDArray]]:
        """sequences (Sequence[Sequence[str]]): words. RETURNS (List[Optional[NDArray]]):
        for each float32 of shape (n_tokens, n_layers * width), or None."""
        keys = [_hash_words(words) for words in sequences]
        stored = self._store.get(set(keys))
        arrays: List[Optional[NDArray]] = []
        for key, words in zip(keys, sequences):
            data = stored.get(key)
            found = None if data is None else np.frombuffer(data, self.dtype)
            if found is None or len(words) == 0 or found.size % len(words):
                self.n_misses += 1
                arrays.append(None)
            else:
                self.n_hits += 1
                arrays.append(found.reshape(len(words), -1).astype(np.float32))
        return arrays

    def put(self, sequences: Sequence[Sequence[str]], arrays: Sequence[NDArray]) -> None:
        """sequences (Sequence[Sequence[str]]): words. arrays (Sequence[NDArray]): float32,
        as from `get`. Kept while there is room."""
        items = [
            (_hash_words(words), len(words), array.astype(self.dtype).tobytes())
            for words, array in zip(sequences, arrays)
        ]
        self._store.put(items)

    def __deepcopy__(self, memo: Dict[int, Any]) -> None:
        return None

    def __reduce__(self) -> Tuple[Any, ...]:
        return _make_nothing, ()


def _make_nothing() -> None:
    return None


def _hash_words(words: Sequence[str]) -> bytes:
    # Lengths first: no two lists of words make the same bytes.
    text = f"{[len(word) for word in words]}{''.join(words)}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Memory:
    def __init__(self, n_bytes_most: int) -> None:
        self.n_bytes_left = n_bytes_most
        self.data: Dict[bytes, bytes] = {}

    def get(self, keys: Iterable[bytes]) -> Dict[bytes, bytes]:
        return {key: self.data[key] for key in keys if key in self.data}

    def put(self, items: Iterable[Tuple[bytes, int, bytes]]) -> None:
        for key, _, data in items:
            if key not in self.data and len(data) <= self.n_bytes_left:
                self.data[key] = data
                self.n_bytes_left -= len(data)


class _Disk:
    """A SQLite file: several processes may read and write it, and a process that is
    killed leaves it whole. Each entry has a checksum of its own."""

    def __init__(self, path: Path, n_bytes_most: int) -> None:
        self.path = path
        self.n_bytes_most = n_bytes_most
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._create()
        except sqlite3.OperationalError as err:
            # Locked, or no place for a file: nothing is read, nothing thrown away.
            logger.warning(Warnings.WL008.format(path=self.path, error=err))
        except sqlite3.DatabaseError as err:
            self._start_over(err)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_TIMEOUT, isolation_level=None)
        # A power cut may lose what was written last, which is then computed once more.
        connection.execute("PRAGMA synchronous=OFF")
        return connection

    def _create(self) -> None:
        with closing(self._connect()) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(_SCHEMA)

    def _start_over(self, err: Exception) -> None:
        logger.warning(Warnings.WL007.format(path=self.path, error=err))
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        self._create()

    def get(self, keys: Iterable[bytes]) -> Dict[bytes, bytes]:
        wanted = list(keys)
        found: Dict[bytes, bytes] = {}
        try:
            with closing(self._connect()) as connection:
                for start in range(0, len(wanted), _N_KEYS):
                    part = wanted[start : start + _N_KEYS]
                    marks = ",".join("?" * len(part))
                    query = f"SELECT key, checksum, data FROM layers WHERE key IN ({marks})"
                    for key, checksum, data in connection.execute(query, part):
                        if isinstance(data, bytes) and zlib.crc32(data) == checksum:
                            found[key] = data
        except sqlite3.OperationalError:
            # Locked for too long: what is not found is computed.
            return found
        except sqlite3.DatabaseError as err:
            self._start_over(err)
        return found

    def put(self, items: Iterable[Tuple[bytes, int, bytes]]) -> None:
        n_bytes = self.path.stat().st_size if self.path.exists() else 0
        rows = []
        for key, n_tokens, data in items:
            n_bytes += len(data)
            if n_bytes > self.n_bytes_most:
                break
            rows.append((key, n_tokens, zlib.crc32(data), data))
        if not rows:
            return
        try:
            with closing(self._connect()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT OR REPLACE INTO layers VALUES (?, ?, ?, ?)", rows)
                connection.execute("COMMIT")
        except sqlite3.OperationalError as err:
            # A full disk or a long wait: training goes on without.
            logger.warning(Warnings.WL008.format(path=self.path, error=err))
        except sqlite3.DatabaseError as err:
            self._start_over(err)


def build_activation_cache_v1(
    path: Optional[str] = None, megabytes: int = 4000, dtype: str = "float32"
) -> ActivationCache:
    """Keep the layers of a frozen biLM while training, so that epochs after the first read
    them. For [initialize.components.elmo.activation_cache]; a saved pipeline has none.

    path (Optional[str]): folder for a file, which a later run or another process goes on
        with; None for memory.
    megabytes (int): most that is kept.
    dtype (str): "float32", or "float16": half the space, and layers rounded to 11 bits.
    RETURNS (ActivationCache): the cache.
    RAISES (ValueError): EL012 for a negative size, EL017 for another type.
    """
    return ActivationCache(None if path is None else Path(path), megabytes, dtype)
