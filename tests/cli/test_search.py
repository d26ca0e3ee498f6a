"""`spacy elmo index` and `search`."""

import json
import os
import shutil

import pytest

from spacy_elmo.text.cutting import Cutter

from ..support.helpers import make_nlp
from .test_commands import run


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
    assert run(*command).count("is already in the index") == 2
    assert not n_calls
    # A change that keeps size and time.
    times = (text / "b.txt").stat()
    (text / "b.txt").write_text("One x. Two x.\n")
    os.utime(text / "b.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run(*command).count("is already in the index") == 1
    assert n_calls == [["One x. Two x."]]


def test_weights_are_known_by_their_content(weights, text, tmp_path, monkeypatch):
    index = tmp_path / "index"
    monkeypatch.chdir(tmp_path)
    run("elmo", "index", text, index, "--weights", weights.name)
    run("elmo", "index", text, index, "--weights", weights)
    monkeypatch.chdir("/")
    run("elmo", "search", index, "One")

    moved = weights.rename(tmp_path / "moved")
    assert "--weights" in run("elmo", "search", index, "One", exit_code=1)
    run("elmo", "search", index, "One", "--weights", moved)
    run("elmo", "index", text, index, "--weights", moved)


@pytest.fixture
def chinese(weights, tmp_path):
    """Weights of another language and tokenizer."""
    block = {"@tokenizers": "spacy.zh.ChineseTokenizer", "segmenter": "char"}
    (tmp_path / "meta.json").write_text(json.dumps({"lang": "zh", "tokenizer": block}))
    run("elmo", "convert", weights, tmp_path / "zh", "--meta", tmp_path / "meta.json")
    return tmp_path / "zh"


def test_texts_and_queries_are_cut_as_the_weights_have_learned(chinese, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("他坐在河岸边。\n她去银行。\n", "utf-8")
    index = tmp_path / "index"
    run("elmo", "index", tmp_path / "text", index, "--weights", chinese, "--weighting", "mean")
    found = run("elmo", "search", index, "她去银行。", "-n", 1, "--json", tmp_path / "x.json")
    assert found.startswith("1.000")
    (hit,) = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert hit["words"] == ["她", "去", "银", "行", "。"]

    command = ["elmo", "neighbors", "她去银行。", "--token", "银", "--corpus", tmp_path / "text"]
    assert "[银]" in run(*command, "--weights", chinese, "--n", 1).replace("\n", "")


def test_an_index_of_vectors_is_as_they_were_made(chinese, weights, tmp_path):
    text, vectors = tmp_path / "x.txt", tmp_path / "vectors"
    text.write_text("他坐在河岸边。\n她去银行。\n", "utf-8")
    run("elmo", "embed", text, vectors, "--weights", chinese, "--layers", "0")
    run("elmo", "index", vectors, tmp_path / "index", "--weighting", "mean")
    found = run("elmo", "search", tmp_path / "index", "她去银行。", "-n", 1)
    assert found.startswith("1.000")
    # The user's file, not the shard.
    assert "x.txt, record 2, sentence 1" in found.replace("\n", "")
    meta = json.loads((tmp_path / "index" / "index.json").read_text())
    assert (meta["lang"], meta["weights"]) == ("zh", str(chinese))

    moved = chinese.rename(tmp_path / "moved")
    run("elmo", "index", vectors, tmp_path / "again", "--weights", moved)
    meta = json.loads((tmp_path / "again" / "index.json").read_text())
    assert (meta["lang"], meta["tokenizer"]["segmenter"]) == ("zh", "char")

    command = ["elmo", "index", vectors, tmp_path / "other"]
    assert "EL247" in run(*command, "--lang", "en", exit_code=1)
    bundled = run(*command, "--weights", "en_small")
    assert "another biLM" in bundled


def test_an_index_of_vectors_of_a_pipeline_has_its_biLM(text, tmp_path):
    make_nlp(seed=5).to_disk(tmp_path / "pipeline")
    vectors = tmp_path / "vectors"
    run("elmo", "embed", text, vectors, "--pipeline", tmp_path / "pipeline", "--layers", "0")
    assert "another biLM" not in run("elmo", "index", vectors, tmp_path / "index")
    query = ["elmo", "search", tmp_path / "index", "One a. Two a.", "-n", 1]
    assert run(*query).startswith("1.000")


@pytest.mark.parametrize("pattern", ["text", "text/**/*.txt"])
def test_what_is_gone_is_removed(weights, text, tmp_path, pattern):
    index = tmp_path / "index"
    command = ["elmo", "index", tmp_path / pattern, index, "--weights", weights]
    run(*command)
    (text / "b.txt").unlink()
    # Texts of other places stay.
    (tmp_path / "c.txt").write_text("One c.\n")
    assert "is gone" not in run("elmo", "index", tmp_path / "c.txt", index, "--weights", weights)
    assert "b.txt no longer exists" in run(*command)
    assert "b.txt" not in run("elmo", "search", index, "One b.", "-n", 9)


def test_all_texts_may_leave_an_index(weights, text, tmp_path):
    index = tmp_path / "index"
    command = ["elmo", "index", text, index, "--weights", weights]
    run(*command)
    for path in text.glob("*.txt"):
        path.unlink()
    printed = run(*command, exit_code=1)
    assert printed.count("no longer exists: removed") == 2 and "EL094" in printed
    assert "EL080" in run(
        "elmo", "index", text, tmp_path / "new", "--weights", weights, exit_code=1
    )


def test_shards_that_are_gone_are_removed(weights, text, tmp_path):
    index, vectors = tmp_path / "index", tmp_path / "vectors"
    for shard_chars in (1, 1000):
        shutil.rmtree(vectors, ignore_errors=True)
        embed = ["elmo", "embed", text, vectors, "--weights", weights, "--layers", "0"]
        run(*embed, "--shard-chars", shard_chars)
        printed = " ".join(run("elmo", "index", vectors, index).split())
    assert "no longer exists: removed" in printed and "2 sentences of 1 source" in printed


def test_a_name_may_begin_with_any_character_but_a_dot(weights, tmp_path):
    (tmp_path / "text" / "_notes").mkdir(parents=True)
    for name in ("_preface.txt", "_notes/a.txt", ".hidden.txt"):
        (tmp_path / "text" / name).write_text("A ship.\n")
    run("elmo", "index", tmp_path / "text", tmp_path / "index", "--weights", weights)
    run("elmo", "search", tmp_path / "index", "ship", "--json", tmp_path / "x.json")
    hits = json.loads((tmp_path / "x.json").read_text())
    assert sorted(os.path.basename(hit["source"]) for hit in hits) == ["_preface.txt", "a.txt"]
