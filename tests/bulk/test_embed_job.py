"""Jobs in one process: what is written, and that nothing is lost or twice, whatever happens."""

import gc
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bulk import arrow, bulk_pipeline, rows, task_worker
from spacy_elmo.bulk.bulk_settings import BulkSettings
from spacy_elmo.bulk.job_files import JOB, MANIFEST, read_manifest
from spacy_elmo.bulk.journal import JOURNAL, REJECTS
from spacy_elmo.bulk.records import Result
from spacy_elmo.bulk.task_worker import TaskWorker
from spacy_elmo.bulk.vector_folder import VectorFolder
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.files import digest_file, write_checked_json
from spacy_elmo.layers.torch_shim import count_gpus

from ..support.bulk_jobs import embed, run_here
from ..support.faults import fail_at_each_write, fail_at_size, kill_at_each_write
from ..support.helpers import SHAPE, make_nlp


def read_rejects(output):
    return [json.loads(line) for line in (output / REJECTS).read_text().splitlines()]


def assert_same(rows, others):
    """Rows that agree in all but the noise of float32."""
    assert len(rows) == len(others) > 0
    for row, other in zip(rows, others):
        assert row.keys() == other.keys()
        for name in row:
            if name == "mix" or name.startswith("layer_"):
                np.testing.assert_allclose(row[name], other[name], atol=1e-5)
            else:
                assert row[name] == other[name]


# ---- what is written


def test_rows_of_tokens_are_those_of_the_pipeline(pipeline, texts, tmp_path):
    found = embed(texts, tmp_path / "out", pipeline, unit="tokens", layers=("mix", "0", "2"))

    nlp = spacy.load(pipeline)
    nlp.get_pipe("elmo").store_layers = True
    expected = []
    for path in sorted(texts.iterdir()):
        for number, line in enumerate(path.read_text().splitlines()):
            for token in nlp(line):
                expected.append(
                    {
                        "source": str(path), "record": number, "text": token.text,
                        "token": token.i, "start": token.idx, "id": None,
                        "mix": token._.elmo, "layer_0": token._.elmo_layers[0],
                        "layer_2": token._.elmo_layers[2],
                    }
                )  # fmt: skip
    assert {row["sentence"] for row in found} == {0, 1}
    assert_same([{k: row[k] for k in expected[0]} for row in found], expected)


def test_sentences_and_documents_are_means_over_words(pipeline, tmp_path):
    record = {"id": 7, "text": "Green  eggs. \n And ham! "}
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    sentences = embed(tmp_path / "x.jsonl", tmp_path / "a", pipeline, layers=("mix", "1"))
    (document,) = embed(tmp_path / "x.jsonl", tmp_path / "b", pipeline, unit="documents")

    doc = spacy.load(pipeline)(record["text"])
    words = [token for token in doc if not token.is_space]
    assert [row["words"] for row in sentences] == [["Green", "eggs", "."], ["And", "ham", "!"]]
    assert [row["text"].strip() for row in sentences] == ["Green  eggs.", "And ham!"]
    assert [(row["n_tokens"], row["sentence"], row["id"]) for row in sentences] == [
        (3, 0, "7"), (3, 1, "7"),
    ]  # fmt: skip
    np.testing.assert_allclose(
        sentences[1]["mix"], np.mean([t._.elmo for t in words[3:]], axis=0), atol=1e-5
    )
    np.testing.assert_allclose(
        document["mix"], np.mean([t._.elmo for t in words], axis=0), atol=1e-5
    )
    assert document["text"] == record["text"] and document["n_tokens"] == 6


def test_a_folder_that_is_named_by_a_relative_path_is_absolute_to_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_nlp().to_disk(tmp_path / "pipe")
    (tmp_path / "x.txt").write_text("Green eggs.\n")
    paths = []

    def engine(tasks, worker, retries):
        paths.append(worker.settings.pipeline)
        yield from run_here(tasks, worker, retries)

    embed("x.txt", tmp_path / "out", "pipe", engine=engine)
    assert paths == [str(tmp_path / "pipe")]


