"""Readers of records: what is none is one with a problem, and reading goes on from any place."""

import gzip
import json
import lzma
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_elmo.bulk import parquet_records, record_readers
from spacy_elmo.bulk.bulk_inputs import READERS, read_all, require_readable
from spacy_elmo.bulk.parquet_records import require_columns
from spacy_elmo.bulk.record_readers import Keys
from spacy_elmo.bulk.records import START
from spacy_elmo.text.text_files import get_format, zstd

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


@pytest.mark.parametrize("at", [0.5, 0.9])
@pytest.mark.parametrize("name", ["x.txt.gz", "x.txt.xz", "x.txt.zst"])
def test_damage_is_met_at_the_same_place_wherever_reading_begins(tmp_path, name, at):
    rng = np.random.default_rng(0)
    texts = [" ".join(map(str, rng.integers(0, 9999, rng.integers(1, 40)))) for _ in range(3000)]
    pack = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstd.compress}[name[6:]]
    content = bytearray(pack("".join(f"{text}\n" for text in texts).encode()))
    content[int(at * len(content))] ^= 0xFF
    (tmp_path / name).write_bytes(content)

    items = read(tmp_path / name)
    for i in range(0, len(items) - 1, 97):
        rest = read(tmp_path / name, items[i][1])
        assert [record for record, _ in rest] == [record for record, _ in items[i + 1 :]]


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
    b'{"text": "half \\ud83d"}': "its text holds half of a pair (U+D83D)",
    b'{"text": "a", "id": "\\u0000"}': "its id holds NUL",
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


def test_a_damaged_footer_is_for_the_reader_to_tell(tmp_path):
    path = tmp_path / "x.parquet"
    content = write(path, ["eggs"] * 9).read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x80
        path.write_bytes(damaged)
        try:
            require_columns(path, KEYS)
        except ValueError as err:
            assert "[EL250]" in str(err) or "[EL296]" in str(err)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        require_columns(path, KEYS)


