"""Layers of a frozen biLM, kept from one epoch to the next."""

import logging
import sqlite3
import threading
import zlib
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Protocol, Sequence, Set, Tuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ..errors import Warnings
from ..utils import require_known, require_least

logger = logging.getLogger("spacy_elmo")

# Of a sequence: its key, and its layers as bytes.
Item = Tuple[bytes, bytes]
Items = Dict[bytes, bytes]

# Keys of one query; SQLite's oldest limit is 999.
_N_KEYS = 500
# Seconds that a process waits for another one's write.
_TIMEOUT = 60.0
# Files of another version are started over.
_VERSION = 3
_SCHEMA = "CREATE TABLE layers (key BLOB PRIMARY KEY, checksum INTEGER, data BLOB)"
# What comes and goes, or is wrong with the place and not with the file.
_OUTER = ("locked", "busy", "unable to open", "readonly", "disk I/O", "full", "interrupted")
_FAILED = (sqlite3.Error, OSError, UnicodeError, OverflowError)


class LayerStore(Protocol):
    """Something that keeps items, while there is room. `is_full` is True once there was none."""

    is_full: bool

    def get(self, keys: Sequence[bytes]) -> Items: ...

    def put(self, items: Sequence[Item]) -> None: ...


class LayerMemory:
    """Keep items in memory.

    n_bytes_most (int): of the layers.
    """

    def __init__(self, n_bytes_most: int) -> None:
        self.n_bytes_left = n_bytes_most
        self.items: Items = {}
        self.is_full = False

    def get(self, keys: Sequence[bytes]) -> Items:
        """RETURNS (Items): those that are kept."""
        return {key: self.items[key] for key in keys if key in self.items}

    def put(self, items: Sequence[Item]) -> None:
        """Keep items, while there is room."""
        for key, data in items:
            if key in self.items:
                continue
            if len(data) > self.n_bytes_left:
                self.is_full = True
                break
            self.items[key] = data
            self.n_bytes_left -= len(data)


