"""The files of an index: each named by the digest of its content, and never changed.

So what a reader has opened stays as it is, what was written before a process was killed
does no harm, and damage is detected by the name alone.
"""

import os
import re
from contextlib import suppress
from hashlib import blake2b
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import AbstractSet, Any, BinaryIO, List, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors
from ..files import atomic_file, digest_file

# Kinds of content and the endings of their files.
SUFFIXES = {"words": ".jsonl", "vectors": ".npy", "transform": ".npy", "counts": ".json"}
META_FILE = "index.json"
_NAMED = re.compile(rf"({'|'.join(SUFFIXES)})-[0-9a-f]{{32}}\.(jsonl|npy|json)")
# Of a process that was killed while it wrote.
_PARTIAL = re.compile(rf"(index|({'|'.join(SUFFIXES)})-[0-9a-f]{{32}})\.\d+\.partial\.\w+")

Content = Union[bytes, memoryview]


def get_name(kind: str, digest: str) -> str:
    """kind (str): key of `SUFFIXES`. digest (str): of the content. RETURNS (str): of the
    file."""
    return f"{kind}-{digest}{SUFFIXES[kind]}"


def get_path(folder: Path, kind: str, digest: str) -> Path:
    """folder (Path): of the index. kind, digest: see `get_name`. RETURNS (Path): of the
    file."""
    return folder / get_name(kind, digest)


def write_content(folder: Path, kind: str, parts: Sequence[Content]) -> str:
    """Write a file, unless it is there.

    folder (Path): of the index.
    kind (str): key of `SUFFIXES`.
    parts (Sequence[Content]): bytes, put end to end.
    RETURNS (str): their digest.
    RAISES (OSError): if it cannot be written.
    """
    running = blake2b(digest_size=16)
    for part in parts:
        running.update(part)
    path = get_path(folder, kind, running.hexdigest())
    if not (path.is_file() and digest_file(path) == running.hexdigest()):
        with atomic_file(path) as temporary, temporary.open("wb") as file:
            for part in parts:
                file.write(part)
    return running.hexdigest()


def check_content(folder: Path, kind: str, digest: str) -> Path:
    """Check that a file is what was written.

    RETURNS (Path): of the file.
    RAISES (ValueError): EL140 if it is not.
    RAISES (FileNotFoundError): if it is gone.
    """
    path = get_path(folder, kind, digest)
    try:
        is_right = digest_file(path) == digest
    except ValueError as err:
        # Not whether it is there by now: another writer may have just written it again.
        if isinstance(err.__cause__, FileNotFoundError):
            raise FileNotFoundError(path) from err
        raise damaged(folder, f"{path.name} cannot be read") from err
    if not is_right:
        raise damaged(folder, f"{path.name} is not what was written")
    return path


def damaged(folder: Path, problem: str) -> ValueError:
    """RETURNS (ValueError): EL140."""
    return ValueError(Errors.EL140.format(path=folder, problem=problem))


def to_npy(X: NDArray) -> List[Content]:
    """X (NDArray): any array. RETURNS (List[Content]): NumPy's format, without a copy."""
    header = BytesIO()
    X = np.ascontiguousarray(X)
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(X))
    return [header.getvalue(), X.data.cast("B")]


def map_npy(path: Path, dtype: str, n_rows: int, width: int) -> NDArray:
    """Map a checked file. Its header is not trusted: an index may come from anywhere.

    path (Path): in NumPy's format.
    dtype (str), n_rows (int), width (int): what it must contain.
    RETURNS (NDArray): shape (n_rows, width), read from the disk as it is used.
    RAISES (ValueError): EL140 if it holds anything else.
    RAISES (FileNotFoundError): if it is gone.
    """
    expected = ((n_rows, width), False, np.dtype(dtype))
    with path.open("rb") as file:
        header = _read_header(file)
        start, size = file.tell(), file.seek(0, SEEK_END)
        if header != expected or size != start + n_rows * width * expected[2].itemsize:
            problem = f"{path.name} holds {header}, expected {expected}"
            raise damaged(path.parent, problem)
        return np.memmap(file, dtype=dtype, mode="r", offset=start, shape=(n_rows, width))


def _read_header(file: BinaryIO) -> Any:
    """RETURNS (Any): Shape, whether columns lie together, type; or what is wrong."""
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            return "another version of NumPy's format"
        return np.lib.format.read_array_header_1_0(file)
    # NumPy reads it as Python: errors of the syntax, of tokens, of types and of numbers.
    except Exception as err:
        return f"no header of NumPy's ({type(err).__name__})"


def remove_others(folder: Path, names: AbstractSet[str]) -> None:
    """Remove the files of killed processes, and those that are no longer valid. Files of other
    kinds stay. (Windows cannot remove open files; the next writer does.)

    folder (Path): of an index, locked.
    names (AbstractSet[str]): of the files that are valid.
    """
    for name in os.listdir(folder):
        if name not in names and (_NAMED.fullmatch(name) or _PARTIAL.fullmatch(name)):
            with suppress(OSError):
                (folder / name).unlink()


def is_index_folder(folder: Path) -> bool:
    """folder (Path): any. RETURNS (bool): Whether it is that of an index."""
    return (folder / META_FILE).is_file() and any(map(_NAMED.fullmatch, os.listdir(folder)))


def find_foreign(folder: Path) -> List[str]:
    """folder (Path): any. RETURNS (List[str]): names in it that no index has, hidden ones
    left out."""
    return sorted(
        name
        for name in os.listdir(folder)
        if name[0] != "." and not (_NAMED.fullmatch(name) or _PARTIAL.fullmatch(name))
    )
