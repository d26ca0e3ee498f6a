"""Files: bounded reads, atomic writes, locks and digests."""

import json
import os
import re
import shutil
import stat
import sys
from contextlib import contextmanager, nullcontext, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Optional

import srsly
from filelock import FileLock, Timeout
from srsly import msgpack

from .errors import Errors

DIGESTS_FILE = "digests.json"
LOCK_FILE = ".lock"
# Bytes that a JSON file may have: the counts of a corpus have some MB.
_MAX_JSON = 200_000_000
_BLOCK = 1 << 20
# Pieces of a file that `digest_pieces` reads, and bytes of each.
_N_PIECES = 64
_PIECE = 1 << 16
# The parser allocates nested lists before their items are read, a thousand levels deep.
_MOST_ITEMS = 100_000


# Reading


def require_file(path: Path) -> int:
    """Check that a path is a file (EL100), as opening a pipe would wait for a writer. RETURNS
    (int): its size in bytes."""
    try:
        status = path.stat()
    except (OSError, ValueError) as err:
        raise ValueError(Errors.EL100.format(path=path, found="")) from err
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
        raise ValueError(Errors.EL100.format(path=path, found=f", but {kind}"))
    return status.st_size


def read_file(path: Path, most: int = sys.maxsize) -> bytes:
    """Read a whole file of at most `most` bytes. RAISES (ValueError): EL100, or EL103 if it is
    larger or cannot be read."""
    size = require_file(path)
    if size > most:
        error = f"it has {size:,} bytes, more than the {most:,} that such a file can have"
        raise ValueError(Errors.EL103.format(path=path, error=error))
    try:
        return path.read_bytes()
    except OSError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err


def read_json_object(path: Path) -> Dict[str, Any]:
    """Read a file with a JSON object (`{...}`) in UTF-8. RAISES (ValueError): as `read_file`; EL103
    also for other content."""
    content = read_file(path, _MAX_JSON)
    try:
        return parse_json_object(content)
    except ValueError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err


def parse_json_object(content: bytes) -> Dict[str, Any]:
    """Parse a JSON object. RAISES (ValueError): for other content, with the reason alone."""
    try:
        # Python's own parser: srsly's accepts "1e" and the like as numbers.
        value = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as err:
        raise ValueError(f"it is not text in UTF-8 (byte {err.start})") from err
    except json.JSONDecodeError as err:
        raise ValueError(f"it is not JSON (line {err.lineno}, column {err.colno})") from err
    except (ValueError, RecursionError) as err:
        raise ValueError(f"it is not JSON: {err}") from err
    if not isinstance(value, dict):
        raise ValueError(f"it holds {type(value).__name__}, expected an object {{...}}")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} stands for a number")


def unpack(data: bytes, source: str, *, most_items: int = _MOST_ITEMS) -> Any:
    """Read a message of msgpack, which may contain NumPy arrays, in time and memory in proportion
    to its size. No list or table in it may have more than `most_items`. RAISES (ValueError): EL116
    if it cannot be read."""
    # Not `srsly.msgpack_loads`: after an error it leaves garbage collection disabled.
    try:
        return msgpack.loads(data, raw=False, max_array_len=most_items, max_map_len=most_items)
    except Exception as err:  # the parser's own errors, and whatever NumPy raises for an array
        raise ValueError(Errors.EL116.format(source=source, error=str(err) or repr(err))) from err


def is_system_error(err: BaseException) -> bool:
    """Whether the system raised an error. Libraries raise OSErrors for damaged content, too, but
    without an error number."""
    return isinstance(err, OSError) and err.errno is not None


