"""`spacy elmo index` and `search`."""

import json
import os
import re
import sys

import pytest

from spacy_elmo.text.cutting import Cutter

from .test_commands import run


@pytest.mark.parametrize("backend", ["numpy", "faiss"])
def test_what_is_indexed_is_found(weights, tmp_path, backend):
    text, index = tmp_path / "text", tmp_path / "index"
    text.mkdir()
    (text / "a.txt").write_text("Green eggs and ham. I like tea.\n" + "long " * 40 + "river\n")
    (text / "b.txt").write_text("The bank of the river.\n")
    (text / "empty.txt").write_text("\n")

    command = ["elmo", "index", text, index, "--weights", weights, "--backend", backend]
    first = run(*command)
    (text / "c.txt").write_text("One more.\n")
    second = run(*command)
    found = run("elmo", "search", index, "I like tea.", "-n", 2, "--json", tmp_path / "x.json")
    run("elmo", "search", index, "river")

    first, second = (" ".join(printed.split()) for printed in (first, second))
    assert "4 sentences of 2 sources" in first
    assert second.count("is there already") == 2 and "5 sentences of 3 sources" in second
    assert found.startswith("1.000") and "a.txt, sentence 2" in found
    hits = json.loads((tmp_path / "x.json").read_text())
    assert hits[0]["words"] == ["I", "like", "tea", "."] and len(hits) == 2


def test_what_is_missing_is_said(weights, tmp_path):
    (tmp_path / "x.txt").write_text("One sentence.\n")
    (tmp_path / "empty.txt").write_text("\n")
    index = tmp_path / "index"

    assert "EL043" in run("elmo", "search", index, "a", exit_code=1)
    assert "EL094" in run(
        "elmo", "index", tmp_path / "empty.txt", index, "--weights", weights, exit_code=1
    )
    printed = run("elmo", "index", tmp_path / "x.txt", index, "--weights", weights)
    assert "x.txt: 1 sentence\n" in printed
    assert re.search(r"1 sentence of 1 source\b", printed)
    assert "EL044" in run(
        "elmo", "index", tmp_path / "x.txt", index, "--weights", weights, "--layer", 1, exit_code=1
    )
    assert "EL046" in run("elmo", "search", index, " ", exit_code=1)


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").mkdir()
    for name in "ab":
        (tmp_path / "text" / f"{name}.txt").write_text(f"One {name}. Two {name}.\n")
    return tmp_path / "text"


def test_texts_that_have_not_changed_are_not_read_again(weights, text, tmp_path, monkeypatch):
    command = ["elmo", "index", text, tmp_path / "index", "--weights", weights]
    run(*command)
    n_calls = []

    def count(self, texts, number, call=Cutter.__call__):
        n_calls.append(texts)
        return call(self, texts, number)

    monkeypatch.setattr(Cutter, "__call__", count)
    os.utime(text / "a.txt", (0, 0))
    assert run(*command).count("is there already") == 2
    assert not n_calls
    # A change that keeps size and time.
    times = (text / "b.txt").stat()
    (text / "b.txt").write_text("One x. Two x.\n")
    os.utime(text / "b.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run(*command).count("is there already") == 1
    assert n_calls == [["One x. Two x."]]


def test_weights_are_known_by_their_content(weights, text, tmp_path, monkeypatch):
    index = tmp_path / "index"
    monkeypatch.chdir(tmp_path)
    run("elmo", "index", text, index, "--weights", weights.name)
    run("elmo", "index", text, index, "--weights", weights)
    monkeypatch.chdir("/")
    run("elmo", "search", index, "One")

    moved = weights.rename(tmp_path / "moved")
    assert "EL144" in run("elmo", "search", index, "One", exit_code=1)
    run("elmo", "search", index, "One", "--weights", moved)
    run("elmo", "index", text, index, "--weights", moved)


def test_an_index_among_its_texts_is_no_text(weights, text):
    for _ in range(2):
        run("elmo", "index", text, text / "index", "--weights", weights)
    assert "2 sentences of 2 sources" in " ".join(
        run("elmo", "index", text, text / "index", "--weights", weights).split()
    )


def test_places_that_cannot_be_written_are_said(weights, text, tmp_path):
    index = tmp_path / "index"
    assert "EL141" in run("elmo", "index", text, tmp_path, "--weights", weights, exit_code=1)
    nowhere = "/proc/nowhere/index"
    assert "EL145" in run("elmo", "index", text, nowhere, "--weights", weights, exit_code=1)
    run("elmo", "index", text, index, "--weights", weights)

    search = ["elmo", "search", index, "One", "--weights", weights, "--json"]
    printed = run(*search, "/dev/full", exit_code=1)
    # After the work, and nothing of it is lost.
    assert "1.000" in printed or "a.txt, sentence 1" in printed
    assert "EL145" in printed
    printed = run(*search, "/proc/x.json", exit_code=1)
    assert "EL145" in printed and "sentence 1" not in printed


@pytest.mark.skipif(sys.platform != "linux", reason="others have names in Unicode")
def test_names_of_files_need_not_be_text(weights, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / os.fsdecode(b"\xff.txt")).write_text("One sentence.\n")
    run("elmo", "index", tmp_path / "text", tmp_path / "index", "--weights", weights)
    assert "udcff.txt, sentence 1" in run("elmo", "search", tmp_path / "index", "One")


def test_a_damaged_index_is_said(weights, text, tmp_path):
    index = tmp_path / "index"
    run("elmo", "index", text, index, "--weights", weights)
    next(index.glob("vectors-*")).write_bytes(b"")

    assert "EL140" in run("elmo", "search", index, "One", exit_code=1)