def test_another_component_that_sets_sentences_is_another_pipeline(tmp_path):
    nlp = make_nlp()
    senter = nlp.add_pipe("senter", first=True)
    senter.initialize(lambda: [Example.from_dict(nlp.make_doc("a b"), {"sent_starts": [1, -1]})])
    nlp.to_disk(tmp_path / "a")
    senter.model.get_ref("softmax").get_param("b")[0] += 1
    nlp.to_disk(tmp_path / "b")
    one, other = (
        bulk_pipeline.load_bulk_pipeline(BulkSettings(pipeline=str(tmp_path / name))).describe()
        for name in "ab"
    )
    assert {key for key in one if one[key] != other[key]} == {"parts"}


def test_sentences_are_those_that_a_component_sets(texts, tmp_path):
    nlp = make_nlp()
    nlp.add_pipe("merge_entities", first=True)
    nlp.add_pipe("sentencizer", config={"punct_chars": [","]})
    nlp.add_pipe("attribute_ruler")
    nlp.to_disk(tmp_path / "pipeline")

    found = embed(texts / "b.txt", tmp_path / "out", tmp_path / "pipeline")
    expected = ["I do not like it.", "Eat it,", "or not,", "by the river."]
    assert [row["text"] for row in found] == expected
    manifest = read_manifest(tmp_path / "out")
    assert manifest["pipeline"]["components"] == ["merge_entities", "elmo", "sentencizer"]


def test_a_pipeline_is_described_alike_by_all_processes(tmp_path):
    # The set of a sentencizer has another order in each.
    nlp = make_nlp()
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "pipeline")
    script = (
        "import sys; from spacy_elmo.bulk.bulk_pipeline import load_bulk_pipeline as load;"
        "from spacy_elmo.bulk.bulk_settings import BulkSettings;"
        "print(load(BulkSettings(pipeline=sys.argv[1])).describe()['parts'])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "pipeline")],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(found) == 1 and "sentencizer" in found.pop()
    nlp.replace_pipe("sentencizer", "sentencizer", config={"punct_chars": [","]})
    nlp.to_disk(tmp_path / "other")
    one, other = (
        bulk_pipeline.load_bulk_pipeline(BulkSettings(pipeline=str(tmp_path / name))).describe()
        for name in ("pipeline", "other")
    )
    assert one["parts"] != other["parts"]


def test_tokens_are_those_that_were_read(tmp_path):
    (tmp_path / "x.txt").write_text("He lives in New York City now. She left.\n")
    nlp = make_nlp()
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "a")
    ruler = nlp.add_pipe("entity_ruler", before="sentencizer")
    ruler.add_patterns([{"label": "GPE", "pattern": "New York City"}])
    nlp.add_pipe("merge_entities", before="sentencizer")
    nlp.to_disk(tmp_path / "b")

    expected = embed(tmp_path / "x.txt", tmp_path / "out_a", tmp_path / "a", unit="tokens")
    with pytest.warns(UserWarning, match="WL066.*merge_entities"):
        found = embed(tmp_path / "x.txt", tmp_path / "out_b", tmp_path / "b", unit="tokens")
    assert found == expected
    assert [row["text"] for row in found][3:6] == ["New", "York", "City"]


@Language.component("joins_tokens")
def join_tokens(doc):
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[:2])
    return doc


def test_tokens_that_were_changed_behind_are_told(tmp_path):
    """By a component that does not say so."""
    (tmp_path / "x.txt").write_text("Green eggs and ham.\n")
    nlp = make_nlp()
    nlp.add_pipe("joins_tokens")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "pipeline")
    with pytest.raises(ValueError, match="EL297.*EL050"):
        embed(tmp_path / "x.txt", tmp_path / "out", tmp_path / "pipeline", unit="sentences")


def test_records_without_words_cost_no_second_reading(pipeline, tmp_path, monkeypatch):
    lines = ["\u3000" if i % 10 == 0 else f"Line {i}." for i in range(100)]
    (tmp_path / "x.txt").write_text("\n".join(lines))
    sizes = []

    def count(self, docs, _embed=bulk_pipeline.BulkPipeline.embed):
        sizes.append(len(docs))
        return _embed(self, docs)

    monkeypatch.setattr(bulk_pipeline.BulkPipeline, "embed", count)
    options = {"shard_chars": 10_000, "batch_chars": 10_000, "unit": "documents"}
    found = embed(tmp_path / "x.txt", tmp_path / "out", pipeline, **options)
    assert len(found) == 90 and sum(sizes) == 90
    assert read_manifest(tmp_path / "out")["n_rejects"] == 10


