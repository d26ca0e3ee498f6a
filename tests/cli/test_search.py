"""`spacy elmo index` and `search`."""

import json

import pytest

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
    run("elmo", "index", tmp_path / "x.txt", index, "--weights", weights)
    assert "EL044" in run(
        "elmo", "index", tmp_path / "x.txt", index, "--weights", weights, "--layer", 1, exit_code=1
    )
    assert "EL046" in run("elmo", "search", index, " ", exit_code=1)
