"""Files: bounded reads, atomic writes, locks, digests."""

import errno
import json
import logging
import os
import re
import shutil
import stat
import sys
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Collection, Dict, Iterable, Iterator, Mapping, Optional

import srsly
from filelock import FileLock, Timeout
from srsly import msgpack

from .errors import Errors, Warnings

# A description of a shape has 1 kB; a corpus's counts some MB.
JSON_BYTES = 200_000_000


def require_file(path: Path) -> int:
    """Check that a path can be read as a file: opening a pipe would wait for a writer.

    path (Path): the path.
    RETURNS (int): its size in bytes.
    RAISES (ValueError): EL100 if there is nothing, EL101 for a folder, pipe or device.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as err:
        raise ValueError(Errors.EL100.format(path=path)) from err
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
        raise ValueError(Errors.EL101.format(path=path, kind=kind))
    return status.st_size


def read_file(path: Path, most: int) -> bytes:
    """Read a whole file.

    path (Path): the file.
    most (int): bytes that it can have.
    RETURNS (bytes): the content.
    RAISES (ValueError): EL100 and EL101 as `require_file`, EL102 if it is larger, EL103
        if it cannot be read.
    """
    size = require_file(path)
    if size > most:
        raise ValueError(Errors.EL102.format(path=path, size=size, most=most))
    try:
        return path.read_bytes()
    except OSError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err


def read_json(path: Path, *, most: int = JSON_BYTES) -> Any:
    """Read JSON in UTF-8.

    path (Path): the file.
    most (int): bytes that it can have.
    RETURNS (Any): the content.
    RAISES (ValueError): EL100 to EL103 as `read_file`, EL103 also for other content.
    """
    try:
        return parse_json(read_file(path, most))
    except ContentError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err


def read_json_object(path: Path, *, most: int = JSON_BYTES) -> dict[str, Any]:
    """As `read_json`, for a file that must hold an object (`{...}`).

    RAISES (ValueError): as `read_json`, EL103 also for other content.
    """
    try:
        return parse_json_object(read_file(path, most))
    except ContentError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err


class ContentError(Exception):
    """What is wrong with the content of a file; its text becomes part of a message."""


def parse_json(content: bytes) -> Any:
    """content (bytes): JSON in UTF-8. RETURNS (Any): what it says. RAISES (ContentError): if it
    is none."""
    try:
        # Python's own parser: srsly's takes "1e" and the like for numbers.
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as err:
        raise ContentError(f"it is no text in UTF-8 at byte {err.start}") from err
    except json.JSONDecodeError as err:
        raise ContentError(f"it is no JSON at line {err.lineno}, column {err.colno}") from err
    except (ValueError, RecursionError) as err:
        raise ContentError(f"it is no JSON: {err}") from err


def parse_json_object(content: bytes) -> dict[str, Any]:
    """As `parse_json`, for an object (`{...}`). RAISES (ContentError): also for anything else."""
    value = parse_json(content)
    if not isinstance(value, dict):
        raise ContentError(f"it holds {type(value).__name__}, expected an object {{...}}")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} stands for a number")


def is_system_error(err: BaseException) -> bool:
    """err (BaseException): of a library that reads a file. RETURNS (bool): Whether the system
    raised it. Libraries raise OSErrors for damaged content, too, but without an error number."""
    return isinstance(err, OSError) and err.errno is not None


logger = logging.getLogger("spacy_elmo")

LOCK_FILE = ".lock"
_SECONDS = 0.2


@contextmanager
def lock_folder(folder: Path, *, wait: bool) -> Iterator[None]:
    """Lock a folder for writing. Readers take no lock.

    folder (Path): to be written to; the file .lock stays in it.
    wait (bool): whether to wait for another writer, with a warning WL024.
    RAISES (ValueError): EL143 if there is another writer and `wait` is false.
    RAISES (OSError): if the folder is not writable.
    """
    lock = FileLock(str(folder / LOCK_FILE))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not wait:
            raise ValueError(Errors.EL143.format(path=folder)) from None
        logger.warning(Warnings.WL024.format(path=folder))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lock_name(path: Path) -> Iterator[None]:
    """Lock a name that is to be written, such as that of a folder which is replaced as a whole.

    path (Path): absolute. Its sibling .NAME.lock is there as long as the lock is.
    RAISES (ValueError): EL143 if there is another writer.
    RAISES (OSError): if the folder above it is not writable.
    """
    sibling = path.with_name(f".{path.name}{LOCK_FILE}")
    lock = FileLock(str(sibling))
    try:
        # One that has just been released, and removed, is taken at the second attempt.
        lock.acquire(timeout=_SECONDS)
    except Timeout:
        raise ValueError(Errors.EL143.format(path=path)) from None
    try:
        yield
    finally:
        # Before it is released: who waits for it looks whether it is still there.
        with suppress(OSError):
            sibling.unlink(missing_ok=True)
        lock.release()


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically.

    path (Path): where.
    content (bytes): what.
    RAISES (OSError): if it cannot be written; the old content is kept then.
    """
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically.

    path (Path): where; folders above it are made.
    content (Any): in JSON's types.
    RAISES (OSError): as `write_file`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, srsly.json_dumps(content, indent=2).encode("utf-8"))


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Write a file to a temporary sibling, which is renamed at the end and removed after an
    error. If several processes write the same file, the last one wins. Its permissions stay what
    they were.

    path (Path): where. A device or a pipe, such as /dev/stdout, is written into.
    YIELDS (Path): the temporary file to write, with the same suffix.
    RAISES (OSError): as `write_file`.
    """
    if _is_device(path):
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


def _is_device(path: Path) -> bool:
    if path.exists() and not path.is_file() and not path.is_dir():
        return True
    # Open files by another name, such as /dev/stdout, may be regular ones, and must not be
    # replaced for that. A disk in memory, /dev/shm, is one like others.
    where = path.absolute()
    return where.parent in (Path("/dev"), Path("/dev/fd")) or where.parts[1:2] == ("proc",)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Write a folder to a temporary sibling, which replaces the folder at the end. After an
    error the old folder is kept; a process that is killed between the two renames leaves it
    as NAME.previous, which `find_folder` finds.

    The temporary name, .NAME.partial, is always the same, so that the next writer removes what a
    killed one left: weights are large. It is a hidden one, which no folder of a user's has.

    folder (Path): where.
    YIELDS (Path): an empty folder to write into.
    RAISES (ValueError): EL143 if another process is writing it.
    RAISES (OSError): if it cannot be written; the old content is kept then.
    """
    folder, previous = _resolve(folder), name_previous(folder)
    temporary = folder.with_name(f".{folder.name}.partial")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as err:
        reason = os.strerror(errno.ENOTDIR)
        raise NotADirectoryError(errno.ENOTDIR, reason, str(folder.parent)) from err
    with lock_name(folder):
        if not folder.exists() and previous.exists():
            previous.rename(folder)
        shutil.rmtree(temporary, ignore_errors=True)
        if previous.exists():
            _discard(previous, temporary)
        temporary.mkdir()
        try:
            yield temporary
            for path in [*temporary.rglob("*"), temporary]:
                _flush(path)
            _replace_folder(temporary, folder, previous)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _replace_folder(temporary: Path, folder: Path, previous: Path) -> None:
    # No system renames a folder over another one, and removing a folder is not atomic: the
    # old one is renamed first.
    if folder.exists():
        folder.rename(previous)
    try:
        temporary.rename(folder)
    except BaseException:
        if previous.exists() and not folder.exists():
            previous.rename(folder)
        raise
    _flush(folder.parent)
    if previous.exists():
        with suppress(OSError):
            _discard(previous, temporary)


