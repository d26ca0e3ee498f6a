"""Where layers are kept: in memory, or in a file of SQLite."""

import logging
import sqlite3
import zlib
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Protocol, Sequence, Tuple

from ..errors import Warnings

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
