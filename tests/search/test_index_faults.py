"""A writer of an index may be killed, may find the disk full, and is not alone."""

import os
import shutil
import threading
import time
from contextlib import contextmanager

import pytest

from spacy_elmo.files import digest_file, lock_folder
from spacy_elmo.search import index_files
from spacy_elmo.search import search_index as index_module
from spacy_elmo.search.backends import search_arrays
from spacy_elmo.search.index_versions import Source
from spacy_elmo.search.search_index import SearchIndex

from ..support.faults import fail_at_each_write, fail_at_size, kill_at_each_write
from ..support.toy_embedder import ToyEmbedder
from .test_search_index import SENTENCES, create

MANY = [[f"w{i}", "ham"] for i in range(12)]
CHANGES = {
    "a new source": lambda index: index.add("c", [["tea"]]),
    "equal content": lambda index: index.add("c", SENTENCES),
    "another content": lambda index: index.add("a", [["tea"]]),
    "the same content": lambda index: index.add("a", SENTENCES, origin="1" * 32),
    "much content": lambda index: index.add("c", MANY),
    "several": lambda index: index.add_all(
        [
            Source("c", [["tea"]]),
            Source("a", MANY),
            Source("b", [["ham", "tea"]], "1" * 32),
        ]
    ),
    "none": lambda index: index.remove("a"),
}


def each_change(default):
    """Parameters: one change by default, the others in the slow tests."""
    return pytest.mark.parametrize(
        "change",
        [
            pytest.param(change, id=name, marks=[] if name == default else pytest.mark.slow)
            for name, change in CHANGES.items()
        ],
    )


@pytest.fixture
def folder(tmp_path):
    index = make(tmp_path / "x")
    index.add("a", SENTENCES)
    index.add("b", [["ham", "tea"]])
    return tmp_path / "x"


def make(folder, weighting="whitened"):
    return create(folder, ToyEmbedder(), weighting=weighting)


def search(folder):
    return SearchIndex.open(folder, ToyEmbedder()).search(["ham"], n=99)


def list_contents(folder):
    return sorted(path.name for path in folder.glob("*-*"))


def restore(folder, before):
    for path in folder.glob("*.*"):
        path.unlink()
    for name, content in before.items():
        (folder / name).write_bytes(content)


@each_change("another content")
def test_a_killed_writer_leaves_the_old_or_the_new(folder, change):
    before = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    old = search(folder)
    change(make(folder))
    new, seen = search(folder), []
    restore(folder, before)

    for _ in kill_at_each_write(lambda: change(make(folder))):
        seen.append(search(folder))
        assert seen[-1] in (old, new)
        # The next writer comes to the end, and clears away what is left.
        change(make(folder))
        assert search(folder) == new
        index = make(folder)
        index.add("d", [["x"]])
        assert set(list_contents(folder)) == set(index.meta.list_names())
        restore(folder, before)
    assert old in seen and len(seen) > 2


@each_change("much content")
def test_a_full_disk_leaves_the_old_or_the_new(folder, change):
    before = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    old = search(folder)
    change(make(folder))
    new = search(folder)
    restore(folder, before)

    for _ in fail_at_each_write(lambda: change(make(folder))):
        found = search(folder)
        assert found in (old, new)
        if found == old != new:
            assert list_contents(folder) == [name for name in sorted(before) if "-" in name]
        restore(folder, before)


@pytest.mark.parametrize("n_bytes", [0, 50, 150, 300])
def test_a_disk_that_is_full_in_the_middle_of_a_file(folder, n_bytes):
    old, contents = search(folder), list_contents(folder)

    assert not fail_at_size(lambda: make(folder).add("c", MANY), n_bytes)

    assert search(folder) == old and list_contents(folder) == contents


def test_a_first_writer_that_was_killed_leaves_a_folder_for_the_next(tmp_path):
    folder = tmp_path / "x"
    for _ in kill_at_each_write(lambda: make(folder).add("a", SENTENCES)):
        make(folder).add("a", SENTENCES)
        assert len(search(folder)) == 5 and len(list_contents(folder)) == 3
        for path in folder.iterdir():
            path.unlink()


def test_what_nobody_names_is_removed_by_the_next_writer(folder):
    for name in ("words-" + "0" * 32 + ".jsonl", "vectors-" + "1" * 32 + ".7.partial.npy"):
        (folder / name).touch()
    (folder / "index.77.partial.json").touch()
    expected = search(folder)

    make(folder).remove("unknown")
    assert len(list(folder.glob("*0000*"))) == 1  # nothing was written
    make(folder).add("c", [["tea"]])
    make(folder).remove("c")

    assert search(folder) == expected
    assert not list(folder.glob("*partial*")) and not list(folder.glob("*0000*"))


def test_a_reader_goes_on_while_its_files_are_replaced(folder):
    reader = SearchIndex.open(folder, ToyEmbedder())
    make(folder).add("a", [["ham", "and", "tea"]])

    assert reader.search(["ham"], n=99) == search(folder)
    make(folder).add("b", [["other"]])
    assert len(reader.search(["ham"], n=99)) == 2


