"""Jobs in one process: what is written, and that nothing is lost or twice, whatever happens."""

import json
import multiprocessing
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
from spacy.util import compile_infix_regex

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.embed import job, output, rows
from spacy_elmo.embed.job import run_local
from spacy_elmo.embed.output import JOB, MANIFEST, REJECTS, VectorFolder, read_manifest
from spacy_elmo.embed.pipeline import EmbedSettings, load_embed_pipeline
from spacy_elmo.files import digest_file

from ..support.embed_jobs import embed, read_rejects, run_here
from ..support.faults import kill_at_each_write
from ..support.helpers import SHAPE, make_nlp


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
    """By a component that is not declared to retokenize."""
    (tmp_path / "x.txt").write_text("Green eggs and ham.\n")
    nlp = make_nlp()
    nlp.add_pipe("joins_tokens")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "pipeline")
    with pytest.raises(ValueError, match="EL248.*EL050"):
        embed(tmp_path / "x.txt", tmp_path / "out", tmp_path / "pipeline", unit="sentences")


@pytest.mark.parametrize("unit", ["tokens", "sentences", "documents"])
def test_rows_do_not_depend_on_shards_batches_or_formats(pipeline, texts, tmp_path, unit):
    small = embed(texts, tmp_path / "a", pipeline, unit=unit, shard_chars=1, batch_chars=1)
    large = embed(texts, tmp_path / "b", pipeline, unit=unit, shard_chars=10_000, batch_chars=9000)
    arrow = embed(texts, tmp_path / "c", pipeline, unit=unit, format="arrow")

    assert_same(small, large)
    assert_same(arrow, large)
    assert len(list((tmp_path / "a").glob("part-*"))) == 10


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


def test_vectors_are_read_back(pipeline, texts, tmp_path):
    embed(texts / "b.txt", tmp_path / "out", pipeline, shard_chars=1000, layers=("mix", "0"))
    folder = VectorFolder(tmp_path / "out")
    (shard,) = folder.shards
    name, path = shard["shard"], tmp_path / "out" / shard["shard"]
    words = folder.read_words(name)
    assert words[0] == ["I", "do", "not", "like", "it", "."]
    biLM = folder.manifest["pipeline"]["biLM"]
    assert folder.has(0, biLM) and not folder.has(1, biLM) and not folder.has(0, "0" * 32)
    assert folder.read_vectors(name, 0).shape == (len(words), 8)
    table = pq.read_table(path)
    words[0][0] = None
    column = pa.array(words, table.schema.field("words").type)
    pq.write_table(table.set_column(table.schema.get_field_index("words"), "words", column), path)
    with pytest.raises(ValueError, match="EL247.*a value of words is missing"):
        folder.read_words(name)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="EL247.*cannot be read"):
        folder.read_vectors(name, 0)


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
    # Files and folders that are named themselves are read.
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
        with pytest.raises(ValueError, match="EL080"):
            embed(text, tmp_path / "out", pipeline, resume=True)


# ---- bad records


def test_bad_records_are_rejected_with_reasons(pipeline, tmp_path, monkeypatch):
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
    reasons = ["no JSON", "no words", "its text is int", "more than 1,000 characters"]
    assert all(reason in r["reason"] for reason, r in zip(reasons, rejects))
    assert len(rejects[3]["text"]) == 1000
    manifest = read_manifest(tmp_path / "out")
    assert (manifest["n_records"], manifest["n_rejects"]) == (2, 4)


ERRORS = [
    RuntimeError("expected 1 got 2"), OSError(28, "No space left"), KeyError("k"), MemoryError(),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda err: type(err).__name__)
def test_an_error_with_one_record_rejects_it(pipeline, texts, tmp_path, monkeypatch, error):
    def fail(tokenize, text, call=job.make_doc):
        if "number 5" in text:
            raise error
        return call(tokenize, text)

    monkeypatch.setattr(job, "make_doc", fail)
    found = embed(texts, tmp_path / "out", pipeline)
    (reject,) = read_rejects(tmp_path / "out")
    assert len(found) == 16 and "number 5" in reject["text"]
    assert str(error).strip("'") in reject["reason"]


