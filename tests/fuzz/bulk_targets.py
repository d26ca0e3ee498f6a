"""What `embed` reads, its own files among it, and what a server is sent."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pyarrow as pa
import pyarrow.parquet as pq
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_elmo.bulk.bulk_inputs import require_readable
from spacy_elmo.bulk.bulk_settings import BulkSettings
from spacy_elmo.bulk.job_files import JOB, MANIFEST, describe_job, read_job, require_same_job
from spacy_elmo.bulk.journal import JOURNAL, read_first_reject, read_state, write_rejects
from spacy_elmo.bulk.planning import plan_tasks
from spacy_elmo.bulk.record_readers import Keys
from spacy_elmo.bulk.records import Place, Record, Result, Task, make_reject
from spacy_elmo.bulk.vector_folder import VectorFolder
from spacy_elmo.files import digest, digest_file
from spacy_elmo.text.text_files import zstd

from ..support.helpers import ROOT
from .folder_targets import seal
from .mutation import bundle, unbundle
from .target import Job, Target, write_files

LINES = b'{"id": 1, "text": "Green eggs \\u00e9."}\n\n{"id": "b", "text": "ham"}\n{"text": 3}\n'
TEXTS = ["Green eggs.", None, "Ham é", "x" * 50]
_SETTINGS = BulkSettings(shard_chars=20)


def _read_input(name: str, contents: List[bytes]) -> Target:
    """An input of a job: each of its records is one, or is set aside, and reading goes on from
    any place."""

    def make(folder: Path) -> Job:
        path = folder / name

        def run(data: bytes) -> object:
            path.write_bytes(data)
            require_readable([path], Keys("text", "id"))
            tasks = _plan(path)
            for task in tasks:
                json.dumps([make_reject(r, r.problem) for r in task.records]).encode("ascii")
                "".join(record.text for record in task.records).encode("utf-8")
            if tasks:
                rest = _plan(path, first=1, start=tasks[0].end)
                assert rest == tasks[1:], "a resumed job reads something else"

        return Job(contents, run)

    return make


def _plan(path: Path, **start: Any) -> List[Task]:
    tasks = plan_tasks([path], _SETTINGS, **start)
    # How many bytes were read is for the progress bar, and an estimate in compressed files.
    return [task._replace(end=task.end._replace(n_bytes=0)) for task in tasks]


def _make_tables() -> List[bytes]:
    ids = {
        "integers": [1, 2, None, 4],
        "floats": [0.5, None, 2.0, 3.0],
        "times": pa.array([0, 1, 2, 3], pa.timestamp("ns")),
    }
    tables = [pa.table({"text": TEXTS, "id": each}) for each in ids.values()]
    tables.append(pa.table({"text": pa.array(TEXTS).dictionary_encode(), "id": list("abcd")}))
    settings: List[Dict[str, Any]] = [
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "row_group_size": 3},
        {"compression": "gzip", "data_page_version": "2.0"},
        {"compression": "snappy", "write_page_index": True},
    ]
    return [_write_table(table, **each) for table, each in zip(tables, settings)]


def _write_table(table: Any, **settings: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **settings)
    return file.getvalue()


def _make_docs() -> bytes:
    nlp = spacy.blank("en")
    docs = [nlp("Green eggs."), Doc(nlp.vocab, words=["do", "n't"], sent_starts=[True, False])]
    docs[0].ents = [Span(docs[0], 0, 1, "FOOD")]
    docs[0].spans["x"] = [docs[0][:2]]
    docs[0].user_data["a"] = 1
    return DocBin(
        attrs=["ORTH", "SENT_START", "ENT_TYPE"], docs=docs, store_user_data=True
    ).to_bytes()


def _make_lines() -> List[Result]:
    counts = {"size": 3, "digest": digest(b"abc"), "n_records": 1, "n_rows": 1, "n_tokens": 2}
    rejects = [make_reject(Record("a.txt", 3, "x", "eggs"), "it is no text")]
    return [
        Result(i, Place(0, 9 * i, i, 9 * i), f"part-{i:06}.parquet", rejects=rejects, **counts)
        for i in (0, 2, 1)
    ]


def journal(folder: Path) -> Job:
    """A job that was stopped: lines with the digests that they need."""
    lines = [json.dumps(result._asdict()).encode("ascii") for result in _make_lines()]
    (folder / "text").mkdir()
    (folder / "text/a.txt").write_text("Green eggs.\n" * 9)

    def run(data: bytes) -> object:
        sealed = [b"%s %s" % (digest(line).encode("ascii"), line) for line in data.split(b"\n")]
        shards = {result.shard: b"abc" for result in _make_lines()}
        write_files(folder / "x", {**shards, JOURNAL: b"\n".join([*sealed, b"cut off"])})
        state = read_state(folder / "x")
        place: Dict[str, Any] = {"first": state.first, "start": state.start}
        list(plan_tasks([folder / "text/a.txt"], _SETTINGS, done={*state.results}, **place))
        if write_rejects(folder / "x") is not None:
            read_first_reject(folder / "x")
        return read_state(folder / "x").n_rejects

    return Job([b"\n".join(lines)], run)


def _make_manifest(shard: bytes) -> Dict[str, Any]:
    pipeline = {"biLM": "00", "mix": "11", "config": "22", "components": ["elmo"], "widths": {}}
    file = {"path": "a.txt", "resolved": "/a.txt", "size": 3, "digest": digest(b"abc")}
    job = describe_job(_SETTINGS, pipeline, [file])
    part = {"shard": "part-000000.parquet", "size": len(shard), "digest": digest(shard)}
    counts = {"n_records": 2, "n_rows": 2, "n_tokens": 4}
    return {**job, **counts, "n_rejects": 0, "shards": [{**part, **counts}]}


def vector_folder(folder: Path) -> Job:
    """A finished job that becomes an index, and is resumed."""
    numbers = pa.array([0.5] * 8, pa.float16())
    vectors = pa.FixedSizeListArray.from_arrays(numbers, 4)
    shard = _write_table(pa.table({"words": [["Green", "eggs"], ["Ham"]], "layer_0": vectors}))
    manifest = _make_manifest(shard)
    files = {MANIFEST: json.dumps(manifest, indent=1).encode(), "part-000000.parquet": shard}

    def run(data: bytes) -> object:
        given = unbundle(data)
        if MANIFEST in given:
            given[MANIFEST] = seal(given[MANIFEST])
            given[JOB] = given[MANIFEST]
        write_files(folder / "x", given)
        require_same_job(folder / "x", read_job(folder / "x"), manifest)
        vectors = VectorFolder(folder / "x")
        for part in vectors.shards:
            # As if its digest were right.
            vectors.check(part._replace(digest=digest_file(part.path)))
            vectors.read_words(part)
            vectors.read_vectors(part, 0)
        return vectors.has(0, "00")

    return Job([bundle(files)], run)


def serve(folder: Path) -> Job:
    """Bodies of requests to projects/serve."""
    sys.path.append(str(ROOT / "projects" / "serve"))
    from elmo_service import bodies
    from elmo_service.limits import Limits
    from elmo_service.refusals import Refusal
    from pydantic import ValidationError

    texts = ["Green eggs.", "", "(" * 200, "é"]
    seeds = [
        {"texts": texts},
        {"texts": texts, "pooling": "mean", "encoding": "base64"},
        {"pairs": [["a", "b"], ["Ham", "Ham."]]},
    ]
    nlp = spacy.blank("en")

    def run(data: bytes) -> object:
        for kind in (bodies.TextsBody, bodies.VectorsBody, bodies.PairsBody):
            try:
                body: Any = kind.model_validate(json.loads(data))
                pairs = getattr(body, "pairs", None)
                found = body.texts if pairs is None else [text for pair in pairs for text in pair]
                bodies.check_texts(found, Limits())
            # What the server answers with a reason; RecursionError is one of `json`.
            except (ValidationError, Refusal, ValueError, RecursionError):
                continue
            for text in found:
                nlp.make_doc(text)
        return None

    return Job([json.dumps(seed).encode() for seed in seeds], run)


TARGETS: Dict[str, Callable[[Path], Job]] = {
    "bulk_lines": _read_input("x.txt", [LINES, b"\xef\xbb\xbfGreen eggs.\r\n\r\n\xff\n"]),
    "bulk_json": _read_input("x.jsonl", [LINES]),
    "bulk_json_gz": _read_input("x.jsonl.gz", [gzip.compress(LINES)]),
    "bulk_parquet": _read_input("x.parquet", _make_tables()),
    "bulk_docs": _read_input("x.spacy", [_make_docs()]),
    "bulk_journal": journal,
    "bulk_vectors": vector_folder,
    "serve_bodies": serve,
}
if zstd is not None:
    TARGETS["bulk_json_zst"] = _read_input("x.jsonl.zst", [zstd.compress(LINES)])
