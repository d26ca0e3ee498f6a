"""`spacy elmo embed`, and `index` of its vectors."""

import json

import pytest
from spacy.cli import app
from typer.testing import CliRunner

from ..support.embed_jobs import read_rows
from .test_commands import run


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").mkdir()
    lines = [{"id": f"r{i}", "text": f"Green eggs number {i}. I like tea!"} for i in range(5)]
    (tmp_path / "text/a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "text/b.txt").write_text("The bank of the river.\n\xff\n", "latin-1")
    return tmp_path / "text"


def test_text_becomes_vectors(weights, text, tmp_path):
    output = tmp_path / "out"
    command = ["elmo", "embed", text, output, "--weights", weights, "--layers", "mix,0"]
    printed = " ".join(run(*command, "--shard-chars", 60).split())

    rows = read_rows(output)
    assert "6 records, 11 rows, 51 tokens in 3 shards" in printed
    assert "Rejected records: 1, with reasons in" in printed and "not text in UTF-8" in printed
    assert [row["id"] for row in rows] == [f"r{i // 2}" for i in range(10)] + [None]
    assert {len(row["mix"]) for row in rows} == {8}
    assert "EL243" in run(*command, exit_code=1)
    assert "EL245" in run(*command, "--resume", exit_code=1)
    again = " ".join(run(*command, "--shard-chars", 60, "--resume").split())
    assert "6 records, 11 rows" in again


def test_the_standard_input_is_read_and_resumed(weights, tmp_path):
    command = ["elmo", "embed", "-", tmp_path / "out", "--weights", weights]
    arguments = [str(each) for each in [*command, "--input-format", "jsonl"]]
    given = '{"text": "Ham"}\n'
    done = CliRunner().invoke(app, arguments, input=given)
    assert done.exit_code == 0 and "1 record, 1 row, 1 token in 1 shard" in done.output
    (row,) = read_rows(tmp_path / "out")
    assert (row["text"], row["source"]) == ("Ham", "-")

    assert CliRunner().invoke(app, [*arguments, "--resume"], input=given).exit_code == 0
    done = CliRunner().invoke(app, [*arguments, "--resume"], input=given + given)
    assert done.exit_code == 1 and "EL245" in done.output
    done = CliRunner().invoke(app, [arguments[0], "embed", "-", str(tmp_path / "x")], input="")
    assert done.exit_code == 1 and "EL248" in done.output


@pytest.mark.parametrize(
    "weighting, layers", [("mean", "0"), ("sif", "0"), ("whitened", "0"), ("whitened", "mix")]
)
def test_an_index_takes_what_embed_has_written(weights, tmp_path, weighting, layers):
    lines = [f"Green eggs number {i} and ham {i * i}.\n" for i in range(12)] + ["I like tea.\n"]
    (tmp_path / "x.txt").write_text("".join(lines))
    settings = ["--weights", weights]
    embed = ["elmo", "embed", tmp_path / "x.txt", tmp_path / "out", *settings, "--layers", layers]
    run(*embed, "--shard-chars", 150, "--dtype", "float32")
    settings += ["--weighting", weighting]
    printed = run("elmo", "index", tmp_path / "out", tmp_path / "a", *settings)
    run("elmo", "index", tmp_path / "x.txt", tmp_path / "b", *settings)

    query = ["I like tea.", "-n", 13, "--json"]
    run("elmo", "search", tmp_path / "a", *query, tmp_path / "a.json")
    run("elmo", "search", tmp_path / "b", *query, tmp_path / "b.json")
    found, expected = (json.loads((tmp_path / f"{n}.json").read_text()) for n in "ab")
    assert "13 sentences of 3 sources" in " ".join(printed.split())
    scores = [{" ".join(h["words"]): h["score"] for h in hits} for hits in (found, expected)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert "is already in the index" in run(
        "elmo", "index", tmp_path / "out", tmp_path / "a", *settings
    )


def test_vectors_of_the_folder_are_not_computed_again(weights, tmp_path, monkeypatch):
    (tmp_path / "x.txt").write_text("".join(f"Green eggs {i}.\n" for i in range(20)))
    run("elmo", "embed", tmp_path / "x.txt", tmp_path / "out", "--weights", weights, "--layers", 0)

    def fail(self, sentences):
        raise AssertionError("computed again")

    monkeypatch.setattr("spacy_elmo.search.sentence_encoder.SentenceEncoder.average", fail)
    run("elmo", "index", tmp_path / "out", tmp_path / "index", "--weights", weights)


def test_other_vectors_are_no_index(weights, text, tmp_path):
    command = ["--weights", weights]
    run("elmo", "embed", text, tmp_path / "a", *command, "--unit", "tokens")
    assert "EL247" in run("elmo", "index", tmp_path / "a", tmp_path / "x", *command, exit_code=1)
    run("elmo", "embed", text, tmp_path / "b", *command)
    (tmp_path / "b/part-000000.parquet").write_bytes(b"x")
    assert "EL247" in run("elmo", "index", tmp_path / "b", tmp_path / "x", *command, exit_code=1)
    (tmp_path / "b/_manifest.json").rename(tmp_path / "b/_job.json")
    assert "EL247" in run("elmo", "index", tmp_path / "b", tmp_path / "x", *command, exit_code=1)
