"""The standard input of a job: saved once, and compared when it comes again."""

import io

import pytest

from spacy_elmo.bulk import saved_stdin
from spacy_elmo.bulk.job_files import JOB
from spacy_elmo.bulk.saved_stdin import save_stdin


def save(folder, content, format="txt"):
    return save_stdin(folder, format, io.BytesIO(content)).read_bytes()


@pytest.mark.parametrize("content", [b"one\n", bytes(range(256)) * 8192, b"a" * (1 << 20)])
def test_only_the_same_text_is_taken_again(tmp_path, content):
    assert save(tmp_path, content) == content
    assert save(tmp_path, content) == save(tmp_path, b"") == content
    for other in (b"two\n", content + b"x", content[:-1], content[:-1] + b"x"):
        with pytest.raises(ValueError, match="EL298.*'_stdin.txt'"):
            save(tmp_path, other)
    assert save(tmp_path, b"") == content


def test_a_terminal_is_not_asked_again(tmp_path, monkeypatch):
    save(tmp_path, b"one\n")
    terminal = io.BytesIO(b"two\n")
    terminal.isatty = lambda: True
    assert save_stdin(tmp_path, "txt", terminal).read_bytes() == b"one\n"
    monkeypatch.setattr(saved_stdin.sys, "stdin", None)
    assert save_stdin(tmp_path, "txt").read_bytes() == b"one\n"


def test_what_cannot_be_the_input_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="EL157"):
        save(tmp_path, b"")
    with pytest.raises(ValueError, match="EL017"):
        save(tmp_path, b"x", "csv")
    (tmp_path / JOB).touch()
    with pytest.raises(ValueError, match="EL246.*the standard input: new"):
        save(tmp_path, b"x")
    assert [path.name for path in tmp_path.iterdir()] == [JOB]
    (tmp_path / "_stdin.jsonl").touch()
    with pytest.raises(ValueError, match="EL245.*input_format = txt.*jsonl"):
        save(tmp_path, b"x")
    monkeypatch.setattr(saved_stdin.sys, "stdin", None)
    (tmp_path / "new").mkdir()
    with pytest.raises(ValueError, match="EL157"):
        save_stdin(tmp_path / "new", "txt")