@pytest.mark.parametrize("unit", ["tokens", "sentences", "documents"])
def test_rows_do_not_depend_on_shards_batches_or_formats(pipeline, texts, tmp_path, unit):
    small = embed(texts, tmp_path / "a", pipeline, unit=unit, shard_chars=1, batch_chars=1)
    large = embed(texts, tmp_path / "b", pipeline, unit=unit, shard_chars=10_000, batch_chars=9000)
    arrow = embed(texts, tmp_path / "c", pipeline, unit=unit, format="arrow")

    assert_same(small, large)
    assert_same(arrow, large)
    assert len(list((tmp_path / "a").glob("part-*"))) == 10


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_vectors_are_lists_of_a_fixed_size(pipeline, texts, tmp_path, dtype):
    embed(texts, tmp_path / "out", pipeline, dtype=dtype, has_text=False)

    schema = pq.read_schema(tmp_path / "out/part-000000.parquet")
    numbers = pa.float16() if dtype == "float16" else pa.float32()
    assert schema.field("mix").type == pa.list_(numbers, 8)
    assert "text" not in schema.names


def test_docs_of_spacy_come_back_with_vectors(pipeline, tmp_path):
    nlp = spacy.load(pipeline)
    docs = [nlp.make_doc("Green eggs and ham"), nlp.make_doc("Rome")]
    docs[0].ents = [docs[0].char_span(0, 10, "FOOD")]
    DocBin(docs=docs).to_disk(tmp_path / "x.spacy")
    embed(tmp_path / "x.spacy", tmp_path / "out", pipeline, format="spacy", layers=("mix", "1"))

    first, second = DocBin().from_disk(tmp_path / "out/part-000000.spacy").get_docs(nlp.vocab)
    assert first.ents[0].label_ == "FOOD" and second.text == "Rome"
    np.testing.assert_allclose(first._.elmo["elmo"]["mix"], nlp(docs[0].text).tensor, atol=1e-5)
    assert first[0]._.elmo_layers.shape == (3, 8)
    assert second.user_data["elmo_embed"]["record"] == 1


def test_the_manifest_has_the_shards_and_totals(pipeline, texts, tmp_path):
    found = embed(texts, tmp_path / "out", pipeline)

    manifest = read_manifest(tmp_path / "out")
    assert manifest["n_rows"] == len(found) == 18
    assert manifest["n_records"] == 10 and manifest["n_rejects"] == 0
    for shard in manifest["shards"]:
        path = tmp_path / "out" / shard["shard"]
        assert digest_file(path) == shard["digest"] and path.stat().st_size == shard["size"]
        assert len(pq.read_table(path)) == shard["n_rows"]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {".lock", MANIFEST} | {shard["shard"] for shard in manifest["shards"]}


def test_a_word_that_is_missing_is_told(pipeline, texts, tmp_path):
    embed(texts / "b.txt", tmp_path / "out", pipeline, shard_chars=1000)
    folder = VectorFolder(tmp_path / "out")
    (shard,) = folder.shards
    words = folder.read_words(shard)
    assert words[0] == ["I", "do", "not", "like", "it", "."]
    table = pq.read_table(shard.path)
    for words[0][0] in ("you", None):
        column = pa.array(words, table.schema.field("words").type)
        i = table.schema.get_field_index("words")
        pq.write_table(table.set_column(i, "words", column), shard.path)
        if words[0][0]:
            assert folder.read_words(shard) == words
    with pytest.raises(ValueError, match="EL254.*a word is missing"):
        folder.read_words(shard)


# ---- what is read


def test_what_is_hidden_or_of_a_job_is_no_input(pipeline, texts, tmp_path, monkeypatch):
    expected = embed(texts, tmp_path / "expected", pipeline)
    for name in (".hidden.txt", ".git/x.txt", "_x.txt", "_trash/x.txt", "sub/_x/y/z.txt"):
        (texts / name).parent.mkdir(parents=True, exist_ok=True)
        (texts / name).write_text("No text.\n")
    (texts / "_SUCCESS.done").touch()
    embed(texts, texts / "sub/finished", pipeline)
    embed(texts / "b.txt", texts / "stopped", pipeline)
    (texts / "stopped" / MANIFEST).rename(texts / "stopped" / JOB)

    assert_same(embed(texts, texts / "out", pipeline), expected)
    assert_same(embed(texts, texts / "out", pipeline, resume=True), expected)
    # What is named is read.
    assert len(embed(texts / "_x.txt", tmp_path / "a", pipeline)) == 1
    assert len(embed(texts / "_trash", tmp_path / "b", pipeline)) == 1
    assert len(embed(texts / "sub/finished", tmp_path / "c", pipeline)) == 18
    monkeypatch.chdir(texts)
    assert_same(strip_folders(embed(".", texts / "out2", pipeline)), strip_folders(expected))


