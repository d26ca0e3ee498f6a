"""What is read is never half written."""

import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.writing import file_beside, folder_beside, write_beside

OTHER = """
import sys
from pathlib import Path
from spacy_elmo.writing import write_beside
write_beside(Path(sys.argv[1]), b"theirs")
"""


def test_a_file_is_there_whole_or_as_it_was(tmp_path):
    path = tmp_path / "text.txt"
    write_beside(path, b"before")
    with pytest.raises(KeyboardInterrupt), file_beside(path) as beside:
        assert beside.parent == path.parent and beside.suffix == path.suffix
        beside.write_bytes(b"aft")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
    write_beside(path, b"after")
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


def test_another_process_may_write_the_same_file(tmp_path, monkeypatch):
    path, write_bytes = tmp_path / "x", Path.write_bytes

    def write_and_wait(self, content):
        write_bytes(self, content)
        subprocess.run([sys.executable, "-c", OTHER, path], check=True)
        assert path.read_bytes() == b"theirs"

    monkeypatch.setattr(Path, "write_bytes", write_and_wait)
    write_beside(path, b"ours")

    assert path.read_bytes() == b"ours"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_there_whole_or_as_it_was(tmp_path):
    folder = tmp_path / "weights"
    with folder_beside(folder) as beside:
        (beside / "old").touch()
    with pytest.raises(KeyboardInterrupt), folder_beside(folder) as beside:
        (beside / "half").touch()
        raise KeyboardInterrupt
    assert [path.name for path in folder.iterdir()] == ["old"]
    with folder_beside(folder) as beside:
        assert not list(beside.iterdir())
        (beside / "new").touch()
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [folder]
