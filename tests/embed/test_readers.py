"""Readers of records: what cannot be embedded is a record with a problem, and reading goes on."""

import gzip
import json
import lzma
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_elmo.embed import readers
from spacy_elmo.embed.pipeline import EmbedSettings
from spacy_elmo.embed.readers import check_inputs, plan_tasks
from spacy_elmo.text.text_files import get_format, zstd

TEXTS = ["Green eggs.", "Ham é ｡", "x" * 50, "one two"]
PACK = {".gz": gzip.compress, ".xz": lzma.compress}
if zstd is not None:
    PACK[".zst"] = zstd.compress


def read(*paths, **settings):
    tasks = plan_tasks(list(paths), EmbedSettings(**settings))
    return [record for task in tasks for record in task.records]


def write(path, texts=TEXTS):
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    if get_format(path) == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
    elif get_format(path) == "spacy":
        nlp = spacy.blank("en")
        DocBin(docs=[nlp(text) for text in texts]).to_disk(path)
    else:
        lines = texts if get_format(path) == "txt" else map(json.dumps, rows)
        content = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(PACK.get(path.suffix, bytes)(content))
    return path


NAMES = ["x.txt", "x.txt.gz", "x.jsonl", "x.jsonl.xz", "x.txt.zst", "x.parquet", "x.spacy"]


@pytest.mark.parametrize("name", NAMES)
def test_formats_have_the_same_records(tmp_path, name):
    path = write(tmp_path / name)
    check_inputs([path], EmbedSettings())
    records = read(path)

    assert [record.text for record in records] == TEXTS
    assert [record.number for record in records] == [0, 1, 2, 3]
    assert not any(record.problem for record in records)
    if "jsonl" in name or "parquet" in name:
        assert [record.id for record in records] == ["0", "1", "2", "3"]
    (*_, last) = plan_tasks([path], EmbedSettings())
    assert last.n_bytes == path.stat().st_size


def test_tasks_have_the_same_records_as_the_input(tmp_path):
    path = write(tmp_path / "x.txt", [f"line {i}" for i in range(50)])
    tasks = list(plan_tasks([path], EmbedSettings(shard_chars=30)))

    assert [task.number for task in tasks] == [*range(len(tasks))] and len(tasks) > 9
    assert [record for task in tasks for record in task.records] == read(path)
    assert len({task.digest() for task in tasks}) == len(tasks)


BAD_LINES = {
    b"\xff\xfe no text": "not text in UTF-8",
    b"{": "no JSON",
    b'{"t": "x"}': "no JSON object with a 'text'",
    b'{"text": null, "id": "n2"}': "its text is NoneType",
    b'{"text": "half \\ud83d"}': "its text contains a surrogate (U+D83D)",
    b'{"text": "a", "id": "\\u0000"}': "its id contains NUL",
    b'{"text": "x", "id": [1]}': "its id is list",
    b'{"text": "x", "id": true}': "its id is bool",
    b"[" * 100_000: "no JSON",
}


@pytest.mark.parametrize("line, reason", BAD_LINES.items(), ids=BAD_LINES.values())
def test_a_bad_line_is_one_record(tmp_path, line, reason):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "a"}\n' + line + b'\n{"text": "b", "id": "B"}\n')

    first, bad, last = read(path)
    assert reason in bad.problem and bad.number == 1 and len(bad.text) < 5000
    assert bad.id == ("n2" if b"n2" in line else None)
    assert (first.text, last.text, last.id) == ("a", "b", "B")
    assert not first.problem and not last.problem


def test_a_line_that_fills_the_memory_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "MOST_BYTES", 20)
    (tmp_path / "x.txt").write_text("one\n" + "a" * 1000 + "\ntwo\n" + "b" * 19 + "\n")

    records = read(tmp_path / "x.txt")
    assert [r.text for r in records if not r.problem] == ["one", "two", "b" * 19]
    assert "more than 20 bytes" in records[1].problem


@given(st.binary(max_size=200))
def test_any_bytes_are_records(tmp_path, content):
    for name in ("y.txt", "y.jsonl", "y.parquet", "y.spacy", "y.txt.gz"):
        (tmp_path / name).write_bytes(content)
        for record in read(tmp_path / name):
            record.text.encode("utf-8")