def _discard(previous: Path, temporary: Path) -> None:
    # Under the temporary name, so that a folder that a killed process has half removed is
    # never taken for a whole one.
    previous.rename(temporary)
    shutil.rmtree(temporary, ignore_errors=True)


def find_folder(folder: Path) -> Path:
    """Find what `atomic_folder` wrote.

    folder (Path): where.
    RETURNS (Path): the folder; NAME.previous if a writer was killed while it replaced it.
    """
    if folder.exists():
        return folder
    previous = name_previous(folder)
    return previous if previous.is_dir() else folder


def name_previous(folder: Path) -> Path:
    """folder (Path): where. RETURNS (Path): its sibling NAME.previous, to which `atomic_folder`
    renames the old folder, and which it deletes in the end."""
    folder = _resolve(folder)
    return folder.with_name(f"{folder.name}.previous")


def _resolve(path: Path) -> Path:
    # The target of a link is replaced, not the link; "." and ".." get a name.
    return Path(os.path.realpath(path))


def _flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    if path.is_dir():
        # Windows cannot open folders, and some network file systems cannot flush them.
        with suppress(OSError):
            _flush_handle(path, os.O_RDONLY)
    else:
        # Opened for writing: Windows flushes nothing else.
        _flush_handle(path, os.O_RDWR)