def test_an_error_with_every_record_stops_the_job(pipeline, texts, tmp_path, monkeypatch):
    n_left = 5

    def fail(tokenize, text, call=job.make_doc):
        nonlocal n_left
        n_left -= 1
        if n_left < 0:
            raise RuntimeError("the device is gone")
        return call(tokenize, text)

    monkeypatch.setattr(job, "make_doc", fail)
    work = partial(embed, texts, tmp_path / "out", pipeline, batch_chars=1, shard_chars=300)
    with pytest.raises(ValueError, match="EL297.*the device is gone"):
        n_left = 0
        work()
    assert not (tmp_path / "out" / MANIFEST).exists()
    monkeypatch.undo()
    assert len(work(resume=True)) == 18 and not (tmp_path / "out" / REJECTS).exists()


def test_numbers_that_float16_cannot_hold_are_rejected(pipeline, texts, tmp_path, monkeypatch):
    def get_vectors(pipeline, doc, call=rows._get_vectors):
        vectors = call(pipeline, doc)
        return {k: X * (1e6 if "number 3" in doc.text else 1) for k, X in vectors.items()}

    monkeypatch.setattr(rows, "_get_vectors", get_vectors)
    found = embed(texts, tmp_path / "out", pipeline, dtype="float16")
    (reject,) = read_rejects(tmp_path / "out")
    assert "not finite in float16" in reject["reason"] and reject["record"] == 3
    assert np.isfinite([row["mix"] for row in found]).all() and len(found) == 16
    # Docs have float32.
    embed(texts, tmp_path / "docs", pipeline, dtype="float16", format="spacy")
    assert read_manifest(tmp_path / "docs")["n_rejects"] == 0


