"""spacy_elmo.files: bounded reads, atomic writes, locks, digests."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spacy_elmo.files import (
    DIGESTS_FILE,
    atomic_file,
    atomic_folder,
    check_digests,
    digest,
    digest_file,
    find_folder,
    lock_folder,
    name_previous,
    read_file,
    read_json_object,
    write_digests,
    write_file,
    write_json,
)

from .support.faults import fail_at_each_write, fail_at_size, kill_at_each_write


def write_folder(folder, text):
    with atomic_folder(folder) as temporary:
        (temporary / "part").mkdir()
        (temporary / "part" / "a").write_text(text)
        (temporary / "b").write_text(text)


def read_folder(folder):
    folder = find_folder(folder)
    return (folder / "part" / "a").read_text(), (folder / "b").read_text()


# Reading


def test_json_is_written_and_read(tmp_path):
    content = {"ä": [1, None, 0.1 + 0.2]}
    write_json(tmp_path / "new" / "a.json", content)
    assert read_json_object(tmp_path / "new" / "a.json") == content


@pytest.mark.parametrize("name", ["missing", "nul\0", "x" * 300])
def test_a_missing_file_is_an_error(tmp_path, name):
    with pytest.raises(ValueError, match="EL100.*no file"):
        read_json_object(tmp_path / name)


def test_pipes_and_folders_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path, "a folder"), (tmp_path / "pipe", "a pipe")):
        with pytest.raises(ValueError, match=f"EL100.*but {kind}"):
            read_file(path)


def test_a_file_above_the_limit_is_not_read(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="EL103.*1,099,511,627,776 bytes"):
        read_file(path, 1000)


BAD_JSON = {
    "empty": b"",
    "cut off": b"{",
    "UTF-16": b"\xff\xfe{",
    "nested": b"[" * 100_000,
    "number": b'{"a": 1e}',
    "NaN": b'{"a": NaN}',
    "list": b"[1]",
}


@pytest.mark.parametrize("content", BAD_JSON.values(), ids=BAD_JSON)
def test_content_that_is_not_a_json_object_is_an_error(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"EL103.*a\.json"):
        read_json_object(tmp_path / "a.json")


# Atomic writes


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "text.txt"
    write_file(path, b"before")
    path.chmod(0o600)
    with pytest.raises(KeyboardInterrupt), atomic_file(path) as temporary:
        assert temporary.parent == path.parent and temporary.suffix == path.suffix
        temporary.write_bytes(b"aft")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"before"
    write_file(path, b"after")
    assert path.read_bytes() == b"after" and path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_devices_and_pipes_are_written_directly(tmp_path):
    with pytest.raises(OSError, match="No space"):
        write_file(Path("/dev/full"), b"x")
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as threads:
        reader = threads.submit((tmp_path / "pipe").read_bytes)
        write_file(tmp_path / "pipe", b"text")
        assert reader.result() == b"text"


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "weights"
    write_folder(folder, "old")
    with pytest.raises(KeyboardInterrupt), atomic_folder(folder) as temporary:
        (temporary / "b").touch()
        raise KeyboardInterrupt
    assert read_folder(folder) == ("old", "old")
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


def test_a_killed_writer_leaves_the_old_or_the_new(tmp_path):
    path, folder = tmp_path / "text.txt", tmp_path / "weights"
    write_file(path, b"old")
    write_folder(folder, "old")
    seen = set()
    for _ in kill_at_each_write(lambda: write_file(path, b"new")):
        seen.add(path.read_bytes())
        write_file(path, b"old")
    assert seen == {b"old", b"new"}
    seen = set()
    for _ in kill_at_each_write(lambda: write_folder(folder, "new")):
        a, b = read_folder(folder)
        assert a == b
        seen.add(a)
        if name_previous(folder).exists():
            assert read_folder(name_previous(folder)) == ("old", "old")
        write_folder(folder, "old")
        assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"weights"}
    assert seen == {"old", "new"}


def test_a_full_disk_keeps_the_old_content(tmp_path):
    path, folder = tmp_path / "text.txt", tmp_path / "weights"
    write_file(path, b"old")
    write_folder(folder, "old")
    assert not fail_at_size(lambda: write_file(path, b"x" * 1000), 999)
    for _ in fail_at_each_write(lambda: write_folder(folder, "new")):
        assert read_folder(folder) == ("old", "old")
        assert path.read_bytes() == b"old"
        assert sorted(tmp_path.iterdir()) == [path, folder]


HOLD = """
import sys
from pathlib import Path
from spacy_elmo.files import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_lock_ends_with_its_process(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as holder:
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(ValueError, match="EL143"), lock_folder(tmp_path):
            pass
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    with pytest.raises(KeyError), lock_folder(tmp_path):
        raise KeyError
    with lock_folder(tmp_path):
        pass


# Digests


def test_a_changed_file_has_another_digest(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    write_digests(tmp_path)
    assert digest_file(tmp_path / "a") == digest(b"abc")
    check_digests(tmp_path, ["a"])
    (tmp_path / "a").write_bytes(b"abd")
    with pytest.raises(ValueError, match=r"EL104.*/a' is damaged.*digests\.json"):
        check_digests(tmp_path, ["a"])
    # Files that were added later, and folders without digests, pass.
    check_digests(tmp_path, ["b"])
    (tmp_path / DIGESTS_FILE).unlink()
    check_digests(tmp_path, ["a"])
