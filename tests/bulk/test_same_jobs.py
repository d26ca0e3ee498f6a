"""What is resumed is the same job, of the same text, whose shards are still there."""

import time
from itertools import islice

import numpy as np
import pytest
from spacy.util import compile_infix_regex

from spacy_elmo.bulk import bulk_pipeline
from spacy_elmo.bulk.bulk_settings import BulkSettings
from spacy_elmo.bulk.job_files import MANIFEST, read_manifest
from spacy_elmo.files import read_checked_json, write_checked_json

from ..support.bulk_jobs import embed, run_here
from ..support.helpers import make_nlp


def cut_at_a(nlp):
    infixes = compile_infix_regex([*nlp.Defaults.infixes, "a"])
    nlp.tokenizer.infix_finditer = infixes.finditer


def add_rule(nlp):
    nlp.get_pipe("entity_ruler").add_patterns([{"label": "FOOD", "pattern": "ham"}])


def add_vectors(nlp):
    nlp.vocab.set_vector("ham", np.array([1.0, 2.0], dtype="f"))


@pytest.mark.parametrize("change", [cut_at_a, add_rule, add_vectors])
def test_another_pipeline_is_told_from_its_parts(tmp_path, change):
    nlp = make_nlp()
    nlp.add_pipe("entity_ruler", first=True)
    # Behind both: what comes behind the last that is needed is not run.
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "a")
    change(nlp)
    nlp.to_disk(tmp_path / "b")
    found = [
        bulk_pipeline.load_bulk_pipeline(BulkSettings(pipeline=str(tmp_path / name))).describe()
        for name in "aab"
    ]
    assert found[0] == found[1]
    assert {key for key in found[0] if found[0][key] != found[2][key]} == {"parts"}


def test_a_job_of_an_earlier_version_is_resumed(pipeline, texts, tmp_path):
    """Its description lacks the parts."""
    output = tmp_path / "out"
    embed(texts, output, pipeline)
    manifest = read_checked_json(output / MANIFEST)
    manifest["pipeline"]["others"] = {}
    del manifest["pipeline"]["parts"]
    write_checked_json(output / MANIFEST, manifest)
    embed(texts, output, pipeline, resume=True)


def test_a_finished_job_has_its_shards(pipeline, texts, tmp_path):
    output = tmp_path / "out"
    embed(texts, output, pipeline, shard_chars=50)
    names = [shard["shard"] for shard in read_manifest(output)["shards"]]
    (output / names[0]).unlink()
    damage(output / names[1])
    with pytest.raises(ValueError, match=f"EL308.*{names[0]}.*{names[1]}"):
        embed(texts, output, pipeline, resume=True, shard_chars=50)


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_damaged_shard_is_computed_again(pipeline, texts, tmp_path):
    output = tmp_path / "out"
    expected = embed(texts, tmp_path / "expected", pipeline)

    def stop(tasks, worker, retries):
        yield from islice(run_here(tasks, worker, retries), 3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed(texts, output, pipeline, engine=stop, shard_chars=50)
    damage(output / "part-000001.parquet")
    found = embed(texts, output, pipeline, resume=True, shard_chars=50)
    assert [row["words"] for row in found] == [row["words"] for row in expected]


def test_a_text_that_changes_meanwhile_ends_the_job(pipeline, texts, tmp_path):
    def run(tasks, worker, retries):
        for result in run_here(tasks, worker, retries):
            (texts / "b.txt").write_text("Something else.\n")
            yield result

    with pytest.raises(ValueError, match="EL246.*b.txt: changed"):
        embed(texts, tmp_path / "out", pipeline, engine=run, shard_chars=50)
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_long_runs_of_punctuation_take_no_time(pipeline, tmp_path):
    (tmp_path / "x.txt").write_text(f"Title\n{'=' * 100_000}\nEnd.\n")
    start = time.process_time()
    rows = embed(tmp_path / "x.txt", tmp_path / "out", pipeline, unit="documents")
    # Half an hour without care.
    assert time.process_time() - start < 60
    assert [row["n_tokens"] for row in rows] == [1, 100_000, 2]
