"""The numbers of HDF5 datasets: read into memory of a known size, with their digests."""

import math
import zlib
from hashlib import blake2b
from itertools import product
from typing import Any, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..bilm.weights import check_numbers
from ..errors import Errors
from .hdf5 import HDF5Dataset, HDF5File, h5py, translate_errors

# A dataset's attribute, which other readers of HDF5 pass over.
DIGEST = "blake2b"
_DIGEST_BYTES = 16
_UNWRITTEN = "numbers of it were never written"
# Compressed weights have more than half of their size. Files that are mostly zeros, as
# those of tests, are small.
_MOST_RATIO = 8
_FREE_BYTES = 16_000_000
_CHUNK_BYTES = 512
_FREE_CHUNKS = 1_000


class Storage(NamedTuple):
    """How a dataset is stored.

    chunk (Tuple[int, ...]): shape of the blocks that are compressed each for itself; ()
        for numbers in a row.
    filters (Tuple[int, ...]): what was done to each block, in the order of writing.
    """

    chunk: Tuple[int, ...]
    filters: Tuple[int, ...]


def check_sizes(file: HDF5File, datasets: Sequence[HDF5Dataset]) -> None:
    """Compare what reading would take with what the file has.

    file (HDF5File): the file.
    datasets (Sequence[HDF5Dataset]): all that will be read.
    RAISES (ValueError): EL109 for a storage that is not read, EL110 if the numbers are many
        times larger than the file, EL033 if the file is damaged.
    """
    n_bytes = n_chunks = 0
    for dataset in datasets:
        chunk = _find_storage(dataset).chunk
        counts = _count_chunks(dataset.shape, chunk)
        n_chunks += math.prod(counts)
        n_bytes += math.prod(counts) * math.prod(chunk or dataset.shape) * _item_size(dataset)
    for amount, unit, most in (
        (n_bytes, "bytes of numbers", _MOST_RATIO * file.size + _FREE_BYTES),
        (n_chunks, "blocks", file.size // _CHUNK_BYTES + _FREE_CHUNKS),
    ):
        if amount > most:
            text = f"{amount} {unit} in {file.size} bytes"
            raise ValueError(Errors.EL110.format(path=file.path, found=text, most=most))


def _find_storage(dataset: HDF5Dataset) -> Storage:
    with translate_errors(dataset.path):
        settings = dataset.id.get_create_plist()
        layout = settings.get_layout()
        chunk = settings.get_chunk() if layout == h5py.h5d.CHUNKED else ()
        filters = tuple(settings.get_filter(i)[0] for i in range(settings.get_nfilters()))
        is_missing = layout == h5py.h5d.CONTIGUOUS and dataset.id.get_offset() is None
    problem = ""
    if not set(filters) <= {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE}:
        problem = f"it has the HDF5 filters {', '.join(map(str, filters))}"
    elif is_missing and all(dataset.shape):
        problem = _UNWRITTEN
    if problem:
        raise _make_error(dataset, problem)
    return Storage(chunk, filters)


def _make_error(dataset: HDF5Dataset, problem: str) -> ValueError:
    return ValueError(Errors.EL109.format(name=dataset.name, path=dataset.path, problem=problem))


def _item_size(dataset: HDF5Dataset) -> int:
    return np.dtype(dataset.dtype).itemsize


def _count_chunks(shape: Tuple[int, ...], chunk: Tuple[int, ...]) -> List[int]:
    """Blocks along each axis; none for numbers in a row, which are one block."""
    return [-(-size // step) for size, step in zip(shape, chunk)]


def read_numbers(dataset: HDF5Dataset) -> NDArray:
    """Read the numbers of a dataset whose size was checked.

    dataset (HDF5Dataset): of floating-point numbers.
    RETURNS (NDArray): its shape, float32.
    RAISES (ValueError): EL033 if they cannot be read, EL109 if there are none, EL106 for what
        is no number, EL111 if they are not those that were written.
    """
    storage = _find_storage(dataset)
    if storage.chunk:
        with translate_errors(dataset.path):
            n_chunks = dataset.id.get_num_chunks()
        if n_chunks < math.prod(_count_chunks(dataset.shape, storage.chunk)):
            raise _make_error(dataset, _UNWRITTEN)
    with translate_errors(dataset.path):
        array = _read_chunks(dataset, storage) if storage.chunk else _read_row(dataset)
        digest = _read_digest(dataset.id)
    if digest and digest != make_digest(array):
        raise ValueError(Errors.EL111.format(name=dataset.name, path=dataset.path))
    with np.errstate(over="ignore"):
        array = array.astype(np.float32, copy=False)
    check_numbers(dataset.name, torch.from_numpy(array), str(dataset.path))
    return array


def _read_row(dataset: HDF5Dataset) -> NDArray:
    return np.ascontiguousarray(h5py.Dataset(dataset.id)[...])


def _read_chunks(dataset: HDF5Dataset, storage: Storage) -> NDArray:
    # Block by block: HDF5's own decompression takes as much memory as a block asks for.
    dtype = dataset.id.dtype
    array = np.empty(dataset.shape, dtype)
    for start in _list_starts(dataset.shape, storage.chunk):
        mask, content = dataset.id.read_direct_chunk(start)
        # A set bit says that a filter was left out for this block.
        filters = [code for i, code in enumerate(storage.filters) if not mask >> i & 1]
        n_bytes = math.prod(storage.chunk) * dtype.itemsize
        content = _undo(content, filters, n_bytes, dtype.itemsize)
        block = np.frombuffer(content, dtype).reshape(storage.chunk)
        place = tuple(slice(i, i + n) for i, n in zip(start, storage.chunk))
        # A block at the edge is stored whole.
        inside = tuple(slice(0, size - i) for i, size in zip(start, dataset.shape))
        array[place] = block[inside]
    return array


def _list_starts(shape: Tuple[int, ...], chunk: Tuple[int, ...]) -> Iterator[Tuple[int, ...]]:
    return product(*(range(0, size, step) for size, step in zip(shape, chunk)))


def _undo(content: bytes, filters: Sequence[int], n_bytes: int, item_size: int) -> bytes:
    """The bytes of a block before its filters. RAISES (ValueError): if they are not as many
    as they should be."""
    for code in reversed(filters):
        if code == h5py.h5z.FILTER_DEFLATE:
            content = _decompress(content, n_bytes)
        else:
            # All first bytes of the numbers, then all second ones, ...
            shuffled = np.frombuffer(content, np.uint8).reshape(item_size, -1)
            content = shuffled.T.tobytes()
    if len(content) != n_bytes:
        raise ValueError(f"a block has {len(content)} bytes, expected {n_bytes}")
    return content


def _decompress(content: bytes, n_bytes: int) -> bytes:
    stream = zlib.decompressobj()
    # One more than expected, to meet the checksum at the end; a bomb goes no further.
    result = stream.decompress(content, n_bytes + 1)
    if not stream.eof:
        raise ValueError(f"a block is cut off, or has more than {n_bytes} bytes")
    return result


def make_digest(array: NDArray) -> bytes:
    """array (NDArray): floating-point numbers. RETURNS (bytes): the digest of these numbers in
    little-endian order, in hexadecimal."""
    content = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return blake2b(content.data, digest_size=_DIGEST_BYTES).hexdigest().encode("ascii")


def _read_digest(dataset: Any) -> bytes:
    """The digest that was written with a dataset; nothing for files of others."""
    name = DIGEST.encode("ascii")
    if not h5py.h5a.exists(dataset, name):
        return b""
    attribute = h5py.h5a.open(dataset, name)
    dtype = attribute.get_type()
    n_bytes = 2 * _DIGEST_BYTES
    if not isinstance(dtype, h5py.h5t.TypeStringID) or dtype.is_variable_str():
        raise ValueError(f"the attribute {DIGEST} is no text")
    if dtype.get_size() != n_bytes or attribute.shape != ():
        raise ValueError(f"the attribute {DIGEST} has not {n_bytes} letters")
    value = np.empty((), f"S{n_bytes}")
    attribute.read(value)
    return bytes(value[()])
