"""The commands around pretraining, through spaCy's own command line."""

import signal

import numpy as np
import pytest
import srsly

from spacy_elmo import load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints import allennlp
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_reader
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.cli.common import Console
from spacy_elmo.cli.pretrain import Stopper
from spacy_elmo.language_model.loading import collect_softmax
from spacy_elmo.language_model.softmax import make_softmax

from ..support.helpers import SHAPE, assert_close
from .test_commands import run

OVERRIDES = [
    "--bilm.width", 8, "--bilm.cell_width", 6, "--bilm.projection", "true", "--bilm.char_width", 3,
    "--bilm.filters", "[[1,3],[2,4]]", "--bilm.max_chars", 14,
    "--corpus.buffer_tokens", 200, "--corpus.min_count", 1, "--training.batch_tokens", 60,
    "--training.softmax.n_samples", 10, "--training.log_frequency", 2,
]  # fmt: skip


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    lines = ["I like green eggs and ham.", "Would you eat them? I would not!"] * 20
    for name in ("train", "dev"):
        (folder / name).mkdir()
        (folder / name / "x.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "pretrain.cfg"
    run("elmo", "init-config", path, "--pretraining")
    return path


@pytest.fixture(scope="module")
def model(config, texts, tmp_path_factory):
    """A run's folder."""
    output = tmp_path_factory.mktemp("run") / "run"
    paths = ["--paths.train", texts / "train", "--paths.dev", texts / "dev"]
    printed = run(
        "elmo", "pretrain", config, output, *paths, *OVERRIDES, "--training.max_steps", 6,
        "--training.eval_frequency", 3,
    )  # fmt: skip
    assert "Exact held-out perplexity" in printed
    return output


def test_pretraining_leaves_models_a_log_and_curves(model):
    assert (model / "curves.png").stat().st_size > 10_000
    log = list(srsly.read_jsonl(model / "log.jsonl"))
    assert [line["step"] for line in log] == [2, 3, 4, 6]
    assert "dev_perplexity" in log[1] and log[-1]["total_steps"] == 6
    meta = srsly.read_json(model / "model-best" / "meta.json")
    assert meta["lang"] == "en" and meta["n_tokens_trained"] > 0


def evaluate(model, texts, output, *options):
    printed = run(
        "elmo", "evaluate", model / "model-last", texts / "dev", "--output", output, *options
    )
    result = srsly.read_json(output)
    assert f"{result['geometric_mean']:.3f}" in printed
    return result


def test_evaluate_gives_the_perplexity_of_the_log(model, texts, tmp_path):
    usual = evaluate(model, texts, tmp_path / "usual.json")
    others = [
        evaluate(model, texts, tmp_path / f"{i}.json", *options)
        for i, options in enumerate([["--cut", "lines", "--stream"], ["--limit", 5]])
    ]

    last = list(srsly.read_jsonl(model / "log.jsonl"))[-1]
    assert usual["forward"] == pytest.approx(last["dev_forward"], rel=1e-4)
    assert usual["backward"] == pytest.approx(last["dev_backward"], rel=1e-4)
    found = [(r["cut"], r["state"], r["n_sequences"]) for r in others]
    assert found == [("lines", "carried", 40), ("sentences", "zero", 5)]


def test_exported_weights_are_the_same(model, tmp_path, monkeypatch):
    source, output = model / "model-last", tmp_path / "exported"
    run("elmo", "convert", source, output, "--to", "allennlp")

    sentences = [["I", "like", "green", "eggs"], ["Ham", "!"]]
    ours, theirs = load_embedder(source), load_embedder(output)
    assert_close(theirs.embed(sentences), ours.embed(sentences), atol=2e-7)
    files = [CheckpointFiles.of(folder) for folder in (source, output)]
    ours, theirs = (find_reader(each).read_softmax(each).state for each in files)
    for name in ("weight", "bias"):
        np.testing.assert_array_equal(ours[name], theirs[name])

    assert "[EL034]" in run("elmo", "convert", source, output, "--to", "allennlp", exit_code=1)
    run("elmo", "convert", source, tmp_path / "bare", "--to", "allennlp", "--no-softmax")
    assert not (tmp_path / "bare" / "vocab.txt").exists()
    monkeypatch.setattr(allennlp, "h5py", None)
    to = ["--to", "allennlp"]
    assert "[EL038]" in run("elmo", "convert", source, tmp_path / "y", *to, exit_code=1)


@pytest.mark.parametrize(
    "changes, kind",
    [({"input": "words"}, "full"), ({"cell_width": 3}, "full"), ({}, "adaptive")],
)
def test_weights_that_the_format_cannot_hold_are_refused(tmp_path, changes, kind):
    words, settings = ["<S>", "</S>", "<UNK>"], {"cutoffs": [2]} if kind == "adaptive" else {}
    softmax = collect_softmax(make_softmax(kind, 4, 3, **settings), kind, settings, words)
    bilm = BiLM(BiLMConfig(**{**SHAPE, **changes}))
    write_native(bilm, tmp_path / "model", softmax=softmax)

    arguments = [tmp_path / "model", tmp_path / "z", "--to", "allennlp"]
    assert "[EL039]" in run("elmo", "convert", *arguments, exit_code=1)
    assert not (tmp_path / "z").exists()


def test_convert_keeps_the_softmax_and_the_notes(model, tmp_path):
    (tmp_path / "meta.json").write_text('{"licence": "mine"}')
    run(
        "elmo", "convert", model / "model-last", tmp_path / "half", "--half",
        "--meta", tmp_path / "meta.json",
    )  # fmt: skip

    files = CheckpointFiles.of(tmp_path / "half")
    assert find_reader(files).read_softmax(files).words[:3] == ["<S>", "</S>", "<UNK>"]
    meta = srsly.read_json(tmp_path / "half" / "meta.json")
    assert meta["licence"] == "mine" and meta["lang"] == "en"
    run("elmo", "convert", model / "model-last", tmp_path / "bare", "--no-softmax")
    assert not (tmp_path / "bare" / "softmax.safetensors").exists()


def test_debug_corpus_prints_what_will_be_read(config, texts):
    train = ["--paths.train", texts / "train"]

    printed = run("elmo", "debug-corpus", config, *train, *OVERRIDES)

    for what in ("tokens", "unknown targets", "longer than 12 bytes", "memory", "hours"):
        assert what in printed
    missing = [*train, "--paths.dev", "nowhere"]
    assert "[EL080]" in run("elmo", "debug-corpus", config, *missing, exit_code=1)


def test_a_run_that_is_stopped_by_the_time_can_be_resumed(config, texts, tmp_path):
    command = ["elmo", "pretrain", config, tmp_path / "run", "--paths.train", texts / "train"]
    command += [*OVERRIDES, "--training.max_steps", 3]

    assert "Step 1 of 3; to continue" in run(*command, "--max-minutes", 0.00001)
    assert "Step 3" in run(*command, "--resume")


NUMBERS = (signal.SIGTERM, signal.SIGINT)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("has_trained", [False, True])
def test_a_signal_stops_after_a_step_and_at_once_before_one_or_if_repeated(
    number, has_trained, capsys
):
    handlers = [signal.getsignal(each) for each in NUMBERS]
    stopper = Stopper(0)

    with pytest.raises(SystemExit) as ended, stopper.listening(Console()):
        if has_trained:
            assert not stopper()
            signal.raise_signal(number)
            assert stopper() and stopper.signal == number
        signal.raise_signal(number)

    assert ended.value.code == 128 + number
    assert ("before the first step" in capsys.readouterr().err) != has_trained
    assert [signal.getsignal(each) for each in NUMBERS] == handlers