def _flush_handle(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


DIGESTS_FILE = "digests.json"
_N_BYTES = 1 << 20
# Pieces of a file that `digest_pieces` reads, and bytes of each.
_N_PIECES = 64
_PIECE = 1 << 16
# Up to so many bytes, they are the whole file.
MOST_OF_PIECES = _N_PIECES * _PIECE


def digest(content: bytes) -> str:
    """content (bytes): anything. RETURNS (str): its BLAKE2b of 16 bytes, in hexadecimal."""
    return blake2b(content, digest_size=16).hexdigest()


def digest_file(path: Path) -> str:
    """path (Path): a file. RETURNS (str): as `digest`, in bounded memory. RAISES
    (ValueError): EL100 or EL101 if it is none, EL103 if it cannot be read."""
    require_file(path)
    running = blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while part := file.read(_N_BYTES):
                running.update(part)
    except OSError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err
    return running.hexdigest()


def digest_pieces(path: Path) -> str:
    """path (Path): a file, of which a corpus may have terabytes. RETURNS (str): as `digest`, of all
    of a small file, and of pieces all over a large one. RAISES (OSError): if it cannot be read."""
    running = blake2b(digest_size=16)
    size = path.stat().st_size
    step = max(_PIECE, (size - _PIECE) // (_N_PIECES - 1))
    with path.open("rb") as file:
        for start in range(0, size, step):
            file.seek(min(start, max(0, size - _PIECE)))
            running.update(file.read(_PIECE))
    return running.hexdigest()


def write_digests(folder: Path) -> None:
    """Write digests.json with the digest of each file in a folder. To be called last.

    folder (Path): the temporary one of `atomic_folder`.
    """
    digests = {path.name: digest_file(path) for path in sorted(folder.iterdir()) if path.is_file()}
    digests.pop(DIGESTS_FILE, None)
    (folder / DIGESTS_FILE).write_bytes(srsly.json_dumps(digests).encode("utf-8"))


def check_digests(folder: Path, names: Iterable[str], *, known_only: bool = False) -> None:
    """Check files before they are used. A folder without digests, of an older version, passes.

    folder (Path): with digests.json, or without.
    names (Iterable[str]): the files that are used.
    known_only (bool): whether files that digests.json does not name pass: those that were
        added later.
    RAISES (ValueError): EL104 if one is not what was written, EL100 to EL103 if it or
        digests.json cannot be read.
    """
    digests = _read_digests(folder)
    if digests is None:
        return
    for name in names:
        if not known_only or name in digests:
            _require_same(folder, name, digests, digest_file(folder / name))


def check_contents(folder: Path, files: Mapping[str, bytes]) -> None:
    """As `check_digests`, for files that were read already.

    folder (Path): with digests.json, or without.
    files (Mapping[str, bytes]): name -> content, as it was read.
    RAISES (ValueError): EL104 if one is not what was written, EL100 to EL103 if digests.json
        cannot be read.
    """
    digests = _read_digests(folder)
    if digests is None:
        return
    for name, content in files.items():
        _require_same(folder, name, digests, digest(content))


def read_digests(folder: Path) -> Dict[str, Any]:
    """folder (Path): with digests.json, or without. RETURNS (Dict[str, Any]): name -> digest of
    each file that it names. RAISES (ValueError): EL100 to EL103 if it cannot be read."""
    return _read_digests(folder) or {}


def _read_digests(folder: Path) -> Optional[Dict[str, Any]]:
    path = folder / DIGESTS_FILE
    return read_json_object(path, most=_N_BYTES) if path.exists() else None


def _require_same(folder: Path, name: str, digests: Mapping[str, Any], found: str) -> None:
    if digests.get(name) != found:
        path = folder / DIGESTS_FILE
        raise ValueError(Errors.EL104.format(path=folder / name, digests=path))


def check_all_digests(folder: Path) -> bool:
    """Check every file that digests.json names.

    folder (Path): with digests.json, or without.
    RETURNS (bool): whether there is a digests.json.
    RAISES (ValueError): as `check_digests`.
    """
    path = folder / DIGESTS_FILE
    if not path.exists():
        return False
    check_digests(folder, read_json_object(path))
    return True


_HEAD = re.compile(rb'\{\n  "digest": "([0-9a-f]{32})",\n')


def write_checked_json(path: Path, content: Dict[str, Any], *, indent: Optional[int] = 2) -> None:
    """Write a JSON object atomically, with a first key "digest".

    path (Path): where; folders above it are made.
    content (Dict[str, Any]): in JSON's types, at least one key; numbers keep all digits.
    indent (Optional[int]): for readability; None is ten times as fast.
    RAISES (OSError): if it cannot be written; the old content is kept then.
    """
    body = _dump(content, indent).removeprefix(b"{").removeprefix(b"\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, b'{\n  "digest": "%s",\n%s' % (digest(body).encode("ascii"), body))


def _dump(content: Dict[str, Any], indent: Optional[int]) -> bytes:
    # Python's own: srsly's rounds numbers.
    try:
        text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # Half of a pair, as in the name of a file that is not in UTF-8.
        return json.dumps(content, indent=indent, allow_nan=False).encode("ascii")


def has_digest(path: Path) -> bool:
    """path (Path): a file. RETURNS (bool): Whether it begins as what `write_checked_json` wrote.
    RAISES (ValueError): EL100 to EL103 if it cannot be read."""
    return _HEAD.match(read_file(path, JSON_BYTES)) is not None


def read_checked_json(path: Path, *, required: bool = False) -> Dict[str, Any]:
    """Read what `write_checked_json` wrote, without the digest.

    path (Path): the file.
    required (bool): whether a file without a digest is refused, such as one of an older
        version, or one written by hand.
    RETURNS (Dict[str, Any]): the content.
    RAISES (ValueError): EL100 to EL103 if it cannot be read, EL142 if it is not what was
        written.
    """
    content = read_file(path, JSON_BYTES)
    head = _HEAD.match(content)
    if head is None and not required:
        parsed = _parse(content, path)
        if "digest" not in parsed:
            return parsed
    if head is None or head[1].decode("ascii") != digest(content[head.end() :]):
        raise ValueError(Errors.EL142.format(path=path))
    return _parse(b"{" + content[head.end() :], path)


def _parse(content: bytes, path: Path) -> Dict[str, Any]:
    try:
        return parse_json_object(content)
    except ContentError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err


# The parser allocates nested lists before their items are read, a thousand levels deep.
_MOST_ITEMS = 100_000


def unpack(data: bytes, source: str, *, most_items: int = _MOST_ITEMS) -> Any:
    """Read a message of msgpack, NumPy's arrays included.

    data (bytes): the message.
    source (str): what the message is, for the error.
    most_items (int): of a list or a table in it.
    RETURNS (Any): the content.
    RAISES (ValueError): EL116 if it cannot be read.
    """
    # Not `srsly.msgpack_loads`: after an error it leaves garbage collection disabled.
    try:
        return msgpack.loads(data, raw=False, max_array_len=most_items, max_map_len=most_items)
    except Exception as err:
        # The parser's own errors, and whatever NumPy raises for an array.
        error = str(err) or repr(err)
        raise ValueError(Errors.EL116.format(source=source, error=error)) from err


_DIGESTS = "digests"
# No limit, for a message that is in memory already.
ANY_SIZE = sys.maxsize


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, each atomically. The folder may hold others, which stay as they are with their
    digests, and is never replaced: a process that is killed in between leaves each file old or
    new, and no digests.

    folder (Path): where; made if need be.
    files (Mapping[str, bytes]): name -> content.
    RAISES (OSError): if one cannot be written; its old content is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    others: Dict[str, Any] = {}
    # A damaged one says nothing of the others.
    with suppress(ValueError):
        others = read_digests(folder)
    (folder / DIGESTS_FILE).unlink(missing_ok=True)
    for name, content in files.items():
        write_file(folder / name, content)
    write_json(folder / DIGESTS_FILE, {**others, **_get_digests(files)})


def read_files(folder: Path, most: Mapping[str, int]) -> Dict[str, bytes]:
    """Read what `write_files` wrote.

    folder (Path): where.
    most (Mapping[str, int]): name -> bytes that the file can have.
    RETURNS (Dict[str, bytes]): name -> content, of all names.
    RAISES (ValueError): EL104 if a file is not what was written, EL100 to EL103 if it
        cannot be read.
    """
    files = {name: read_file(folder / name, size) for name, size in most.items()}
    check_contents(folder, files)
    return files


def join_files(files: Mapping[str, bytes]) -> bytes:
    """files (Mapping[str, bytes]): name -> content. RETURNS (bytes): one message."""
    return srsly.msgpack_dumps({**files, _DIGESTS: _get_digests(files)})


def split_files(
    data: bytes, most: Mapping[str, int], source: str, *, optional: Collection[str] = ()
) -> Dict[str, bytes]:
    """Read a message of `join_files`.

    data (bytes): the message.
    most (Mapping[str, int]): the names that there can be -> bytes of each.
    source (str): what the message is, for errors.
    optional (Collection[str]): names that may be missing.
    RETURNS (Dict[str, bytes]): name -> content, of the names that are there.
    RAISES (ValueError): EL116 if it cannot be read, holds other names, or is not what was
        written.
    """
    message = unpack(data, source, most_items=len(most) + 1)
    if not isinstance(message, dict):
        raise _make_error(source, f"they hold {type(message).__name__}, expected files by name")
    digests = message.pop(_DIGESTS, None)
    files = {name: _read_content(content) for name, content in message.items()}
    for name, content in files.items():
        if name not in most:
            raise _make_error(source, f"they hold {name!r:.50}, expected {', '.join(most)}")
        if content is None or len(content) > most[name]:
            raise _make_error(source, f"'{name}' is no file of at most {most[name]} bytes")
    missing = [name for name in most if name not in files and name not in optional]
    if missing:
        raise _make_error(source, f"they lack {', '.join(missing)}")
    if digests is not None and digests != _get_digests(files):
        raise _make_error(source, "the digests are not those of the content")
    return files


def _read_content(content: Any) -> Any:
    # spaCy writes JSON as text.
    if isinstance(content, str):
        return content.encode("utf-8", errors="replace")
    return content if isinstance(content, bytes) else None


def _get_digests(files: Mapping[str, bytes]) -> Dict[str, str]:
    return {name: digest(content) for name, content in files.items()}


def _make_error(source: str, error: str) -> ValueError:
    return ValueError(Errors.EL116.format(source=source, error=error))