def test_a_damaged_schema_does_not_end_the_process(tmp_path):
    # As of a column that is no longer optional: its statistics do not fit, and Arrow aborts if
    # it is asked for them.
    code = (
        "import sys; from pathlib import Path; path = Path(sys.argv[1])\n"
        "from spacy_elmo.bulk.parquet_records import read_parquet\n"
        "from spacy_elmo.bulk.record_readers import Keys\n"
        "from spacy_elmo.bulk.records import START\n"
        "content = path.read_bytes()\n"
        "start = len(content) - 8 - int.from_bytes(content[-8:-4], 'little')\n"
        "for place in range(start, len(content)):\n"
        "    damaged = bytearray(content); damaged[place] ^= 2; path.write_bytes(damaged)\n"
        "    list(read_parquet(path, START, Keys('text', 'id')))"
    )
    rows = {"other": [1.5, 2.5], "text": ["a", "b"], "id": [1, 2]}
    pq.write_table(pa.table(rows), tmp_path / "x.parquet")
    command = [sys.executable, "-c", code, str(tmp_path / "x.parquet")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.parametrize("name", ["x.parquet", "x.spacy", "x.jsonl.xz", "x.txt.gz"])
def test_flipped_bits_stop_nothing(tmp_path, name):
    content = write(tmp_path / name, [f"{i} eggs" for i in range(200)]).read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        (tmp_path / name).write_bytes(damaged)
        records = [record for record, _ in read(tmp_path / name)]
        # Where the format tells that it is damaged, a record says so: nothing is lost in silence.
        assert len(records) == 200 or any(record.problem for record in records)


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


def test_a_bad_record_keeps_its_id(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": null, "id": "n2"}\n{"text": "a", "id": []}\n')
    pq.write_table(pa.table({"text": [None, "a"], "id": ["n2", "z"]}), tmp_path / "x.parquet")
    for name, ids in (("x.jsonl", ["n2", None]), ("x.parquet", ["n2", "z"])):
        assert [record.id for record, _ in read(tmp_path / name)] == ids


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
    rows = {"text": ["a"] * len(ids), "id": ids}
    pq.write_table(pa.table(rows), tmp_path / "x.parquet")

    require_columns(tmp_path / "x.parquet", KEYS)
    records = [record for record, _ in read(tmp_path / "x.parquet")]
    assert [record.id for record in records] == expected
    assert not any(record.problem for record in records)


@pytest.mark.parametrize(
    "value", [b"x", 3, ["x"], {"a": "x"}], ids=["binary", "int", "list", "struct"]
)
def test_columns_of_other_types_are_refused(tmp_path, value):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": [value], "id": [1]}), path)
    with pytest.raises(ValueError, match="EL296.*'text'.*one of texts.*--text-key"):
        require_columns(path, KEYS)
    if value != 3:
        pq.write_table(pa.table({"text": ["x"], "id": [value]}), path)
        with pytest.raises(ValueError, match="EL296.*'id'.*numbers.*--id-key"):
            require_columns(path, KEYS)
    pq.write_table(pa.Table.from_arrays([pa.array(["x"])] * 2, ["text", "text"]), path)
    with pytest.raises(ValueError, match="EL296.*string, string"):
        require_columns(path, KEYS)


def test_a_text_of_a_table_that_is_none_or_too_long_is_set_aside_alone(tmp_path, monkeypatch):
    bad = pa.array([b"a", b"\xff", b"c" * 30, b"d"]).view(pa.string())
    monkeypatch.setattr(parquet_records, "MOST_BYTES", 20)
    for column in (bad, bad.dictionary_encode()):
        pq.write_table(pa.table({"text": column, "id": list("abcd")}), tmp_path / "x.parquet")
        records = [record for record, _ in read(tmp_path / "x.parquet")]
        assert [(r.id, r.text) for r in records if not r.problem] == [("a", "a"), ("d", "d")]
        assert "no text in UTF-8" in records[1].problem and records[1].id == "b"
        assert "more than 20 bytes" in records[2].problem


def test_a_small_table_of_large_texts_takes_little_memory(tmp_path):
    code = (
        "import sys; from pathlib import Path; import tracemalloc, pyarrow as pa\n"
        "from spacy_elmo.bulk.parquet_records import read_parquet\n"
        "from spacy_elmo.bulk.record_readers import Keys\n"
        "from spacy_elmo.bulk.records import START\n"
        "from spacy_elmo.utils import read_peak_memory\n"
        "before = read_peak_memory()\n"
        "items = read_parquet(Path(sys.argv[1]), START, Keys('text', 'id'))\n"
        "n = sum(len(record.text) for record, _ in items)\n"
        "print(n, read_peak_memory() - before)"
    )
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 300), pa.array(["word " * 600_000]))
    for column in (texts, texts.cast(pa.string())):
        pq.write_table(pa.table({"text": column}), tmp_path / "x.parquet", compression="zstd")
        command = [sys.executable, "-c", code, str(tmp_path / "x.parquet")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        n, n_bytes = map(int, done.stdout.split())
        assert n == 300 * 3_000_000 and n_bytes < 120_000_000


@pytest.mark.parametrize("compression", ["gz", "xz", "zst"])
def test_parquet_that_is_compressed_as_a_whole_is_refused(tmp_path, compression):
    path = tmp_path / f"x.parquet.{compression}"
    path.write_bytes(gzip.compress(write(tmp_path / "x.parquet").read_bytes()))
    with pytest.raises(ValueError, match="EL302.*Decompress it to 'x.parquet'"):
        require_readable([path], KEYS)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_lines_of_old_macs_are_refused_beforehand(tmp_path, suffix):
    path = tmp_path / f"x.txt{suffix}"
    pack = gzip.compress if suffix else bytes
    path.write_bytes(pack(b"One line.\rTwo lines.\r"))
    with pytest.raises(ValueError, match="EL329.*x.txt"):
        require_readable([path], KEYS)
    for content in (b"One line.\r", b"One\rline.\nTwo lines.", b""):
        path.write_bytes(pack(content))
        require_readable([path], KEYS)
    # What is damaged becomes a bad record later.
    path.write_bytes(pack(b"One line.")[:-3])
    require_readable([path], KEYS)
