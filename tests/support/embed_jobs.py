"""Jobs of `embed`, and their rows."""

import json
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from spacy_elmo.embed.job import embed_files, run_local
from spacy_elmo.embed.output import REJECTS
from spacy_elmo.embed.pipeline import EmbedSettings

run_here = partial(run_local, n_processes=1)


def embed(text, output, pipeline, *, engine=run_here, resume=False, **settings):
    """Run a job. Returns its rows, if they are a table."""
    settings = {"shard_chars": 100, "batch_chars": 40, "dtype": "float32", **settings}
    job = EmbedSettings(pipeline=str(pipeline), **settings)
    for _ in embed_files(str(text), output, job, engine, resume=resume):
        pass
    return None if job.format == "spacy" else read_rows(output)


def read_rows(output):
    """All rows of a job, as dicts."""
    tables = [pq.read_table(path) for path in sorted(output.glob("part-*.parquet"))]
    for path in sorted(output.glob("part-*.arrow")):
        with pa.OSFile(str(path)) as file:
            tables.append(pa.ipc.open_file(file).read_all())
    return pa.concat_tables(tables).to_pylist()


def read_rejects(output):
    """All rejects of a job, as dicts."""
    return [json.loads(line) for line in (output / REJECTS).read_text().splitlines()]