def strip_folders(found):
    return [{**row, "source": os.path.basename(row["source"])} for row in found]


def test_the_job_itself_is_no_input(pipeline, texts, tmp_path):
    embed(texts, tmp_path / "out", pipeline)
    for text in (tmp_path / "out", tmp_path / "out/*.parquet"):
        with pytest.raises(ValueError, match="EL304"):
            embed(text, tmp_path / "out", pipeline, resume=True)


# ---- bad records


def test_bad_records_are_set_aside_with_reasons(pipeline, tmp_path, monkeypatch):
    lines = ['{"text": "Ham", "id": 1}', "{", '{"text": " \\n ", "id": "empty"}', '{"text": 3}']
    lines += [json.dumps({"text": "eggs " * 300, "id": "long"}), '{"text": "Eggs"}']
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    nlp = spacy.load(pipeline)
    nlp.max_length = 1000
    monkeypatch.setattr(spacy, "load", lambda name: nlp)

    found = embed(tmp_path / "x.jsonl", tmp_path / "out", pipeline, shard_chars=10_000)
    rejects = read_rejects(tmp_path / "out")
    assert [row["text"] for row in found] == ["Ham", "Eggs"]
    assert [(r["record"], r["id"]) for r in rejects] == [
        (1, None), (2, "empty"), (3, None), (4, "long"),
    ]  # fmt: skip
    reasons = ["no JSON", "no words", "its text is int", "E088"]
    assert all(reason in r["reason"] for reason, r in zip(reasons, rejects))
    assert len(rejects[3]["text"]) == 1000
    manifest = read_manifest(tmp_path / "out")
    assert (manifest["n_records"], manifest["n_rejects"]) == (2, 4)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("you tried to allocate 9 bytes")])
def test_a_batch_that_does_not_fit_is_halved(pipeline, texts, tmp_path, monkeypatch, error):
    sizes = []

    def make_docs(self, records, call=bulk_pipeline.BulkPipeline.make_docs):
        sizes.append(len(records))
        if len(records) > 2 or "number 5" in records[0].text:
            raise error
        return call(self, records)

    expected = embed(texts, tmp_path / "a", pipeline)
    monkeypatch.setattr(bulk_pipeline.BulkPipeline, "make_docs", make_docs)
    monkeypatch.setattr(task_worker.gc, "collect", list)
    sizes.clear()
    found = embed(texts, tmp_path / "out", pipeline, shard_chars=10_000, batch_chars=10_000)

    (reject,) = read_rejects(tmp_path / "out")
    assert "number 5" in reject["text"] and "memory, even alone" in reject["reason"]
    assert sizes[:4] == [10, 5, 2, 3]
    assert_same(
        found, [row for row in expected if row["record"] != 5 or "a.txt" not in row["source"]]
    )


ERRORS = [
    RuntimeError("expected 1 got 2"), NotImplementedError("no"), RecursionError("too deep"),
    OSError("cache miss"), OSError(28, "No space left"), KeyError("k"), ValueError("[E088] x"),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda err: type(err).__name__)
@pytest.mark.parametrize("bad", ["number 0", "number 5"])
def test_an_error_with_one_record_sets_it_aside(pipeline, texts, tmp_path, monkeypatch, error, bad):
    def make_docs(self, records, call=bulk_pipeline.BulkPipeline.make_docs):
        if any(bad in record.text for record in records):
            raise error
        return call(self, records)

    monkeypatch.setattr(bulk_pipeline.BulkPipeline, "make_docs", make_docs)
    found = embed(texts, tmp_path / "out", pipeline)
    (reject,) = read_rejects(tmp_path / "out")
    assert len(found) == 16 and bad in reject["text"]
    assert str(error).strip("'") in reject["reason"]