@pytest.mark.parametrize("name", ["x.txt.gz", "x.txt.xz", "x.parquet", "x.spacy"])
def test_the_rest_of_a_damaged_file_is_rejected(tmp_path, name):
    path = write(tmp_path / name, [f"{i} {np.random.default_rng(i).bytes(9)}" for i in range(2000)])
    path.write_bytes(path.read_bytes()[:-4000])
    check_inputs([path], EmbedSettings())

    records = read(path, write(tmp_path / "z.txt"))
    assert [r.text for r in records[-4:]] == TEXTS
    assert "damaged" in records[-5].problem and len([r for r in records if r.problem]) == 1


def test_docs_keep_their_tokens(tmp_path):
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=["do", "n't"], sent_starts=[True, True]) for _ in range(3)]
    DocBin(attrs=["ORTH", "SENT_START"], docs=docs).to_disk(tmp_path / "x.spacy")

    doc = Doc(spacy.blank("en").vocab).from_bytes(read(tmp_path / "x.spacy")[2].doc)
    assert [t.text for t in doc] == ["do", "n't"] and len(list(doc.sents)) == 2


def test_a_table_without_texts_in_a_row(tmp_path):
    rows = pa.table({"body": ["a", None, "c\0"], "key": ["x", "n2", "z"]})
    pq.write_table(rows, tmp_path / "x.parquet")

    first, second, third = read(tmp_path / "x.parquet", text_key="body", id_key="key")
    assert (first.id, first.text, first.problem) == ("x", "a", "")
    assert "its text is NoneType" in second.problem and second.id == "n2"
    assert "NUL" in third.problem


IDS = {
    "floats": (pa.array([1.0, None, 0.5, 2.0**60]), ["1", None, "0.5", str(2**60)]),
    "nan": (pa.array([1.0, float("nan")]), ["1", None]),
    "uuids": (pa.array([bytes(16)], pa.uuid()), ["00000000-0000-0000-0000-000000000000"]),
    "times": (pa.array([1], pa.timestamp("ns")), ["1970-01-01 00:00:00.000000001"]),
    "decimals": (pa.array([Decimal("1.50")]), ["1.50"]),
    "categories": (pa.array(["a", None]).dictionary_encode(), ["a", None]),
    "nothing": (pa.nulls(2), [None, None]),
}


@pytest.mark.parametrize("ids, expected", IDS.values(), ids=IDS)
def test_ids_of_other_types_are_exact(tmp_path, ids, expected):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["a"] * len(ids), "id": ids}), path)

    check_inputs([path], EmbedSettings())
    assert [record.id for record in read(path)] == expected
    assert not any(record.problem for record in read(path))


@pytest.mark.parametrize("value", [b"x", 3, ["x"]], ids=["binary", "int", "list"])
def test_columns_of_other_types_are_refused(tmp_path, value):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": [value], "id": [1]}), path)
    with pytest.raises(ValueError, match="EL103.*column 'text' of strings.*id .int64."):
        check_inputs([path], EmbedSettings())
    pq.write_table(pa.table({"text": ["x"], "id": [[value]]}), path)
    (record,) = read(path)
    assert "its id is list" in record.problem


def test_wrong_files_are_told_before_the_work(tmp_path):
    path = tmp_path / "x.parquet.gz"
    path.write_bytes(gzip.compress(write(tmp_path / "x.parquet").read_bytes()))
    with pytest.raises(ValueError, match="EL103.*decompress it to 'x.parquet'"):
        check_inputs([path], EmbedSettings())
    with pytest.raises(ValueError, match="EL103.*column 'body'.*id .*text"):
        check_inputs([tmp_path / "x.parquet"], EmbedSettings(text_key="body"))
    (tmp_path / "mac.txt").write_bytes(b"One line.\rTwo lines.\r")
    with pytest.raises(ValueError, match="EL103.*mac.txt"):
        check_inputs([tmp_path / "mac.txt"], EmbedSettings())
