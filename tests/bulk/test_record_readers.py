"""Readers of records: what is none is one with a problem, and reading goes on from any place."""

import gzip
import json
import lzma
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_elmo.bulk import record_readers
from spacy_elmo.bulk.bulk_inputs import READERS, read_all, save_stdin
from spacy_elmo.bulk.record_readers import Keys
from spacy_elmo.bulk.records import START
from spacy_elmo.text.text_files import get_format

KEYS = Keys("text", "id")
TEXTS = ["Green eggs.", "Ham é ｡", "x" * 50, "one two"]


def read(path, start=START, keys=KEYS):
    return list(READERS[get_format(path)](path, start, keys))


def write(path, texts=TEXTS):
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    content = {
        "txt": "".join(f"{text}\n" for text in texts),
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
    }.get(get_format(path), "")
    if get_format(path) == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
    elif get_format(path) == "spacy":
        nlp = spacy.blank("en")
        DocBin(docs=[nlp(text) for text in texts]).to_disk(path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(content.encode()))
    elif path.suffix == ".xz":
        path.write_bytes(lzma.compress(content.encode()))
    else:
        path.write_bytes(content.encode())
    return path


NAMES = ["x.txt", "x.txt.gz", "x.jsonl", "x.jsonl.xz", "x.parquet", "x.spacy"]


@pytest.mark.parametrize("name", NAMES)
def test_reading_goes_on_from_every_place(tmp_path, name):
    path = write(tmp_path / name)
    items = read(path)

    assert [record.text for record, _ in items] == TEXTS
    assert [record.number for record, _ in items] == [0, 1, 2, 3]
    assert not any(record.problem for record, _ in items)
    if "jsonl" in name or "parquet" in name:
        assert [record.id for record, _ in items] == ["0", "1", "2", "3"]
    for i, (_, place) in enumerate(items):
        assert [record for record, _ in read(path, place)] == [r for r, _ in items[i + 1 :]]
    assert items[-1][1].n_bytes == path.stat().st_size


BAD_LINES = {
    b"\xff\xfe no text": "no text in UTF-8",
    b"{": "no JSON",
    b"[1]": "no JSON object with a 'text'",
    b'{"t": "x"}': "no JSON object with a 'text'",
    b'{"text": 3}': "its text is int",
    b'{"text": null}': "its text is NoneType",
    b'{"text": "a\\u0000b"}': "NUL",
    b'{"text": "x", "id": [1]}': "its id is list",
    b'{"text": "x", "id": true}': "its id is bool",
    b"[" * 100_000: "no JSON",
}


@pytest.mark.parametrize("line, reason", BAD_LINES.items(), ids=BAD_LINES.values())
def test_a_bad_line_is_one_record(tmp_path, line, reason):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "a"}\n' + line + b'\n{"text": "b", "id": "B"}\n')

    first, bad, last = (record for record, _ in read(path))
    assert reason in bad.problem and bad.number == 1 and len(bad.text) < 5000
    assert (first.text, last.text, last.id) == ("a", "b", "B")
    assert not first.problem and not last.problem


def test_a_line_that_fills_the_memory_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(record_readers, "MOST_BYTES", 20)
    (tmp_path / "x.txt").write_text("one\n" + "a" * 1000 + "\ntwo\n" + "b" * 19 + "\n")

    records = [record for record, _ in read(tmp_path / "x.txt")]
    assert [r.text for r in records if not r.problem] == ["one", "two", "b" * 19]
    assert "more than 20 bytes" in records[1].problem
    for i, (_, place) in enumerate(read(tmp_path / "x.txt")):
        assert [r for r, _ in read(tmp_path / "x.txt", place)] == records[i + 1 :]


@given(st.binary(max_size=200))
def test_any_bytes_are_records(tmp_path, content):
    for name in ("y.txt", "y.jsonl", "y.parquet", "y.spacy", "y.txt.gz"):
        (tmp_path / name).write_bytes(content)
        for record, _ in read(tmp_path / name):
            assert isinstance(record.text, str)
            record.text.encode("utf-8")


@pytest.mark.parametrize("name", ["x.txt.gz", "x.txt.xz", "x.parquet", "x.spacy"])
def test_the_rest_of_a_damaged_file_is_set_aside(tmp_path, name):
    path = write(tmp_path / name, [f"{i} {np.random.default_rng(i).bytes(9)}" for i in range(2000)])
    path.write_bytes(path.read_bytes()[:-4000])
    write(tmp_path / "z.txt")

    files = [path, tmp_path / "z.txt"]
    items = list(read_all(files, START, KEYS))
    records = [record for record, _ in items]
    for i in range(max(0, len(items) - 7), len(items)):
        assert [r for r, _ in read_all(files, items[i][1], KEYS)] == records[i + 1 :]
    assert [r.text for r in records[-4:]] == TEXTS
    assert "damaged" in records[-5].problem and len([r for r in records if r.problem]) == 1


@pytest.mark.parametrize("name", ["x.parquet", "x.spacy", "x.jsonl.xz", "x.txt.gz"])
def test_flipped_bits_stop_nothing(tmp_path, name):
    content = write(tmp_path / name, [f"{i} eggs" for i in range(200)]).read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        (tmp_path / name).write_bytes(damaged)
        read(tmp_path / name)


def test_docs_keep_their_tokens_and_a_damaged_one_is_set_aside(tmp_path):
    nlp = spacy.blank("en")
    docs = [Doc(nlp.vocab, words=["do", "n't"], sent_starts=[True, True]) for _ in range(3)]
    binary = DocBin(attrs=["ORTH", "SENT_START"], docs=docs)
    binary.span_groups[1] = b"\xc1 no msgpack"
    binary.to_disk(tmp_path / "x.spacy")

    first, bad, last = (record for record, _ in read(tmp_path / "x.spacy"))
    assert "doc is damaged" in bad.problem and not first.problem and not last.problem
    doc = Doc(spacy.blank("en").vocab).from_bytes(first.doc)
    assert [t.text for t in doc] == ["do", "n't"] and len(list(doc.sents)) == 2


def test_a_table_without_texts_in_a_row(tmp_path):
    rows = pa.table({"body": ["a", None, "c\0"], "key": ["x", None, "z"]})
    pq.write_table(rows, tmp_path / "x.parquet")

    first, second, third = (r for r, _ in read(tmp_path / "x.parquet", keys=Keys("body", "key")))
    assert (first.id, first.text, first.problem) == ("x", "a", "")
    assert "its text is NoneType" in second.problem and "NUL" in third.problem


def test_the_standard_input_is_saved_once(tmp_path):
    path = tmp_path / "_stdin.txt"
    with pytest.raises(ValueError, match="EL157"):
        save_stdin(path, BytesIO())
    assert save_stdin(path, BytesIO(b"one\n")).read_bytes() == b"one\n"
    assert save_stdin(path, BytesIO(b"two\n")).read_bytes() == b"one\n"