@contextmanager
def reading(open_reader):
    """Two threads read meanwhile, again and again. Their errors are raised at the end.

    open_reader: called in each thread; returns what reads once.
    """
    is_over, failed = threading.Event(), []

    def work():
        try:
            read = open_reader()
            while not is_over.is_set():
                read()
        except BaseException as err:
            failed.append(err)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert not failed, failed


def test_readers_and_writers_do_not_disturb_each_other(tmp_path):
    contents = [SENTENCES, [["ham", "tea"]], MANY]
    expected = []
    for sentences in contents:
        make(tmp_path, "mean").add("a", sentences)
        expected.append(search(tmp_path))

    def open_reader():
        reader = SearchIndex.open(tmp_path, ToyEmbedder())

        def read():
            assert reader.search(["ham"], n=99) in expected
            assert search(tmp_path) in expected

        return read

    with reading(open_reader):
        for i in range(20):
            make(tmp_path, "mean").add("a", contents[i % 3])


def test_a_file_that_is_back_by_now_is_read_again(tmp_path, monkeypatch):
    """Removed by one writer, looked for by a reader, written again by the next writer."""
    make(tmp_path, "mean").add("a", SENTENCES)
    expected = search(tmp_path)
    reader = SearchIndex.open(tmp_path, ToyEmbedder())
    n_failures = iter([1])

    def digest_late(path):
        if next(n_failures, None):
            content = path.read_bytes()
            path.unlink()
            try:
                return digest_file(path)
            finally:
                path.write_bytes(content)
                make(tmp_path, "mean").add("b", [["ham"]])
                make(tmp_path, "mean").remove("b")
        return digest_file(path)

    monkeypatch.setattr(index_files, "digest_file", digest_late)

    assert reader.search(["ham"], n=99) == expected


def test_threads_may_search_and_add_in_one_index(tmp_path):
    index = make(tmp_path, "mean")
    index.add("a", SENTENCES)

    def read():
        for hit in index.search(["ham"], n=99):
            # A source's sentences have its name in them.
            assert hit.source == "a" or hit.words == ["ham", hit.source]

    with reading(lambda: read):
        for i in range(20):
            index.add(f"s{i % 3}", [["ham", f"s{i % 3}"]] * (1 + i % 5))
            index.remove(f"s{(i + 1) % 3}")


def test_a_reader_that_is_late_puts_nothing_old_back(tmp_path, monkeypatch):
    """It reads index.json, a writer of the same index replaces that, and the next one adds."""
    index = make(tmp_path, "mean")
    index.add("a", SENTENCES)
    make(tmp_path, "mean").add("a", MANY)
    was_late = []

    def read_late(folder, read_meta=index_module.read_meta):
        meta = read_meta(folder)
        if not was_late:
            was_late.append(True)
            index.add("b", [["tea"]])
        return meta

    monkeypatch.setattr(index_module, "read_meta", read_late)
    # A file of the first version is gone: it reads index.json.
    index.search(["ham"])
    assert was_late
    index.add("c", [["river"]])
    assert {part.source for part in index.meta.parts} == {"a", "b", "c"}
    assert len(index.search(["ham"], n=99)) == len(MANY) + 2


def test_another_index_in_its_place_is_refused_each_time(tmp_path):
    index = make(tmp_path / "index", "mean")
    index.add("a", SENTENCES)
    shutil.rmtree(tmp_path / "index")
    make(tmp_path / "index").add("b", MANY)
    for _ in range(2):
        with pytest.raises(ValueError, match="EL044.*weighting"):
            index.add("c", [["tea"]])


def test_a_reader_is_not_misled_by_what_comes_back(tmp_path, monkeypatch):
    make(tmp_path, "mean").add("a", SENTENCES)
    expected = search(tmp_path)
    n_calls = []

    def search_late(*args, **kwargs):
        n_calls.append(1)
        if len(n_calls) > 2:
            return search_arrays(*args, **kwargs)
        make(tmp_path, "mean").add("a", [["tea"]])
        make(tmp_path, "mean").add("a", SENTENCES)
        raise FileNotFoundError("vectors")

    monkeypatch.setattr(index_module, "search_arrays", search_late)
    assert search(tmp_path) == expected and len(n_calls) == 3


def test_several_writers_lose_nothing(folder):
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                index = make(folder)
                for i in range(4):
                    index.add(f"{number}.{i}", [[f"w{number}", f"v{i}"]])
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    index = SearchIndex.open(folder, ToyEmbedder())
    sources = {f"{number}.{i}" for number in range(3) for i in range(4)}
    assert {part.source for part in index.meta.parts} == {"a", "b", *sources}
    assert len(index.search(["ham"], n=99)) == 18
    assert set(list_contents(folder)) == set(index.meta.list_names())


def test_a_second_writer_waits_and_says_so(folder, caplog):
    found = []
    index = make(folder)
    thread = threading.Thread(target=lambda: found.append(index.add("c", [["tea"]])))
    with lock_folder(folder, wait=False):
        thread.start()
        deadline = time.monotonic() + 30
        while "[WL024]" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "[WL024]" in caplog.text and not found
        with pytest.raises(ValueError, match="EL143"), lock_folder(folder, wait=False):
            pass
    thread.join()
    assert found == [1]
