"""Files of tensors: checked before they are read, the same bytes each time."""

import json
import os
import struct

import pytest
import safetensors
import safetensors.torch
import torch

from spacy_elmo.bilm.weights import TensorHeader
from spacy_elmo.checkpoints.tensors import (
    parse_tensors,
    read_headers,
    read_metadata,
    read_tensors,
    write_tensors,
)

from ..support.limits import finish_limited, refuse_limited

STATE = {"b": torch.arange(6.0).view(2, 3), "a": torch.tensor([1, 2]), "empty": torch.zeros(0, 3)}
NOTES = {f"note {i}": f'"ä\n{i}' for i in range(20)}


@pytest.fixture
def path(tmp_path):
    write_tensors(tmp_path / "a.safetensors", STATE, metadata=NOTES)
    return tmp_path / "a.safetensors"


def write_header(path, header, n_bytes=None, data=b""):
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    n_bytes = len(content) if n_bytes is None else n_bytes
    path.write_bytes(struct.pack("<Q", n_bytes) + content + data)


def test_what_is_written_is_read(path):
    assert read_headers(path) == {
        "a": TensorHeader((2,), "int64"),
        "b": TensorHeader((2, 3), "float32"),
        "empty": TensorHeader((0, 3), "float32"),
    }
    assert read_metadata(path) == NOTES
    state = read_tensors(path)
    assert list(map(str, state)) == sorted(STATE)
    assert all(torch.equal(state[name], tensor) for name, tensor in STATE.items())
    # By the library alone, too.
    assert torch.equal(safetensors.torch.load_file(path)["b"], STATE["b"])


def test_equal_tensors_and_notes_are_equal_bytes(tmp_path):
    """The library writes notes in the order of a hash that differs from call to call."""
    contents = set()
    for i in range(20):
        notes = dict(sorted(NOTES.items(), reverse=i % 2))
        write_tensors(tmp_path / "b", STATE, metadata=notes)
        contents.add((tmp_path / "b").read_bytes())
    assert len(contents) == 1


def test_types_are_cast_and_named(tmp_path):
    path = tmp_path / "a"
    for dtype, name in ((torch.float16, "float16"), (torch.bfloat16, "bfloat16")):
        write_tensors(
            path, {"x": torch.tensor([0.5, 65504.0 if dtype == torch.float16 else 1.0])}, dtype
        )
        assert read_headers(path)["x"].dtype == name
        assert read_tensors(path)["x"].dtype == torch.float32
    others = {"f": torch.zeros(1, dtype=torch.float8_e4m3fn), "u": torch.zeros(1, dtype=torch.bool)}
    safetensors.torch.save_file({**others, "d": torch.zeros(1).double()}, path)
    found = {name: header.dtype for name, header in read_headers(path).items()}
    assert found == {"f": "F8_E4M3", "u": "BOOL", "d": "float64"}


def test_a_file_may_change_after_it_was_read(path):
    state = read_tensors(path)
    path.write_bytes(b"")
    assert torch.equal(state["b"], STATE["b"])


@pytest.mark.parametrize("value, count", [(1e39, 2), (float("nan"), 1), (float("-inf"), 1)])
def test_what_is_no_number_is_refused_by_name(tmp_path, value, count):
    tensor = torch.tensor([[0.0, 1.0], [value, value if count == 2 else 0.0]], dtype=torch.float64)
    safetensors.torch.save_file({"x": tensor}, tmp_path / "a")
    with pytest.raises(ValueError, match=rf"EL106.*'x'.* {count} of them.*\[1, 0\]"):
        read_tensors(tmp_path / "a")


def test_what_16_bits_cannot_hold_is_not_written(path):
    before = path.read_bytes()
    tensor = torch.tensor([1.0, -65504.0, 65536.0])
    with pytest.raises(ValueError, match=r"EL107.*'x'.*16 bits: 1 .*65504.*65536.* at \[2\]"):
        write_tensors(path, {"x": tensor}, torch.float16)
    with pytest.raises(ValueError, match="EL106.*'x' in the model to write"):
        write_tensors(path, {"x": torch.tensor([float("nan")])}, torch.float16)
    assert path.read_bytes() == before


HEADERS = {
    "nothing": (b"", 0),
    "no json": (b"{", None),
    "no object": (b"[]", None),
    "length of gigabytes": (b"{}", 1 << 32),
    "length of the largest number": (b"{}", (1 << 64) - 1),
    "beyond the file": (b"{}", 1000),
    "no shape": ({"x": {"dtype": "F32"}}, None),
    "no tensor": ({"x": 3}, None),
    "another type": ({"x": {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}}, None),
    "more than the file": (
        {"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}},
        None,
    ),
    "more than 64 bits": (
        {"x": {"dtype": "F32", "shape": [1 << 63, 4], "data_offsets": [0, 0]}},
        None,
    ),
    "backwards": ({"x": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}, None),
    "nested": (b'{"a":' * 100_000, None),
}


@pytest.mark.parametrize("header, n_bytes", HEADERS.values(), ids=HEADERS)
def test_hostile_headers_are_refused(tmp_path, header, n_bytes):
    path = tmp_path / "a"
    write_header(path, header, n_bytes)

    for read in (read_headers, read_metadata, read_tensors):
        assert "EL033" in refuse_limited(lambda read=read: read(path))
    with pytest.raises(ValueError, match="EL033.*here"):
        parse_tensors(path.read_bytes(), "here")


def test_a_file_of_names_takes_as_much_as_it_has(tmp_path):
    header = {
        f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(50_000)
    }
    write_header(tmp_path / "a", header)
    finish_limited(lambda: read_headers(tmp_path / "a"))


def test_pipes_folders_and_nothing_are_told(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for read in (read_headers, read_metadata, read_tensors):
        for path, code in (
            (tmp_path, "EL101"),
            (tmp_path / "pipe", "EL101"),
            (tmp_path / "x", "EL100"),
        ):
            with pytest.raises(ValueError, match=code):
                read(path)


def test_types_that_torch_lacks_are_told():
    header = json.dumps({"x": {"dtype": "F8_E8M0", "shape": [1], "data_offsets": [0, 1]}}).encode()
    with pytest.raises(ValueError, match="EL033"):
        parse_tensors(struct.pack("<Q", len(header)) + header + b"\0", "here")
