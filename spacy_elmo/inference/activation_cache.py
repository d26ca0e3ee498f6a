"""Layers of a frozen biLM, kept from one epoch to the next, in memory or in a file of SQLite.

Nothing that feeds a frozen biLM changes between epochs, so neither do its layers. They are keyed
by the weights and the words of a sequence. A full cache stays as it is, since an epoch that reads
everything in turn would throw out what it needs next.
"""

import logging
import sqlite3
import threading
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Union
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ..errors import Warnings
from ..utils import require_known, require_least

logger = logging.getLogger("spacy_elmo")

# Of a sequence: its key, and its layers as bytes.
Items = Dict[bytes, bytes]

STORAGE_TYPES = {"float32": np.float32, "float16": np.float16}
# Sequences whose first prediction is noted. Their layers would fill some GB.
_N_NOTED = 200_000
# Keys of one query; SQLite's oldest limit is 999.
_N_KEYS = 500
# Seconds that a process waits for another one's write.
_TIMEOUT = 60.0


class ActivationCache:
    """Keep layers in memory, or in files. See `build_activation_cache_v1`.

    Copies and pickles are None: a cache belongs to a training run.
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
        """Layers of the biLM with this hash, the same object in each call."""
        with self._lock:
            kept = self._opened.get(weights_key)
            if kept is None:
                store: LayerStore = LayerMemory(self.n_bytes_most)
                if self.path is not None:
                    name = f"{weights_key.hex()[:32]}-{self.dtype.name}.layers"
                    store = LayerFile(self.path / name, self.n_bytes_most)
                kept = self._opened[weights_key] = KeptLayers(store, self.dtype)
            return kept

    def __reduce__(self) -> Tuple[Any, ...]:
        return _make_nothing, ()


def _make_nothing() -> None:
    return None


class KeptLayers:
    """Layers of one biLM, kept in a store. WL043 is logged once, when that is full."""

    def __init__(self, store: "LayerStore", dtype: np.dtype) -> None:
        self.store = store
        self.dtype = dtype
        self.n_hits = 0
        self.n_misses = 0
        self._has_warned = False
        self._noted: Set[bytes] = set()

    def get(self, sequences: Sequence[Sequence[str]]) -> List[Optional[NDArray]]:
        """Look up the layers of sequences of at least one word: for each float32, shape (n_tokens,
        n_layers * width), or None."""
        keys = [_hash_words(words) for words in sequences]
        stored = self.store.get(list(dict.fromkeys(keys)))
        arrays: List[Optional[NDArray]] = [None] * len(keys)
        for i, (key, words) in enumerate(zip(keys, sequences)):
            if key in stored:
                X = np.frombuffer(stored[key], self.dtype).reshape(len(words), -1)
                arrays[i] = X.astype(np.float32)
        n_hits = sum(array is not None for array in arrays)
        self.n_hits += n_hits
        self.n_misses += len(arrays) - n_hits
        return arrays

    def choose(self, sequences: Sequence[Sequence[str]], *, is_train: bool) -> List[int]:
        """Choose the places of sequences that are worth keeping: all that are trained on, and those
        predicted a second time, as a dev set is. A trained pipeline mostly reads texts once."""
        if is_train:
            return list(range(len(sequences)))
        keys = [_hash_words(words) for words in sequences]
        again = [i for i, key in enumerate(keys) if key in self._noted]
        if len(self._noted) + len(keys) > _N_NOTED:
            self._noted = set()
        self._noted.update(keys)
        return again

    def put(self, sequences: Sequence[Sequence[str]], arrays: Sequence[NDArray]) -> None:
        """Keep arrays, as from `get`, while there is room."""
        content = [array.astype(self.dtype).tobytes() for array in arrays]
        self.store.put(dict(zip(map(_hash_words, sequences), content)))
        if self.store.is_full and not self._has_warned:
            self._has_warned = True
            megabytes = self.store.n_bytes_most // 1_000_000
            logger.warning(Warnings.WL043.format(place=self.store.place, megabytes=megabytes))


def _hash_words(words: Sequence[str]) -> bytes:
    # Lengths first: no two lists of words make the same bytes.
    text = f"{[len(word) for word in words]}{''.join(words)}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class LayerMemory:
    """Keep items in memory, while there is room."""

    place = "memory"

    def __init__(self, n_bytes_most: int) -> None:
        self.n_bytes_most = self.n_bytes_left = n_bytes_most
        self.items: Items = {}
        self.is_full = False

    def get(self, keys: Sequence[bytes]) -> Items:
        return {key: self.items[key] for key in keys if key in self.items}

    def put(self, items: Items) -> None:
        for key, data in items.items():
            if key in self.items:
                continue
            if len(data) > self.n_bytes_left:
                self.is_full = True
                break
            self.items[key] = data
            self.n_bytes_left -= len(data)


class LayerFile:
    """Keep items in a file, while there is room. Several processes may use it. If it cannot be
    used, WL007 is logged, and nothing is kept."""

    def __init__(self, path: Path, n_bytes_most: int) -> None:
        self.path = path
        self.place = f"'{path.parent}'"
        self.n_bytes_most = n_bytes_most
        self.is_full = False
        self._is_usable = True
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect()) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                schema = "CREATE TABLE IF NOT EXISTS layers (key BLOB PRIMARY KEY, data BLOB)"
                connection.execute(schema)
        except (sqlite3.Error, OSError) as err:
            self._give_up(err)

    def get(self, keys: Sequence[bytes]) -> Items:
        if not self._is_usable:
            return {}
        items: Items = {}
        try:
            with closing(self._connect()) as connection:
                for start in range(0, len(keys), _N_KEYS):
                    part = keys[start : start + _N_KEYS]
                    marks = ",".join("?" * len(part))
                    query = f"SELECT key, data FROM layers WHERE key IN ({marks})"
                    items.update(connection.execute(query, part).fetchall())
        except sqlite3.Error as err:
            self._give_up(err)
            return {}
        return items

    def put(self, items: Items) -> None:
        if not self._is_usable:
            return
        try:
            n_bytes = self.path.stat().st_size
            rows: List[Tuple[bytes, bytes]] = []
            for key, data in items.items():
                n_bytes += len(data)
                if n_bytes > self.n_bytes_most:
                    self.is_full = True
                    break
                rows.append((key, data))
            with closing(self._connect()) as connection, connection:
                connection.executemany("INSERT OR REPLACE INTO layers VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as err:
            self._give_up(err)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_TIMEOUT)
        # A power cut may lose the last layers, which are then computed once more.
        connection.execute("PRAGMA synchronous=OFF")
        return connection

    def _give_up(self, error: Exception) -> None:
        self._is_usable = False
        logger.warning(Warnings.WL007.format(path=self.path, error=error))


LayerStore = Union[LayerMemory, LayerFile]


def build_activation_cache_v1(
    path: Optional[str] = None, megabytes: int = 4000, dtype: str = "float32"
) -> ActivationCache:
    """Keep the layers of a frozen biLM while training, so that epochs after the first read
    them. For [initialize.components.elmo.activation_cache]; a saved pipeline has none. What
    is only predicted (dev sets, and docs of frozen components) is kept when it is predicted a
    second time.

    path (Optional[str]): folder for a file of each biLM, which later runs and other processes
        use, too; None for memory.
    megabytes (int): most that is kept of a biLM.
    dtype (str): "float32", or "float16": half the space, and layers rounded to 11 bits.
    RETURNS (ActivationCache): the cache.
    RAISES (ValueError): EL012 for a negative size or another type.
    """
    return ActivationCache(None if path is None else Path(path), megabytes, dtype)
