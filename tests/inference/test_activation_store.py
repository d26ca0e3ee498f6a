"""What is kept comes back as it was, or not at all: whatever happens to the file."""

import os
import random
import shutil
import signal
import sqlite3
import time

import pytest

from spacy_elmo.inference.activation_cache import LayerFile, build_activation_cache_v1

from ..support.damage import mutate, replace_by_others
from ..support.faults import fail_at_size
from ..support.helpers import TEXTS, assert_close, make_nlp, vectors
from .test_activation_cache import attach, get_kept

ITEMS = [(bytes([i]) * 16, bytes([i, 255 - i] * 40)) for i in range(30)]
EXPECTED = dict(ITEMS)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "cache" / "x.sqlite"
    open_file(path).put(ITEMS)
    return path


def open_file(path):
    return LayerFile(path, 10_000_000)


def get(path):
    """What is kept; all of it is as it was put."""
    found = open_file(path).get(list(EXPECTED))
    assert all(EXPECTED[key] == item for key, item in found.items())
    return found


def change(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_items_come_back(path):
    assert get(path) == EXPECTED
    assert open_file(path).get([b"other"]) == {}


@pytest.mark.parametrize(
    "statement, n_lost",
    [
        ("UPDATE layers SET key = x'07' WHERE rowid = 3", 1),
        ("UPDATE layers SET data = NULL WHERE rowid < 5", 4),
        ("UPDATE layers SET checksum = 0", 30),
        ("UPDATE layers SET data = zeroblob(80) WHERE rowid = 2", 1),
        ("UPDATE layers SET data = CAST(x'ff41' AS TEXT) WHERE rowid = 2", 1),
        ("UPDATE layers SET data = CAST(data AS TEXT)", 0),
        ("UPDATE layers SET data = 3.5 WHERE rowid = 2", 1),
        ("UPDATE layers SET data = (SELECT data FROM layers WHERE rowid = 9)", 29),
        ("UPDATE layers SET data = (SELECT data FROM layers WHERE rowid = 9), checksum ="
         " (SELECT checksum FROM layers WHERE rowid = 9)", 29),
    ],
)  # fmt: skip
def test_rows_that_were_changed_are_not_there(path, statement, n_lost, caplog):
    change(path, statement)

    assert len(get(path)) == len(ITEMS) - n_lost
    open_file(path).put(ITEMS)
    assert get(path) == EXPECTED
    assert not caplog.text


def test_swapped_keys_serve_no_other_sequence(path):
    first, second = (f"x'{key.hex()}'" for key in list(EXPECTED)[:2])
    change(
        path,
        f"UPDATE layers SET key = x'00' WHERE key = {first}",
        f"UPDATE layers SET key = {first} WHERE key = {second}",
        f"UPDATE layers SET key = {second} WHERE key = x'00'",
    )

    assert set(get(path)) == set(list(EXPECTED)[2:])


def check_mutations(path, n, seed):
    rng = random.Random(seed)
    whole, n_found = path.read_bytes(), []
    for _ in range(n):
        path.write_bytes(whole)
        mutate(path, rng)
        n_found.append(len(get(path)))
        # And the file is usable.
        open_file(path).put(ITEMS)
        get(path)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    return n_found


def test_mutations_never_serve_other_layers(path):
    n_found = check_mutations(path, 150, seed=0)
    assert min(n_found) < 30 and max(n_found) == 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_many_mutations_never_serve_other_layers(path, seed):
    check_mutations(path, 2000, seed)


def test_a_damaged_log_never_serves_other_layers(tmp_path):
    path = tmp_path / "x.sqlite"
    store = open_file(path)
    holder = sqlite3.connect(path)  # while somebody reads, what was written stays in the log
    holder.execute("SELECT count(*) FROM layers").fetchone()
    store.put(ITEMS)
    rng = random.Random(0)
    for i in range(60):
        copy = tmp_path / str(i) / "x.sqlite"
        copy.parent.mkdir()
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
        mutate(copy.with_name(f"x.sqlite{rng.choice(['-wal', '-shm'])}"), rng)
        get(copy)
    holder.close()
    assert get(path) == EXPECTED


def test_a_damaged_file_is_started_over(path, caplog):
    path.write_bytes(b"no database" * 10_000)

    store = open_file(path)
    assert "[WL007]" in caplog.text
    assert store.get(list(EXPECTED)) == {}
    store.put(ITEMS)
    assert get(path) == EXPECTED


def test_damage_that_comes_later_is_told(path, caplog):
    store = open_file(path)
    path.write_bytes(path.read_bytes()[:5000])

    store.get(list(EXPECTED))
    assert "[WL007]" in caplog.text
    store.put(ITEMS)
    assert get(path) == EXPECTED


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE layers"],
        ["DROP TABLE layers", "CREATE TABLE layers (key BLOB PRIMARY KEY, data BLOB)"],
        ["PRAGMA user_version = 0"],  # of before there were versions
        ["PRAGMA user_version = 9"],
    ],
    ids=str,
)
def test_a_file_of_another_version_is_started_over(path, statements, caplog):
    change(path, *statements)

    store = open_file(path)
    assert store.get(list(EXPECTED)) == {}
    store.put(ITEMS)
    assert get(path) == EXPECTED
    assert ("[WL007]" in caplog.text) != (statements == ["DROP TABLE layers"])


def test_other_things_in_the_place_of_the_file(path, caplog):
    for kind in replace_by_others(path):
        caplog.clear()
        store = open_file(path)
        assert store.get(list(EXPECTED)) == {}
        store.put(ITEMS)
        if kind in ("a folder", "a pipe"):
            assert caplog.text.count("[WL008]") == 1
        if path.is_file():
            assert get(path) == EXPECTED


def test_training_goes_on_where_nothing_can_be_kept(tmp_path, caplog):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", "/proc/nowhere"):
        nlp = make_nlp()
        expected = vectors(nlp.pipe(TEXTS))
        caplog.clear()
        attach(nlp, build_activation_cache_v1(path=str(path)))

        for _ in range(3):
            assert_close(vectors(nlp.pipe(TEXTS)), expected)
        assert caplog.text.count("[WL008]") == 1
        assert get_kept(nlp).n_hits == 0
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("n_bytes", [0, 5000, 20_000])
def test_a_full_disk_leaves_what_was_kept(path, n_bytes):
    more = [(bytes([200, i]) * 8, bytes(4000)) for i in range(20)]

    def work():
        store = open_file(path)
        store.put(more)
        assert len(store.get([key for key, _ in more])) < 20
        assert all(EXPECTED[k] == item for k, item in store.get(list(EXPECTED)).items())

    assert fail_at_size(work, n_bytes)
    assert get(path) == EXPECTED


@pytest.mark.parametrize("n_kills", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_process_leaves_the_file_whole(path, n_kills, caplog):
    rng = random.Random(0)
    for _ in range(n_kills):
        child = os.fork()
        if child == 0:
            try:
                store = open_file(path)
                for item in ITEMS * 1000:
                    store.put([item])
            finally:
                os._exit(1)
        time.sleep(rng.random() * 0.05)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert get(path) == EXPECTED
    # A fork may load weights that other tests left to be loaded, and tells it.
    assert "[WL" not in caplog.text
