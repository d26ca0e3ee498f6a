"""Files of strangers: bounded, and with a message that names the file."""

import os

import pytest

from spacy_elmo.files import read_file, read_json, read_json_object, require_file


def test_a_file_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"ä": [1, null]}', "utf-8")
    assert read_json(path) == read_json_object(path) == {"ä": [1, None]}
    assert require_file(path) == len(read_file(path, 100))


@pytest.mark.parametrize("name", ["missing", "nul\0", "x" * 300])
def test_a_path_without_a_file(tmp_path, name):
    with pytest.raises(ValueError, match="EL100"):
        read_json(tmp_path / name)


def test_a_pipe_and_a_folder_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match="EL100"):
            read_file(path, 10)


def test_a_large_file_is_not_read(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing
    with pytest.raises(ValueError, match="EL103.*1099511627776 bytes"):
        read_file(path, 1000)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe{", b"NaN,", b"[" * 100_000, b'{"a": 1e}', b'{"a": NaN}', b"1" * 10_000],
    ids=["empty", "cut", "utf16", "trailing", "nested", "number", "nan", "huge"],
)
def test_what_is_no_json(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="EL103.*a.json"):
        read_json_object(path)


def test_json_that_is_no_object(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[1]")
    assert read_json(path) == [1]
    with pytest.raises(ValueError, match="EL103.*list"):
        read_json_object(path)
