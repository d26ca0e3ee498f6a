"""What is read is what was there before or what is there now, never a part of it."""

import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import srsly

from spacy_elmo.files import (
    atomic_file,
    atomic_folder,
    find_folder,
    name_previous,
    write_file,
    write_json,
)

from ..support.faults import fail_at_each_write, fail_at_size, kill_at_each_write

OTHER = """
import sys
from pathlib import Path
from spacy_elmo.files import write_file
write_file(Path(sys.argv[1]), b"theirs")
"""


def write_folder(folder, text):
    with atomic_folder(folder) as temporary:
        (temporary / "part").mkdir()
        (temporary / "part" / "a").write_text(text)
        (temporary / "b").write_text(text)


def read_folder(folder):
    folder = find_folder(folder)
    return (folder / "part" / "a").read_text(), (folder / "b").read_text()


def test_a_file_is_there_whole_or_as_it_was(tmp_path):
    path = tmp_path / "text.txt"
    write_file(path, b"before")
    with pytest.raises(KeyboardInterrupt), atomic_file(path) as temporary:
        assert temporary.parent == path.parent and temporary.suffix == path.suffix
        temporary.write_bytes(b"aft")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
    write_file(path, b"after")
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="permissions are others")
def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "private.json"
    path.write_text("before")
    path.chmod(0o600)
    write_file(path, b"after")
    assert path.read_bytes() == b"after" and path.stat().st_mode & 0o777 == 0o600


def test_a_folder_of_someone_s_own_beside_it_is_kept(tmp_path):
    (tmp_path / "model.partial").mkdir()
    (tmp_path / "model.partial" / "notes.txt").write_text("mine")
    write_folder(tmp_path / "model", "ours")
    assert (tmp_path / "model.partial" / "notes.txt").read_text() == "mine"


def test_the_target_of_a_link_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "real.txt", tmp_path / "link.txt"
    target.write_bytes(b"before")
    link.symlink_to(target)

    write_file(link, b"after")

    assert link.is_symlink() and target.read_bytes() == b"after"
    assert len(list(tmp_path.iterdir())) == 2 and list(target.parent.iterdir()) == [target]


def test_json_makes_the_folders_above_it(tmp_path):
    write_json(tmp_path / "a" / "b.json", {"ä": [1]})
    assert srsly.read_json(tmp_path / "a" / "b.json") == {"ä": [1]}


def test_devices_and_pipes_are_written_into(tmp_path):
    with pytest.raises(OSError, match="No space"):
        write_file(Path("/dev/full"), b"x")
    assert Path("/dev/full").is_char_device() and not list(Path("/dev").glob("full.*"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as threads:
        reader = threads.submit(pipe.read_bytes)
        write_file(pipe, b"text")
        assert reader.result() == b"text"
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_the_standard_output_is_written_into(tmp_path):
    code = "from pathlib import Path; from spacy_elmo.files import write_file as w; "
    code += "w(Path('/dev/stdout'), b'text')"
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=out)
    assert (tmp_path / "out").read_bytes() == b"text"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no disk in memory")
def test_a_disk_in_memory_is_like_others():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder) / "x"
        write_file(path, b"before")
        with pytest.raises(KeyboardInterrupt), atomic_file(path) as temporary:
            assert temporary != path
            raise KeyboardInterrupt
        assert path.read_bytes() == b"before"