def test_rejects_are_written_even_if_nothing_else_is(pipeline, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": null, "id": "n2"}\n')
    for resume in (False, True):
        with pytest.raises(ValueError, match="EL248.*NoneType.*records: 1, .*_rejects.jsonl"):
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
    known = load_embed_pipeline(EmbedSettings(pipeline=pipeline))
    monkeypatch.setattr(job, "load_embed_pipeline", lambda s: known._replace(settings=s))
    return pipeline


def test_a_job_that_is_killed_anywhere_is_resumed(loaded, texts, tmp_path):
    work = partial(embed, texts / "b.txt", tmp_path / "out", loaded, resume=True, shard_chars=20)
    expected = work(resume=False)
    files = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    shutil.rmtree(tmp_path / "out")
    for _ in kill_at_each_write(work, every=3):
        assert_same(work(), expected)
        assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == files
        shutil.rmtree(tmp_path / "out")


def stop_after(n_tasks):
    """An engine that is interrupted."""

    def run(tasks, worker):
        yield from islice(run_here(tasks, worker), n_tasks)
        raise KeyboardInterrupt

    return run


def test_what_is_done_is_not_done_again(pipeline, texts, tmp_path):
    output, small = tmp_path / "out", {"shard_chars": 50}
    with pytest.raises(KeyboardInterrupt):
        embed(texts, output, pipeline, engine=stop_after(3), **small)
    (output / "part-000001.parquet").unlink()
    stamp = (output / "part-000002.parquet").stat().st_mtime_ns
    numbers = []

    def run(tasks, worker):
        yield from run_here((numbers.append(task.number) or task for task in tasks), worker)

    assert len(embed(texts, output, pipeline, resume=True, engine=run, **small)) == 18
    assert numbers == [1, *range(3, len(numbers) + 2)] and len(numbers) > 1
    assert (output / "part-000002.parquet").stat().st_mtime_ns == stamp
    # A finished one has nothing left to do.
    numbers.clear()
    embed(texts, output, pipeline, resume=True, engine=run, **small)
    assert not numbers and not (output / JOB).exists()
    (output / "part-000000.parquet").unlink()
    with pytest.raises(ValueError, match="EL245.*part-000000.parquet is missing"):
        embed(texts, output, pipeline, resume=True, **small)


@pytest.mark.parametrize("is_finished", [False, True])
def test_only_the_same_job_is_resumed(pipeline, texts, tmp_path, is_finished):
    output = tmp_path / "out"
    if is_finished:
        embed(texts, output, pipeline)
    else:
        with pytest.raises(KeyboardInterrupt):
            embed(texts, output, pipeline, engine=stop_after(3))
    with pytest.raises(ValueError, match=f"EL243.*{'finished' if is_finished else 'unfinished'}"):
        embed(texts, output, pipeline)
    with pytest.raises(ValueError, match="EL245.*dtype"):
        embed(texts, output, pipeline, resume=True, dtype="float16")
    make_nlp(seed=1).to_disk(pipeline)
    with pytest.raises(ValueError, match="EL245.*biLM"):
        embed(texts, output, pipeline, resume=True)
    make_nlp().to_disk(pipeline)
    kept = (texts / "a.txt").read_bytes()
    for content in (b"Something else.\n", b"Green eggs number 0. And ham!\n"):
        (texts / "a.txt").write_bytes(content)
        with pytest.raises(ValueError, match="EL245.*input"):
            embed(texts, output, pipeline, resume=True)
    (texts / "a.txt").write_bytes(kept)
    embed(texts, output, pipeline, resume=True)
    (texts / "c.txt").write_text("Something else.\n" * 99)
    with pytest.raises(ValueError, match="EL245.*input has changed"):
        embed(texts, output, pipeline, resume=True)
    (output / MANIFEST).unlink()
    with pytest.raises(ValueError, match="EL141.*part-000000"):
        embed(texts, output, pipeline)
    with pytest.raises(ValueError, match="EL247.*no finished job"):
        read_manifest(output)


def cut_at_a(nlp):
    infixes = compile_infix_regex([*nlp.Defaults.infixes, "a"])
    nlp.tokenizer.infix_finditer = infixes.finditer


def add_rule(nlp):
    nlp.get_pipe("entity_ruler").add_patterns([{"label": "FOOD", "pattern": "ham"}])


def add_vectors(nlp):
    nlp.vocab.set_vector("ham", np.array([1.0, 2.0], dtype="f"))


@pytest.mark.parametrize("change", [cut_at_a, add_rule, add_vectors])
def test_another_pipeline_is_noticed(tmp_path, change):
    nlp = make_nlp()
    nlp.add_pipe("entity_ruler", first=True)
    nlp.to_disk(tmp_path / "a")
    change(nlp)
    nlp.to_disk(tmp_path / "b")
    found = [
        load_embed_pipeline(EmbedSettings(pipeline=str(tmp_path / name))).describe()
        for name in "aab"
    ]
    assert found[0] == found[1]
    assert {key for key in found[0] if found[0][key] != found[2][key]} == {"digest"}


@pytest.mark.slow
def test_a_pipeline_is_described_alike_by_all_processes(tmp_path):
    # The set of a sentencizer has another order in each.
    nlp = make_nlp()
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "pipeline")
    script = (
        "import sys; from spacy_elmo.embed.pipeline import EmbedSettings, load_embed_pipeline;"
        "print(load_embed_pipeline(EmbedSettings(pipeline=sys.argv[1])).describe())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "pipeline")]
    environments = ({**os.environ, "PYTHONHASHSEED": seed} for seed in "12")
    found = {subprocess.check_output(command, env=each) for each in environments}
    assert len(found) == 1 and b"sentencizer" in found.pop()


# ---- processes


@pytest.mark.filterwarnings("ignore")
def test_processes_give_the_same_files(pipeline, texts, tmp_path):
    expected = embed(texts, tmp_path / "a", pipeline, shard_chars=50)
    engine = partial(run_local, n_processes=2)
    assert_same(embed(texts, tmp_path / "b", pipeline, shard_chars=50, engine=engine), expected)


def test_a_killed_process_stops_the_job_which_is_resumed(pipeline, texts, tmp_path):
    def kill(tasks):
        for number, task in enumerate(tasks):
            if number == 3:
                multiprocessing.active_children()[0].kill()
            yield task

    def engine(tasks, worker):
        yield from run_local(kill(tasks), worker, n_processes=2)

    with pytest.raises(ValueError, match="EL251"):
        embed(texts, tmp_path / "out", pipeline, shard_chars=50, engine=engine)
    assert not multiprocessing.active_children()
    assert len(embed(texts, tmp_path / "out", pipeline, shard_chars=50, resume=True)) == 18


# ---- mistakes


def test_mistakes_are_told_before_the_work(pipeline, texts, tmp_path, monkeypatch):
    spacy.blank("en").to_disk(tmp_path / "blank")
    two = make_nlp()
    two.add_pipe("elmo", name="other", source=make_nlp())
    two.to_disk(tmp_path / "two")
    out = tmp_path / "out"
    for name, settings, message in (
        (tmp_path / "blank", {}, "EL242.*it has: none"),
        (pipeline, {"component": "elmo2"}, "EL242.*it has: elmo"),
        (tmp_path / "two", {}, "EL242.*it has: elmo, other"),
        (tmp_path / "nothing", {}, "EL171"),
        (pipeline, {"layers": ("mix", "3")}, "EL249.*'mix,3'.*from 0.* to 2, each once"),
        (pipeline, {"layers": ("-1",)}, "EL249"),
        (pipeline, {"unit": "words"}, "EL012.*--unit"),
        ("", {"lang": "qq"}, "EL161.*'qq'.*'xx'"),
    ):
        with pytest.raises(ValueError, match=message):
            embed(texts, out, name, **settings)
    for layers in ((), ("top",), ("1", "1"), ("01",)):
        with pytest.raises(ValueError, match="EL249"):
            load_embed_pipeline(EmbedSettings(layers=layers))
    (tmp_path / "blank.txt").write_text("\n \n")
    for resume in (False, True, False):
        with pytest.raises(ValueError, match="EL248.*blank.txt' is empty"):
            embed(tmp_path / "blank.txt", tmp_path / "empty", pipeline, resume=resume)
        assert os.listdir(tmp_path / "empty") == [".lock"]
    embed(texts, tmp_path / "empty", pipeline)
    monkeypatch.setattr(output, "pa", None)
    with pytest.raises(ValueError, match="EL038.*pyarrow"):
        embed(texts, tmp_path / "new", pipeline)
    assert not (tmp_path / "new").exists()


def test_a_manifest_with_other_content_is_refused(pipeline, texts, tmp_path):
    embed(texts / "b.txt", tmp_path / "out", pipeline)
    manifest = read_manifest(tmp_path / "out")
    elsewhere = {**manifest["shards"][0], "shard": "../x"}
    for change in (
        {"version": 1}, {"settings": None}, {"n_rows": "9"}, {"shards": [{}]},
        {"shards": [elsewhere]},
    ):  # fmt: skip
        (tmp_path / "out" / MANIFEST).write_text(json.dumps({**manifest, **change}))
        with pytest.raises(ValueError, match="EL247.*_manifest.json"):
            read_manifest(tmp_path / "out")


def test_words_are_cut_as_the_weights_have_learned(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "natto", None)
    for name, tokenizer in (("rules", {"@tokenizers": "spacy.Tokenizer.v1"}), ("own", {})):
        meta = {"lang": "ko", "tokenizer": tokenizer}
        write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / name, meta=meta)
    settings = EmbedSettings(weights=str(tmp_path / "rules"), lang="ko")
    settings.resolve()
    doc = load_embed_pipeline(settings).nlp.make_doc("나는 달걀을 좋아한다.")
    assert doc[-1].text == "."
    with pytest.raises(ValueError, match="EL089.*'ko'"):
        EmbedSettings(weights=str(tmp_path / "own"), lang="ko").resolve()