def test_a_doc_that_cannot_be_saved_is_set_aside(pipeline, texts, tmp_path, monkeypatch):
    def call(self, docs, call=bulk_pipeline.BulkPipeline.embed):
        docs = call(self, docs)
        for doc in docs:
            if "number 5" in doc.text:
                doc.user_data["names"] = {"Bob"}  # a set
        return docs

    monkeypatch.setattr(bulk_pipeline.BulkPipeline, "embed", call)
    embed(texts, tmp_path / "out", pipeline, format="spacy")
    (reject,) = read_rejects(tmp_path / "out")
    assert "number 5" in reject["text"] and "can not serialize 'set'" in reject["reason"]
    shards = sorted((tmp_path / "out").glob("*.spacy"))
    docs = [d for path in shards for d in DocBin().from_disk(path).get_docs(make_nlp().vocab)]
    assert len(docs) == 9 and all("number 5" not in doc.text for doc in docs)
    assert all(len(doc._.elmo["elmo"]["mix"]) == len(doc) for doc in docs)


@pytest.mark.parametrize("n_good", [0, 5])
@pytest.mark.parametrize("error", [RuntimeError("the device is gone"), OSError(28, "disk full")])
def test_an_error_with_every_record_stops_the_job(
    pipeline, texts, tmp_path, monkeypatch, error, n_good
):
    n_left = n_good

    def fail(self, records, call=bulk_pipeline.BulkPipeline.make_docs):
        nonlocal n_left
        n_left -= 1
        if n_left < 0:
            raise error
        return call(self, records)

    monkeypatch.setattr(bulk_pipeline.BulkPipeline, "make_docs", fail)
    with pytest.raises(ValueError, match="EL297.*record [05].*(device is gone|disk full)"):
        embed(texts, tmp_path / "out", pipeline, batch_chars=1)
    assert not (tmp_path / "out" / MANIFEST).exists()
    monkeypatch.undo()
    assert len(embed(texts, tmp_path / "out", pipeline, batch_chars=1, resume=True)) == 18
    assert not (tmp_path / "out" / REJECTS).exists()


def test_records_that_need_their_annotations_do_not_stop_the_job(pipeline, tmp_path, monkeypatch):
    nlp = spacy.load(pipeline)
    docs = [nlp.make_doc(text) for text in ("Bad one", "Rome", "Green eggs")]
    for doc in docs:
        doc.ents = [doc.char_span(0, 4, "FOOD")] if doc.text == "Rome" else []
    DocBin(docs=docs).to_disk(tmp_path / "x.spacy")

    def make_docs(self, records, call=bulk_pipeline.BulkPipeline.make_docs):
        made = call(self, records)
        if not all(doc.ents for doc in made):
            raise RuntimeError("no entities")
        return made

    monkeypatch.setattr(bulk_pipeline.BulkPipeline, "make_docs", make_docs)
    (row,) = embed(tmp_path / "x.spacy", tmp_path / "out", pipeline)
    assert row["text"] == "Rome" and len(read_rejects(tmp_path / "out")) == 2


def test_numbers_that_float16_cannot_hold_are_set_aside(pipeline, texts, tmp_path, monkeypatch):
    def get_vectors(pipeline, doc, call=rows._get_vectors):
        vectors = call(pipeline, doc)
        return {k: X * (1e6 if "number 3" in doc.text else 1) for k, X in vectors.items()}

    monkeypatch.setattr(rows, "_get_vectors", get_vectors)
    found = embed(texts, tmp_path / "out", pipeline, dtype="float16")
    (reject,) = read_rejects(tmp_path / "out")
    assert "none that float16 can hold" in reject["reason"] and reject["record"] == 3
    assert np.isfinite([row["mix"] for row in found]).all() and len(found) == 16
    # Docs have float32.
    embed(texts, tmp_path / "docs", pipeline, dtype="float16", format="spacy")
    assert read_manifest(tmp_path / "docs")["n_rejects"] == 0


def test_rejects_do_not_stay_in_memory(pipeline, tmp_path):
    lines = ["{}\n"] * 3000 + ['{"text": "Eggs"}\n']
    (tmp_path / "x.jsonl").write_text("".join(lines))
    n_tasks = n_held = 0

    def engine(tasks, worker, retries):
        nonlocal n_tasks, n_held
        before = {id(each) for each in gc.get_objects() if type(each) is Result}
        for result in run_here(tasks, worker, retries):
            yield result
            n_tasks += 1
        known = [each for each in gc.get_objects() if type(each) is Result]
        n_held = sum(bool(each.rejects) for each in known if id(each) not in before)

    embed(tmp_path / "x.jsonl", tmp_path / "out", pipeline, engine=engine, shard_chars=500)
    rejects = read_rejects(tmp_path / "out")
    assert [reject["record"] for reject in rejects] == [*range(3000)]
    assert read_manifest(tmp_path / "out")["n_rejects"] == 3000
    assert n_tasks > 9 and n_held <= 1


