"""The commands around pretraining, through spaCy's own command line."""

import signal

import h5py
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
def model(texts, tmp_path_factory):
    """A run's folder."""
    output = tmp_path_factory.mktemp("run") / "run"
    config = output.parent / "pretrain.cfg"
    run("elmo", "init-config", config, "--pretraining")
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


def test_evaluate_gives_the_perplexity_of_the_log(model, texts, tmp_path):
    output = tmp_path / "x.json"

    printed = run("elmo", "evaluate", model / "model-last", texts / "dev", "--output", output)

    result = srsly.read_json(output)
    last = list(srsly.read_jsonl(model / "log.jsonl"))[-1]
    assert result["forward"] == pytest.approx(last["dev_forward"], rel=1e-4)
    assert result["backward"] == pytest.approx(last["dev_backward"], rel=1e-4)
    assert f"{result['geometric_mean']:.3f}" in printed
    assert (result["cut"], result["state"]) == ("sentences", "zero")


def test_evaluate_reports_how_the_text_was_cut(model, texts, tmp_path):
    found = {}
    for name, options in {
        "lines": ["--cut", "lines"],
        "stream": ["--cut", "lines", "--stream"],
        "short": ["--max-tokens", 3],
        "some": ["--limit", 5],
    }.items():
        path = tmp_path / f"{name}.json"
        run("elmo", "evaluate", model / "model-last", texts / "dev", "--output", path, *options)
        found[name] = srsly.read_json(path)

    assert found["lines"]["n_sequences"] == 40 and found["some"]["n_sequences"] == 5
    assert found["stream"]["state"] == "carried" and found["some"]["state"] == "zero"
    assert len({result["geometric_mean"] for result in found.values()}) == 4


def test_exported_weights_are_the_same(model, tmp_path, monkeypatch):
    source, output = model / "model-last", tmp_path / "exported"
    run("elmo", "convert", source, output, "--to", "allennlp")

    sentences = [["I", "like", "green", "eggs"], ["Ham", "!"]]
    ours, theirs = load_embedder(source), load_embedder(output)
    assert_close(theirs.embed(sentences), ours.embed(sentences), atol=2e-7)
    for name in ("weight", "bias"):
        kept = [
            find_reader(files).read_softmax(files).state[name]
            for files in (CheckpointFiles.of(source), CheckpointFiles.of(output))
        ]
        np.testing.assert_array_equal(*kept)
    assert srsly.read_json(output / "options.json")["char_cnn"]["n_characters"] == 262
    with h5py.File(output / "weights.hdf5") as file:
        assert file["char_embed"].shape == (261, SHAPE["char_width"])
        assert file["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_0"].shape == (8, 24)
        assert all(file[name].dtype == "float32" for name in ("char_embed", "CNN_proj/W_proj"))

    assert "[EL034]" in run("elmo", "convert", source, output, "--to", "allennlp", exit_code=1)
    run("elmo", "convert", source, tmp_path / "bare", "--to", "allennlp", "--no-softmax")
    assert not (tmp_path / "bare" / "vocab.txt").exists()
    monkeypatch.setattr(allennlp, "h5py", None)
    to = ["--to", "allennlp"]
    assert "[EL038]" in run("elmo", "convert", source, tmp_path / "y", *to, exit_code=1)


def test_weights_that_the_format_cannot_hold_are_refused(texts, tmp_path):
    config = tmp_path / "x.cfg"
    config.write_text('[training]\n[training.softmax]\nkind = "adaptive"\ncutoffs = [5]\n')
    train = ["--paths.train", texts / "train", *OVERRIDES, "--training.max_steps", 1]
    train = [x for x in train if x not in ("--training.softmax.n_samples", 10)]
    run("elmo", "pretrain", config, tmp_path / "x", *train, "--bilm.input", "words")
    bilm = BiLM(BiLMConfig(**{**SHAPE, "cell_width": SHAPE["width"] // 2 - 1}))
    write_native(bilm, tmp_path / "few")
    for path in (tmp_path / "x" / "model-last", tmp_path / "few"):
        to = [tmp_path / "z", "--to", "allennlp"]
        assert "[EL039]" in run("elmo", "convert", path, *to, exit_code=1)
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


def test_debug_corpus_prints_what_will_be_read(texts, tmp_path):
    config = tmp_path / "pretrain.cfg"
    run("elmo", "init-config", config, "--pretraining", "--lang", "de")
    train = ["--paths.train", texts / "train"]

    printed = run("elmo", "debug-corpus", config, *train, *OVERRIDES)

    for what in ("tokens", "unknown targets", "longer than 12 bytes", "memory", "hours"):
        assert what in printed
    missing = [*train, "--paths.dev", "nowhere"]
    assert "[EL080]" in run("elmo", "debug-corpus", config, *missing, exit_code=1)


NUMBERS = (signal.SIGTERM, signal.SIGINT)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_before_the_first_step_ends_the_command(number, capsys):
    handlers = [signal.getsignal(each) for each in NUMBERS]

    with pytest.raises(SystemExit) as ended, Stopper(0).listening(Console()):
        signal.raise_signal(number)

    assert ended.value.code == 128 + number
    assert "before the first step" in capsys.readouterr().err
    assert [signal.getsignal(each) for each in NUMBERS] == handlers


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_stops_training_after_the_step_and_a_second_one_at_once(number, capsys):
    stopper = Stopper(0)

    with pytest.raises(SystemExit) as ended, stopper.listening(Console()):
        assert not stopper()
        signal.raise_signal(number)
        assert stopper() and stopper.signal == number
        signal.raise_signal(signal.SIGTERM)

    assert ended.value.code == 128 + signal.SIGTERM
    assert not capsys.readouterr().err
