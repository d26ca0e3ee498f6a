"""Mutations that keep the structure of a format, so that they come past its parser.

`mutate` looks at what the bytes are (several files in one, JSON, lines of it, msgpack, safetensors,
compressed data, NumPy's arrays, a config) and changes something inside of it; or the bytes.
"""

import gzip
import json
import lzma
import struct
import zlib
from random import Random
from typing import Any, Callable, Dict, List, Optional

from srsly.msgpack import _Packer, _unpackb

from spacy_elmo.text.text_files import zstd

from .trees import mutate_tree

# What several files in one begin with, see `bundle`.
_BUNDLE = b"BUNDLE"
_MOST_BYTES = 1_000_000
_TOKENS = (
    b"\0", b"\n", b"\n\n", b"\r", b"\t", b" ", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"(",
    b")", b"*", b"-", b"_", b"#", b"[", b"]", b"{", b"}", b'"', b"$", b"${", b"%", b"@", b"=", b"|",
    b"0", b"-1", b"99999999999999999999", b"nan", b"1e999", b"null", b"O", b"B-", b"I-X", b"\\",
)  # fmt: skip
_LENGTH = struct.Struct("<Q")
Mutate = Callable[[bytes, Random], bytes]


def bundle(files: Dict[str, bytes]) -> bytes:
    """Several files as one input."""
    return _BUNDLE + _Packer(use_bin_type=True).pack(dict(sorted(files.items())))


def unbundle(data: bytes) -> Dict[str, bytes]:
    """The files of an input; none if it has none."""
    try:
        assert data.startswith(_BUNDLE)
        files = _unpackb(data[len(_BUNDLE) :], raw=False)
        return {name: content for name, content in files.items() if isinstance(content, bytes)}
    except Exception:  # the fuzzer's own mutations
        return {}


def mutate(data: bytes, rng: Random) -> bytes:
    """Change an input in one to four places. RETURNS at most a megabyte."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        changed = _mutate_once(data, rng)
        data = changed if len(changed) <= _MOST_BYTES else data
    return data


def _mutate_once(data: bytes, rng: Random) -> bytes:
    if data.startswith(_BUNDLE):
        return _mutate_files(data, rng)
    if rng.random() < 0.75:
        for attempt in _FORMATS:
            try:
                changed = attempt(data, rng)
            except Exception:  # other content than this format's
                continue
            if changed is not None:
                return changed
    return mutate_bytes(data, rng)


def _mutate_files(data: bytes, rng: Random) -> bytes:
    files = unbundle(data)
    if not files:
        return data
    name, other = rng.choice(sorted(files)), rng.choice(sorted(files))
    kind = rng.random()
    if kind < 0.02:
        del files[name]
    elif kind < 0.04:
        files[name], files[other] = files[other], files[name]
    else:
        files[name] = _mutate_once(files[name], rng)
    return bundle(files)


def mutate_bytes(data: bytes, rng: Random) -> bytes:
    """Change bytes, or lines, wherever they are."""
    place, other = (rng.randrange(len(data) + 1) for _ in range(2))
    first, last = min(place, other), max(place, other)
    kind = rng.randrange(9)
    if kind == 0 and data:
        flipped = bytearray(data)
        flipped[place % len(data)] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    if kind == 1:
        return data[:place] + bytes(rng.randrange(256) for _ in range(rng.choice([1, 2, 8])))
    if kind == 2:
        return data[:first] + data[min(last, first + rng.choice([1, 2, 8, 64])) :]
    if kind == 3:
        return data[:place] + rng.choice(_TOKENS) * rng.choice([1, 1, 1, 3, 2000]) + data[place:]
    if kind == 4:
        return data[:place] + rng.choice(_TOKENS) + data[place + rng.choice([1, 2]) :]
    if kind == 5:
        return data[:last] + data[first:last] * rng.choice([1, 2]) + data[last:]
    if kind == 6:
        return data[:place]
    return _mutate_lines(data, rng) if b"\n" in data else data[:place] + data[place + 1 :]


def _mutate_lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    i, k = (rng.randrange(len(lines)) for _ in range(2))
    kind = rng.randrange(4)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines[i], lines[k] = lines[k], lines[i]
    elif kind == 2:
        lines.insert(i, lines[k])
    else:
        cells = lines[i].split(b"\t") if b"\t" in lines[i] else lines[i].split(b" ")
        cells[rng.randrange(len(cells))] = rng.choice([*_TOKENS, rng.choice(cells)])
        lines[i] = (b"\t" if b"\t" in lines[i] else b" ").join(cells)
    return b"\n".join(lines)


def _in_tree(tree: Any, rng: Random) -> Any:
    return mutate_tree(tree, rng, lambda part: _mutate_once(part, rng))


def _json(data: bytes, rng: Random) -> Optional[bytes]:
    tree = json.loads(data)
    if not isinstance(tree, (dict, list)):
        return None
    return json.dumps(_in_tree(tree, rng), default=lambda _: None).encode("utf-8")


def _json_lines(data: bytes, rng: Random) -> Optional[bytes]:
    lines = data.split(b"\n")
    i = rng.choice([i for i, line in enumerate(lines) if line[:1] in (b"{", b"[")])
    changed = _json(lines[i], rng)
    if changed is None:
        return None
    lines[i] = changed
    return b"\n".join(lines)


def _settings(data: bytes, rng: Random) -> Optional[bytes]:
    """Lines of a config, "key = value" with a value in JSON."""
    lines = data.split(b"\n")
    i = rng.choice([i for i, line in enumerate(lines) if b" = " in line])
    key, _, value = lines[i].partition(b" = ")
    tree = _in_tree([json.loads(value)], rng)
    changed = json.dumps(tree[0] if tree else None, default=lambda _: None).encode("utf-8")
    lines[i] = key + b" = " + changed
    return b"\n".join(lines)


def _msgpack(data: bytes, rng: Random) -> Optional[bytes]:
    if not data or data[0] < 0x80:  # a number: any byte is one
        return None
    tree = _unpackb(data, raw=False, strict_map_key=False)
    if not isinstance(tree, (dict, list)):
        return None
    packer = _Packer(use_bin_type=True, unicode_errors="surrogatepass")
    return packer.pack(_in_tree(tree, rng))


def _safetensors(data: bytes, rng: Random) -> Optional[bytes]:
    (n_bytes,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size + n_bytes
    header = json.loads(data[_LENGTH.size : start])
    if rng.random() < 0.3:
        return data[:start] + mutate_bytes(data[start:], rng)
    changed = json.dumps(_in_tree(header, rng), default=lambda _: None).encode("utf-8")
    changed += b" " * (-len(changed) % 8)
    return _LENGTH.pack(len(changed)) + changed + data[start:]


def _compressed(data: bytes, rng: Random) -> Optional[bytes]:
    for magic, unpack, pack in (
        (b"\x1f\x8b", gzip.decompress, lambda content: gzip.compress(content, 1)),
        (b"\xfd7zXZ", lzma.decompress, lambda content: lzma.compress(content, preset=0)),
        (b"\x28\xb5\x2f\xfd", getattr(zstd, "decompress", None), getattr(zstd, "compress", None)),
        (b"\x78", zlib.decompress, zlib.compress),
    ):
        if data.startswith(magic) and unpack is not None:
            return pack(_mutate_once(unpack(data), rng))
    return None


_FORMATS: List[Callable[[bytes, Random], Optional[bytes]]] = [
    _compressed,
    _json,
    _json_lines,
    _settings,
    _safetensors,
    _msgpack,
]