def test_rejects_are_written_even_if_nothing_else_is(pipeline, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": null, "id": "n2"}\n')
    for resume in (False, True):
        with pytest.raises(ValueError, match="EL248.*NoneType.*set aside: 1, .*_rejects.jsonl"):
            embed(tmp_path / "x.jsonl", tmp_path / "out", pipeline, resume=resume)
    (reject,) = read_rejects(tmp_path / "out")
    assert reject["id"] == "n2" and "NoneType" in reject["reason"]


def test_words_do_not_collect_in_the_vocab(pipeline, tmp_path):
    lines = "".join(f"word{i} another{i}\n" for i in range(300))
    (tmp_path / "x.txt").write_text(lines)
    nlp = spacy.load(pipeline)
    before = len(nlp.vocab.strings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spacy, "load", lambda name: nlp)
        embed(tmp_path / "x.txt", tmp_path / "out", pipeline, shard_chars=2000)
    assert len(nlp.vocab.strings) < before + 100


# ---- resuming


@pytest.fixture
def loaded(pipeline, monkeypatch):
    """The pipeline, loaded once for many jobs."""
    known = bulk_pipeline.load_bulk_pipeline(BulkSettings(pipeline=pipeline))
    monkeypatch.setattr(task_worker, "load_bulk_pipeline", lambda s: known._replace(settings=s))
    return pipeline


def test_a_job_that_is_killed_anywhere_is_resumed(loaded, texts, tmp_path):
    work = partial(embed, texts / "b.txt", tmp_path / "out", loaded, resume=True, shard_chars=20)
    expected = embed(texts / "b.txt", tmp_path / "expected", loaded)
    for _ in kill_at_each_write(work, every=3):
        shards = sorted((tmp_path / "out").glob("part-??????.parquet"))
        assert all(len(pq.read_table(shard)) for shard in shards)
        assert_same(work(), expected)
        shutil.rmtree(tmp_path / "out")


def test_a_full_disk_stops_a_job_which_is_resumed(loaded, texts, tmp_path):
    work = partial(embed, texts / "b.txt", tmp_path / "out", loaded, resume=True, shard_chars=20)
    expected = embed(texts / "b.txt", tmp_path / "expected", loaded)
    for n in fail_at_each_write(work):
        if n % 3 == 0:
            assert not [*(tmp_path / "out").glob("*.partial.*")]
            assert_same(work(), expected)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_a_disk_that_is_full_in_a_shard_leaves_no_part_of_it(pipeline, texts, tmp_path):
    work = partial(embed, texts, tmp_path / "out", pipeline, resume=True)
    expected = embed(texts, tmp_path / "expected", pipeline)
    sizes = sorted(path.stat().st_size for path in (tmp_path / "expected").glob("part*"))

    assert not fail_at_size(work, sizes[0] + 1)
    names = [path.name for path in sorted((tmp_path / "out").glob("part*"))]
    assert names == [f"part-{i:06}.parquet" for i in range(len(names))]
    assert all(len(pq.read_table(tmp_path / "out" / name)) for name in names)
    assert_same(work(), expected)


def test_what_is_done_is_not_done_again(pipeline, texts, tmp_path):
    output, small = tmp_path / "out", {"shard_chars": 50}

    def stop_after_three(tasks, worker, retries):
        for n, task in enumerate(tasks):
            if n == 3:
                raise KeyboardInterrupt
            yield worker(task)

    with pytest.raises(KeyboardInterrupt):
        embed(texts, output, pipeline, engine=stop_after_three, **small)
    with (output / JOURNAL).open("ab") as journal:
        journal.write(b"0123 half of a li")
    (output / "part-000001.parquet").unlink()
    stamp = (output / "part-000002.parquet").stat().st_mtime_ns
    numbers = []

    def run(tasks, worker, retries):
        yield from run_here(
            (numbers.append(task.number) or task for task in tasks), worker, retries
        )

    assert len(embed(texts, output, pipeline, resume=True, engine=run, **small)) == 18
    assert numbers == [1, *range(3, len(numbers) + 2)] and len(numbers) > 1
    assert (output / "part-000002.parquet").stat().st_mtime_ns == stamp
    # A finished one has nothing left to do.
    numbers.clear()
    embed(texts, output, pipeline, resume=True, engine=run, **small)
    assert not numbers and not (output / JOB).exists()


def test_only_the_same_job_is_resumed(pipeline, texts, tmp_path):
    output = tmp_path / "out"
    embed(texts, output, pipeline)
    with pytest.raises(ValueError, match="EL243.*is finished"):
        embed(texts, output, pipeline)
    (output / MANIFEST).rename(tmp_path / "manifest")
    with pytest.raises(ValueError, match="EL244.*part-000000"):
        embed(texts, output, pipeline)
    with pytest.raises(ValueError, match="EL247"):
        read_manifest(output)
    (tmp_path / "manifest").rename(output / MANIFEST)
    with pytest.raises(ValueError, match="EL245.*dtype"):
        embed(texts, output, pipeline, resume=True, dtype="float16")
    make_nlp(seed=1).to_disk(pipeline)
    with pytest.raises(ValueError, match="EL245.*biLM"):
        embed(texts, output, pipeline, resume=True)
    make_nlp().to_disk(pipeline)
    (texts / "c.txt").write_text("Something else.\n")
    with pytest.raises(ValueError, match="EL246.*c.txt: new"):
        embed(texts, output, pipeline, resume=True)
    (texts / "c.txt").rename(texts / "b.txt")
    with pytest.raises(ValueError, match="EL246.*b.txt: changed"):
        embed(texts, output, pipeline, resume=True)
    (texts / "b.txt").unlink()
    with pytest.raises(ValueError, match="EL246.*b.txt: missing"):
        embed(texts, output, pipeline, resume=True)


def stop_after(n_tasks):
    """An engine that is interrupted."""

    def run(tasks, worker, retries):
        yield from islice(run_here(tasks, worker, retries), n_tasks)
        raise KeyboardInterrupt

    return run


def test_a_large_file_that_was_changed_anywhere_is_noticed(pipeline, tmp_path):
    (tmp_path / "x.txt").write_text("Ham.\n" + " " * 6_000_000 + "\nEggs.\n")
    (tmp_path / "y.txt").write_text("Tea.\n")
    work = partial(embed, tmp_path / "?.txt", tmp_path / "out", pipeline, shard_chars=1)
    with pytest.raises(KeyboardInterrupt):
        work(engine=stop_after(1))
    # Of a small one all is compared.
    os.utime(tmp_path / "y.txt", (0, 0))
    with (tmp_path / "x.txt").open("r+b") as file:
        file.seek(70_000)
        file.write(b"Bread.")
    os.utime(tmp_path / "x.txt", (0, 0))
    with pytest.raises(ValueError, match="EL246.*x.txt: changed[^y]*$"):
        work(resume=True)


def test_the_same_files_may_be_given_by_another_path(pipeline, texts, tmp_path, monkeypatch):
    expected = embed(texts, tmp_path / "expected", pipeline)
    others = [tmp_path / "link", "texts", "other/../texts", f"{texts}/*.txt"]
    (tmp_path / "link").symlink_to(texts)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        embed(texts, tmp_path / "out", pipeline, engine=stop_after(1))
    for n, path in enumerate(others[:-1]):
        with pytest.raises(KeyboardInterrupt):
            embed(path, tmp_path / "out", pipeline, engine=stop_after(n % 2), resume=True)
    for path in (others[-1], texts, "link"):
        assert_same(embed(path, tmp_path / "out", pipeline, resume=True), expected)
    files = read_manifest(tmp_path / "out")["inputs"]
    assert [file["path"] for file in files] == [str(texts / name) for name in ("a.txt", "b.txt")]


def test_a_file_that_comes_twice_is_not_one_that_comes_once(pipeline, texts, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        embed(texts, tmp_path / "out", pipeline, engine=stop_after(1))
    (texts / "0.txt").symlink_to(texts / "b.txt")
    with pytest.raises(ValueError, match="EL246.*another order"):
        embed(texts, tmp_path / "out", pipeline, resume=True)


# ---- mistakes


def test_mistakes_are_said_before_the_work(pipeline, texts, tmp_path, monkeypatch):
    pq.write_table(pa.table({"body": ["x"]}), tmp_path / "x.parquet")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ValueError, match="EL242.*there is none.*components: none"):
        embed(texts, tmp_path / "out", tmp_path / "blank")
    with pytest.raises(ValueError, match="EL242.*'elmo2' is none.*components: elmo\\)"):
        embed(texts, tmp_path / "out", pipeline, component="elmo2")
    two = make_nlp()
    two.add_pipe("elmo", name="other", source=make_nlp())
    two.to_disk(tmp_path / "two")
    with pytest.raises(ValueError, match="EL242.*there are several.*components: elmo, other"):
        embed(texts, tmp_path / "out", tmp_path / "two")
    with pytest.raises(ValueError, match="EL171"):
        embed(texts, tmp_path / "out", tmp_path / "nothing")
    with pytest.raises(ValueError, match="EL250.*body"):
        embed(tmp_path / "x.parquet", tmp_path / "out", pipeline)
    for layer in ("3", "-1"):
        with pytest.raises(ValueError, match=f"EL249.*'mix,{layer}'.*from 0.* to 2, each once"):
            embed(texts, tmp_path / "out", pipeline, layers=("mix", layer))
    for layers in ((), ("top",), ("mix", "mix"), ("1", "1"), ("01",), ("-0",), ("",)):
        with pytest.raises(ValueError, match="EL249"):
            BulkSettings(layers=layers).check()
    (tmp_path / "blank.txt").write_text("\n \n")
    for resume in (False, True, False):
        with pytest.raises(ValueError, match="EL300"):
            embed(tmp_path / "blank.txt", tmp_path / "empty", pipeline, resume=resume)
        assert os.listdir(tmp_path / "empty") == [".lock"]
    embed(texts, tmp_path / "empty", pipeline)
    with pytest.raises(ValueError, match="EL161.*'qq'.*'xx'"):
        embed(texts, tmp_path / "new", "", lang="qq")
    monkeypatch.setattr(arrow, "pa", None)
    with pytest.raises(ValueError, match="EL240"):
        embed(texts, tmp_path / "new", pipeline)
    assert not (tmp_path / "new").exists()


def test_without_pyarrow_and_ray_the_rest_works(tmp_path):
    code = (
        "import sys; sys.modules.update(pyarrow=None, ray=None); import spacy; "
        "spacy.registry.cli.get_all(); import spacy_elmo.bulk.embed_job, spacy_elmo.cli; "
        "from spacy_elmo.bulk.ray_engine import require_ray\n"
        "try: require_ray()\nexcept ValueError as err: print(err)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert "EL241" in done.stdout


@pytest.mark.parametrize(
    "change",
    [
        {"settings": None}, {"pipeline": []}, {"inputs": {}}, {"inputs": [{"path": 3}]},
        {"inputs": [{"path": "x\0"}]}, {"inputs": [{"path": "x", "resolved": "\ud800"}]},
        {"n_rows": "9"}, {"shards": [{}]},
    ],
)  # fmt: skip
def test_a_manifest_of_another_kind_is_refused(pipeline, texts, tmp_path, change):
    embed(texts, tmp_path / "out", pipeline)
    manifest = read_manifest(tmp_path / "out")
    write_checked_json(tmp_path / "out" / MANIFEST, {**manifest, **change})
    with pytest.raises(ValueError, match="EL299.*_manifest.json"):
        read_manifest(tmp_path / "out")


def test_words_are_cut_as_the_weights_have_learned(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "natto", None)
    for name, tokenizer in (("rules", {"@tokenizers": "spacy.Tokenizer.v1"}), ("own", {})):
        meta = {"lang": "ko", "tokenizer": tokenizer}
        write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / name, meta=meta)
    settings = BulkSettings(weights=str(tmp_path / "rules"), lang="ko")
    settings.check()
    assert (
        bulk_pipeline.load_bulk_pipeline(settings).nlp.make_doc("나는 달걀을 좋아한다.")[-1].text
        == "."
    )
    with pytest.raises(ValueError, match="EL089.*'ko'"):
        BulkSettings(weights=str(tmp_path / "own"), lang="ko").check()


@pytest.mark.skipif(count_gpus() > 0, reason="has one")
def test_a_gpu_that_is_not_there_is_said(tmp_path):
    worker = TaskWorker(BulkSettings(pipeline="pipe"), tmp_path, gpu=True)
    with pytest.raises(ValueError, match="EL325.*no GPU 0 .*sees 0 of"):
        worker.load()