# Writing


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically; folders above it are made. Numbers keep all digits, unlike srsly's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(content, indent=2, allow_nan=False).encode("utf-8"))


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Write a file to a temporary sibling, which is flushed to the disk and renamed at the end, and
    removed after an error. Readers find the old content or the new content, never a part of it. The
    permissions of an existing file are kept; a device or a pipe is written directly.
    YIELDS (Path): the file to write, with the same suffix."""
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path
        return
    path = _resolve(path)
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        yield temporary
        _flush(temporary)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _flush(path.parent)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Write a folder to a temporary sibling, which replaces the folder at the end. After an
    error the old folder is kept. No system renames a folder over another one, so the old one is
    renamed to NAME.previous first, which `find_folder` finds if the process is killed then.
    Missing folders above it are made. YIELDS (Path): an empty folder to write into."""
    folder, previous = _resolve(folder), name_previous(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Weights are large: remove what killed processes left.
    partial = re.compile(rf"\.{re.escape(folder.name)}\.\d+\.partial")
    for path in folder.parent.iterdir():
        if partial.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    if folder.exists():
        _discard(previous, temporary)
    temporary.mkdir()
    try:
        yield temporary
        for path in [*temporary.rglob("*"), temporary]:
            _flush(path)
        if folder.exists():
            folder.rename(previous)
        temporary.rename(folder)
    except BaseException:
        if previous.exists() and not folder.exists():
            previous.rename(folder)
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _flush(folder.parent)
    with suppress(OSError):
        _discard(previous, temporary)


def _discard(previous: Path, temporary: Path) -> None:
    # Renamed first, so that a half removed folder is never taken for a whole one.
    if previous.exists():
        previous.rename(temporary)
        shutil.rmtree(temporary, ignore_errors=True)


def find_folder(folder: Path) -> Path:
    """Find a folder of `atomic_folder`: NAME.previous if a writer was killed while it replaced
    it."""
    previous = name_previous(folder)
    return previous if not folder.exists() and previous.is_dir() else folder


def name_previous(folder: Path) -> Path:
    """Name the sibling NAME.previous of a folder."""
    folder = _resolve(folder)
    return folder.with_name(f"{folder.name}.previous")


def _resolve(path: Path) -> Path:
    # The target of a link is replaced, not the link; "." and ".." get a name.
    return Path(os.path.realpath(path))


def _flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    is_folder = path.is_dir()
    # Windows cannot open folders, and some network file systems cannot flush them.
    with suppress(OSError) if is_folder else nullcontext():
        # Windows flushes only files that are open for writing.
        handle = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def require_no_others(folder: Path, known: Iterable[str] = ()) -> None:
    """Refuse a folder that has other files than known and hidden ones, and a file in its place:
    they would be removed. RAISES (ValueError): EL141."""
    names = [folder.name] if folder.is_file() else []
    if folder.is_dir():
        names = [name for name in os.listdir(folder) if not name.startswith(".")]
    if others := sorted({*names} - {*known}):
        raise ValueError(Errors.EL141.format(path=folder, examples=", ".join(others[:3])))


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for writing; the system releases the lock when the process ends, and the file
    .lock stays. Readers take no lock. RAISES (ValueError): EL143 if there is another writer."""
    lock = FileLock(str(folder / LOCK_FILE))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ValueError(Errors.EL143.format(path=folder)) from None
    try:
        yield
    finally:
        lock.release()


# Digests: stored in digests.json when a folder is written, checked when its files are read. They
# detect damage by a bad disk or a broken download, but not changes on purpose.


def digest(content: bytes) -> str:
    """BLAKE2b of 16 bytes, in hexadecimal."""
    return blake2b(content, digest_size=16).hexdigest()


def digest_file(path: Path) -> str:
    """As `digest`, of a file, in bounded memory."""
    require_file(path)
    running = blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                running.update(block)
    except OSError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err
    return running.hexdigest()


def digest_pieces(path: Path) -> str:
    """As `digest`, of a file that may have terabytes: of the whole of a small one, of pieces all
    over a large one."""
    running = blake2b(digest_size=16)
    size = path.stat().st_size
    step = max(_PIECE, (size - _PIECE) // (_N_PIECES - 1))
    with path.open("rb") as file:
        for start in range(0, size, step):
            file.seek(min(start, max(0, size - _PIECE)))
            running.update(file.read(_PIECE))
    return running.hexdigest()


def write_digests(folder: Path) -> None:
    """Write digests.json with the digest of each other file in a folder."""
    digests = {path.name: digest_file(path) for path in sorted(folder.iterdir()) if path.is_file()}
    digests.pop(DIGESTS_FILE, None)
    (folder / DIGESTS_FILE).write_bytes(srsly.json_dumps(digests).encode("utf-8"))


def check_digests(folder: Path, names: Optional[Iterable[str]] = None) -> bool:
    """Check files of a folder, or all that digests.json names; others pass. RETURNS (bool): whether
    there is a digests.json. RAISES (ValueError): EL104 if a file is damaged."""
    digests, path = read_digests(folder), folder / DIGESTS_FILE
    for name in digests if names is None else names:
        if name in digests and digests[name] != digest_file(folder / name):
            raise ValueError(Errors.EL104.format(path=folder / name, digests=path))
    return path.exists()


def read_digests(folder: Path) -> Dict[str, Any]:
    """Read the digests of a folder by name; none if it has no digests.json."""
    path = folder / DIGESTS_FILE
    return read_json_object(path) if path.exists() else {}