def test_another_process_may_write_the_same_file(tmp_path, monkeypatch):
    path, write_bytes = tmp_path / "x", Path.write_bytes

    def write_and_wait(self, content):
        write_bytes(self, content)
        subprocess.run([sys.executable, "-c", OTHER, path], check=True)
        assert path.read_bytes() == b"theirs"

    monkeypatch.setattr(Path, "write_bytes", write_and_wait)
    write_file(path, b"ours")

    assert path.read_bytes() == b"ours"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_there_whole_or_as_it_was(tmp_path):
    folder = tmp_path / "weights"
    write_folder(folder, "old")
    with pytest.raises(KeyboardInterrupt), atomic_folder(folder) as temporary:
        (temporary / "b").touch()
        raise KeyboardInterrupt
    assert read_folder(folder) == ("old", "old")
    assert list(tmp_path.iterdir()) == [folder]
    with atomic_folder(folder) as temporary:
        assert not list(temporary.iterdir())
        (temporary / "new").touch()
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("name", ["link", "weights/.", "weights/part/.."])
def test_a_folder_is_replaced_by_any_of_its_names(tmp_path, name):
    folder = tmp_path / "weights"
    write_folder(folder, "old")
    (tmp_path / "link").symlink_to(folder)
    write_folder(tmp_path / name, "new")
    assert read_folder(folder) == read_folder(tmp_path / "link") == ("new", "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "weights"]


def test_a_folder_that_was_left_aside_is_found_through_a_link(tmp_path, monkeypatch):
    write_folder(tmp_path / "weights", "old")
    (tmp_path / "weights").rename(tmp_path / "weights.previous")
    (tmp_path / "link").symlink_to(tmp_path / "weights")
    assert read_folder(tmp_path / "link") == ("old", "old")
    monkeypatch.chdir(tmp_path / "weights.previous")
    assert read_folder(Path(".")) == ("old", "old")


def test_a_killed_writer_leaves_a_file_whole(tmp_path):
    path = tmp_path / "text.txt"
    seen = set()
    write_file(path, b"before")
    for _ in kill_at_each_write(lambda: write_file(path, b"after")):
        seen.add(path.read_bytes())
        write_file(path, b"before")
    assert seen == {b"before", b"after"}


def test_a_killed_writer_leaves_a_folder_whole_and_writable(tmp_path):
    folder = tmp_path / "weights"
    write_folder(folder, "old")
    seen = set()
    for _ in kill_at_each_write(lambda: write_folder(folder, "new")):
        a, b = read_folder(folder)
        assert a == b
        seen.add(a)
        if name_previous(folder).exists():
            # Whole as well, never half removed.
            assert read_folder(name_previous(folder)) == ("old", "old")
        write_folder(folder, "old")
        assert read_folder(folder) == ("old", "old")
        assert list(tmp_path.iterdir()) == [folder]
    assert seen == {"old", "new"}


def test_a_full_disk_leaves_a_folder_as_it_was(tmp_path):
    folder = tmp_path / "weights"
    write_folder(folder, "old")
    for _ in fail_at_each_write(lambda: write_folder(folder, "new")):
        assert read_folder(folder) == ("old", "old")
        assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("n_bytes", [0, 1, 999])
def test_a_disk_that_is_full_in_the_middle_of_a_file(tmp_path, n_bytes):
    path = tmp_path / "text.txt"
    path.write_bytes(b"before")
    assert not fail_at_size(lambda: write_file(path, b"x" * 1000), n_bytes)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
    assert fail_at_size(lambda: write_file(path, b"x" * 1000), 1000)


def test_a_folder_has_one_writer_at_a_time(tmp_path):
    folder = tmp_path / "weights"
    with atomic_folder(folder) as temporary:
        (temporary / "b").write_text("mine")
        with pytest.raises(ValueError, match="EL143"):
            write_folder(folder, "theirs")
        assert (temporary / "b").read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["b"]
    write_folder(folder, "theirs")
    assert read_folder(folder) == ("theirs", "theirs")
    assert list(tmp_path.iterdir()) == [folder]


def test_writers_of_one_folder_leave_a_whole_one(tmp_path):
    folder = tmp_path / "weights"

    def write(name):
        for _ in range(20):
            with suppress(ValueError):
                write_folder(folder, name)

    threads = [threading.Thread(target=write, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(read_folder(folder))) == 1
    assert list(tmp_path.iterdir()) == [folder]