class LayerFile:
    """Keep items in a file: several processes may read and write it, and a process that is
    killed leaves it whole. Each item has a checksum of its key and layers. A
    damaged file is started over (WL007); where no file can be, nothing is kept (WL008).

    path (Path): the file.
    n_bytes_most (int): of the file.
    """

    def __init__(self, path: Path, n_bytes_most: int) -> None:
        self.path = path
        self.n_bytes_most = n_bytes_most
        self.is_full = False
        self._is_readable = True
        self._is_writable = True
        if not self._attempt(self._create):
            self._is_readable = self._is_writable = False

    def get(self, keys: Sequence[bytes]) -> Items:
        """RETURNS (Items): those that are kept, as they were written."""
        items: Items = {}
        if self._is_readable:
            self._is_readable = self._attempt(lambda: self._select(keys, items))
        return items

    def put(self, items: Sequence[Item]) -> None:
        """Keep items, while there is room."""
        if self._is_writable:
            self._is_writable = self._attempt(lambda: self._insert(items))

    def _attempt(self, work: Callable[[], None]) -> bool:
        """RETURNS (bool): Whether it is worth to try again, later."""
        try:
            work()
            return True
        except _FAILED as err:
            if not _is_damage(err):
                logger.warning(Warnings.WL008.format(path=self.path, error=err))
                return False
            logger.warning(Warnings.WL007.format(path=self.path, error=err))
        try:
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            self._create()
            return True
        except _FAILED as err:
            logger.warning(Warnings.WL008.format(path=self.path, error=err))
            return False

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=_TIMEOUT, isolation_level=None)
        with closing(connection):
            # Damage may make text of anything.
            connection.text_factory = bytes
            # A power cut may lose what was written last, which is then computed once more.
            connection.execute("PRAGMA synchronous=OFF")
            yield connection

    def _create(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connect() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if n_tables == 0:
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA user_version={_VERSION}")
            elif version != _VERSION:
                raise sqlite3.DatabaseError(f"it is of version {version}")
            connection.execute("COMMIT")

    def _select(self, keys: Sequence[bytes], items: Items) -> None:
        with self._connect() as connection:
            for start in range(0, len(keys), _N_KEYS):
                part = keys[start : start + _N_KEYS]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, checksum, data FROM layers WHERE key IN ({marks})"
                for key, checksum, data in connection.execute(query, part):
                    if _are_bytes(key, data) and checksum == _sum(key, data):
                        items[key] = data

    def _insert(self, items: Sequence[Item]) -> None:
        n_bytes = self.path.stat().st_size if self.path.exists() else 0
        rows: List[Tuple[bytes, int, bytes]] = []
        for key, data in items:
            n_bytes += len(data)
            if n_bytes > self.n_bytes_most:
                self.is_full = True
                break
            rows.append((key, _sum(key, data), data))
        if not rows:
            return
        with self._connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO layers VALUES (?, ?, ?)", rows)
            connection.execute("COMMIT")


def _is_damage(err: Exception) -> bool:
    if isinstance(err, OSError):
        return False
    is_operational = isinstance(err, sqlite3.OperationalError)
    return not (is_operational and any(part in str(err) for part in _OUTER))


def _are_bytes(key: Any, data: Any) -> bool:
    return isinstance(key, bytes) and isinstance(data, bytes)


def _sum(key: bytes, data: bytes) -> int:
    # Of both: layers of another sequence are as wrong as damaged ones.
    return zlib.crc32(data, zlib.crc32(key))


logger = logging.getLogger("spacy_elmo")

STORAGE_TYPES = {"float32": np.float32, "float16": np.float16}
# Sequences whose first prediction is noted. Layers of so many would fill some GB.
_N_NOTED = 200_000


class ActivationCache:
    """Keep layers in memory, or in files. See `build_activation_cache_v1`.

    Copies and pickles are empty and keep nothing: a cache belongs to a training run.
    """

    def __init__(self, path: Optional[Path], megabytes: int, dtype: str) -> None:
        require_known("dtype", dtype, list(STORAGE_TYPES))
        require_least("megabytes", megabytes, 0)
        self.path = path
        self.n_bytes_most = megabytes * 1_000_000
        self.dtype = np.dtype(STORAGE_TYPES[dtype])
        self._lock = threading.Lock()
        self._opened: WeakValueDictionary[bytes, KeptLayers] = WeakValueDictionary()

    def open(self, weights_key: bytes) -> "KeptLayers":
        """Find what is kept for a biLM.

        weights_key (bytes): hash of its weights and of how it is run.
        RETURNS (KeptLayers): the same for all that ask with this key; kept in memory as long
            as somebody holds it.
        """
        with self._lock:
            kept = self._opened.get(weights_key)
            if kept is None:
                kept = KeptLayers(self._make_store(weights_key), self.dtype, self._warn_full)
                self._opened[weights_key] = kept
            return kept

    def _make_store(self, weights_key: bytes) -> LayerStore:
        if self.path is None:
            return LayerMemory(self.n_bytes_most)
        name = f"{weights_key.hex()[:32]}-{self.dtype.name}.sqlite"
        return LayerFile(self.path / name, self.n_bytes_most)

    def _warn_full(self) -> None:
        place = "memory" if self.path is None else f"'{self.path}'"
        megabytes = self.n_bytes_most // 1_000_000
        logger.warning(Warnings.WL043.format(place=place, megabytes=megabytes))

    def __deepcopy__(self, memo: Dict[int, Any]) -> None:
        return None

    def __reduce__(self) -> Tuple[Any, ...]:
        return _make_nothing, ()


def _make_nothing() -> None:
    return None


class KeptLayers:
    """Layers of one biLM that are kept.

    store (LayerStore): where.
    dtype (np.dtype): what they are stored as.
    warn_full (Callable[[], None]): called once, when there is no more room.
    """

    def __init__(self, store: LayerStore, dtype: np.dtype, warn_full: Callable[[], None]) -> None:
        self.store = store
        self.dtype = dtype
        self._warn_full: Optional[Callable[[], None]] = warn_full
        self.n_hits = 0
        self.n_misses = 0
        self._noted: Set[bytes] = set()

    def get(self, sequences: Sequence[Sequence[str]]) -> List[Optional[NDArray]]:
        """sequences (Sequence[Sequence[str]]): words. RETURNS (List[Optional[NDArray]]):
        for each float32 of shape (n_tokens, n_layers * width), or None."""
        keys = [_hash_words(words) for words in sequences]
        stored = self.store.get(list(dict.fromkeys(keys)))
        arrays = [
            self._read(stored[key], len(words)) if key in stored else None
            for key, words in zip(keys, sequences)
        ]
        n_hits = sum(array is not None for array in arrays)
        self.n_hits += n_hits
        self.n_misses += len(arrays) - n_hits
        return arrays

    def _read(self, data: bytes, n_tokens: int) -> Optional[NDArray]:
        if n_tokens == 0 or len(data) % (n_tokens * self.dtype.itemsize):
            return None
        X = np.frombuffer(data, self.dtype).reshape(n_tokens, -1)
        return X.astype(np.float32)

    def choose(self, sequences: Sequence[Sequence[str]], *, is_train: bool) -> List[int]:
        """Choose what is worth keeping: all that is trained on, and what is predicted a second
        time. A dev set comes again, and so do docs that a frozen component annotates; what
        a trained pipeline reads later mostly does not.

        sequences (Sequence[Sequence[str]]): words; they are not kept yet.
        is_train (bool): whether they are trained on.
        RETURNS (List[int]): places in `sequences`.
        """
        if is_train:
            return list(range(len(sequences)))
        keys = [_hash_words(words) for words in sequences]
        again = [i for i, key in enumerate(keys) if key in self._noted]
        if len(self._noted) + len(keys) > _N_NOTED:
            self._noted = set()
        self._noted.update(keys)
        return again

    def put(self, sequences: Sequence[Sequence[str]], arrays: Sequence[NDArray]) -> None:
        """sequences (Sequence[Sequence[str]]): words. arrays (Sequence[NDArray]): float32,
        as from `get`. Kept while there is room."""
        items = [
            (_hash_words(words), array.astype(self.dtype).tobytes())
            for words, array in zip(sequences, arrays)
        ]
        self.store.put(items)
        if self.store.is_full and self._warn_full is not None:
            self._warn_full()
            self._warn_full = None


def _hash_words(words: Sequence[str]) -> bytes:
    # Lengths first: no two lists of words make the same bytes.
    text = f"{[len(word) for word in words]}{''.join(words)}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def build_activation_cache_v1(
    path: Optional[str] = None, megabytes: int = 4000, dtype: str = "float32"
) -> ActivationCache:
    """Keep the layers of a frozen biLM while training, so that epochs after the first read
    them. For [initialize.components.elmo.activation_cache]; a saved pipeline has none. What
    is only predicted (dev sets, and docs of frozen components) is kept when it comes a second
    time.

    path (Optional[str]): folder for a file of each biLM, which later runs and other processes
        use, too; None for memory.
    megabytes (int): most that is kept of a biLM.
    dtype (str): "float32", or "float16": half the space, and layers rounded to 11 bits.
    RETURNS (ActivationCache): the cache.
    RAISES (ValueError): EL012 for a negative size, EL017 for another type.
    """
    return ActivationCache(None if path is None else Path(path), megabytes, dtype)
