"""What is read is never half written."""

import pytest

from spacy_elmo.writing import file_beside, folder_beside, write_beside


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
