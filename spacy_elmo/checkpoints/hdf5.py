"""Untrusted HDF5 files: datasets by their names, nothing from outside the file.

HDF5 lets a file name others that hold its numbers (external storage, virtual datasets,
links), which its library reads without asking. It also lists a group whose index loops
until the stack is full, where it looks a name up in bounded time (HDF5 2.0). So names are
looked up, and what was found is checked before it is read.
"""

import mmap
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ..errors import Errors
from ..files import require_file
from ..utils import show_name, show_reason

try:
    import h5py
except ImportError:  # the extra "allennlp"
    h5py = None

_FLOATS = ("f2", "f4", "f8")
# A biLM's datasets lie five groups deep; the largest possible one has some 1,000.
_MOST_DEPTH = 8
_MOST_ENTRIES = 5_000
# A node of a group's index with further nodes below: beyond 128 entries.
_DEEP_INDEX = re.compile(rb"TREE\x00[^\x00]", re.DOTALL)


class HDF5File(NamedTuple):
    """An open file. Made by `open_hdf5`.

    path (Path): where it lies.
    size (int): in bytes.
    root (Any): h5py's identifier of the first group.
    """

    path: Path
    size: int
    root: Any


class HDF5Dataset(NamedTuple):
    """A dataset that holds its own numbers.

    path (Path): of the file.
    name (str): with the groups above it.
    shape (Tuple[int, ...]): its shape.
    dtype (str): NumPy's name of its type, "other" for types that NumPy does not have.
    id (Any): h5py's identifier.
    """

    path: Path
    name: str
    shape: Tuple[int, ...]
    dtype: str
    id: Any


@contextmanager
def open_hdf5(path: Path) -> Iterator[HDF5File]:
    """Open a file for reading.

    path (Path): the file.
    YIELDS (HDF5File): closed afterwards.
    RAISES (ValueError): EL100 or EL101 if there is no file, EL033 if it cannot be read.
    """
    size = require_file(path)
    with translate_errors(path):
        file = h5py.File(path, "r")
    with file:
        with translate_errors(path):
            root = file["/"].id
        yield HDF5File(path, size, root)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """path (Path): what is read inside. RAISES (ValueError): EL033 for whatever h5py raises
    at damaged files: errors of the system, of keys, of types, of text, of memory."""
    try:
        yield
    except Exception as err:
        text = Errors.EL033.format(path=path, error=show_reason(err))
        raise ValueError(text) from err


def find_dataset(file: HDF5File, name: str) -> Optional[HDF5Dataset]:
    """Look a dataset up. Nothing but its description is read.

    file (HDF5File): the file.
    name (str): with the groups above it, "a/b".
    RETURNS (Optional[HDF5Dataset]): the dataset; None if there is none of this name.
    RAISES (ValueError): EL108 if it or a group above it is a link, or its numbers are
        somewhere else; EL033 if the file is damaged.
    """
    entry, parts = file.root, name.split("/")
    for i, part in enumerate(parts):
        if not isinstance(entry, h5py.h5g.GroupID):
            return None
        place = "/".join(parts[: i + 1])
        entry = _open_entry(file.path, entry, part.encode("utf-8"), place)
    if not isinstance(entry, h5py.h5d.DatasetID):
        return None
    _require_own_numbers(file.path, name, entry)
    with translate_errors(file.path):
        return HDF5Dataset(file.path, name, entry.shape or (), _name_dtype(entry), entry)


def _open_entry(path: Path, group: Any, name: bytes, place: str) -> Any:
    """The entry of a group: h5py's identifier, None if there is none."""
    with translate_errors(path):
        if not group.links.exists(name):
            return None
        kind = group.links.get_info(name).type
    if kind != h5py.h5l.TYPE_HARD:
        raise ValueError(Errors.EL108.format(name=place, path=path, kind="a link"))
    with translate_errors(path):
        return h5py.h5o.open(group, name)


def _require_own_numbers(path: Path, name: str, dataset: Any) -> None:
    # Before anything else is read: even the shape of a virtual dataset may come from other
    # files.
    with translate_errors(path):
        settings = dataset.get_create_plist()
        is_virtual = settings.get_layout() == h5py.h5d.VIRTUAL
        n_external = settings.get_external_count()
    if is_virtual or n_external:
        kind = "a virtual dataset" if is_virtual else "stored in another file"
        raise ValueError(Errors.EL108.format(name=show_name(name), path=path, kind=kind))


def _name_dtype(dataset: Any) -> str:
    dtype = dataset.get_type()
    for name in _FLOATS:
        if any(dtype.equal(h5py.h5t.py_create(np.dtype(order + name))) for order in "<>"):
            return np.dtype(name).name
    try:
        name = str(dtype.dtype)
    except (TypeError, ValueError):
        return "other"
    # Floating-point numbers of another layout, which HDF5 would convert.
    return "other" if name.startswith("float") else name


def list_datasets(file: HDF5File) -> List[str]:
    """List all datasets, to find those that nobody expects.

    file (HDF5File): the file.
    RETURNS (List[str]): their names, with the groups above them; nothing for a file with an
        index of several levels, which no biLM needs and which might loop.
    RAISES (ValueError): EL108 for links, EL110 for more groups than a biLM can have, EL033
        if the file is damaged.
    """
    names: List[str] = []
    n_entries = 0
    groups = [] if _has_deep_index(file) else [("", file.root)]
    while groups:
        prefix, group = groups.pop()
        entries = _list_group(file.path, group)
        n_entries += len(entries)
        if n_entries > _MOST_ENTRIES:
            _refuse_count(file.path, f"more than {_MOST_ENTRIES} entries", _MOST_ENTRIES)
        for entry in entries:
            name = prefix + _show(entry)
            opened = _open_entry(file.path, group, entry, name)
            if not isinstance(opened, h5py.h5g.GroupID):
                names.append(name)
            elif name.count("/") == _MOST_DEPTH:
                _refuse_count(file.path, f"groups {_MOST_DEPTH + 1} deep", _MOST_DEPTH)
            else:
                groups.append((f"{name}/", opened))
    return names


def _refuse_count(path: Path, found: str, most: int) -> None:
    raise ValueError(Errors.EL110.format(path=path, found=found, most=most))


def _list_group(path: Path, group: Any) -> List[bytes]:
    entries: List[bytes] = []

    def add(entry: bytes) -> Optional[bool]:
        entries.append(entry)
        return True if len(entries) > _MOST_ENTRIES else None  # stops

    with translate_errors(path):
        # In the file's own order: for any other one, HDF5 makes a table of all first.
        group.links.iterate(add, order=h5py.h5.ITER_NATIVE)
    for entry in entries:
        # Would be taken for a path, which may lead through links.
        if b"/" in entry or entry == b".":
            text = Errors.EL108.format(name=_show(entry), path=path, kind="a path")
            raise ValueError(text)
    return entries


def _has_deep_index(file: HDF5File) -> bool:
    with (
        file.path.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return _DEEP_INDEX.search(content) is not None


def _show(name: bytes) -> str:
    return show_name(name.decode("utf-8", "backslashreplace"))
