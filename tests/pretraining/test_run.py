"""Pretraining from a config: learning, resuming, starting from weights, several processes."""

import io
import logging
import shutil
from collections import Counter

import numpy as np
import pytest
import spacy
import srsly
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo import load_embedder, pipe_config
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_reader, read_words
from spacy_elmo.language_model.evaluation import evaluate_checkpoint
from spacy_elmo.pretraining.config import (
    PRETRAINING_PRESETS,
    RunConfig,
    load_config,
    make_pretraining_config,
    make_shape,
)
from spacy_elmo.pretraining.corpus_report import describe_corpus, find_quantile
from spacy_elmo.pretraining.prepare import prepare
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.run import pretrain

from ..support.helpers import SHAPE, assert_close
from ..support.runs import change, read_state, train, write_config

ALONE = Processes(0, 1, torch.device("cpu"))
# Such a low rate leaves weights as they are.
TINY_RATE = {"max_steps": 2, "learn_rate": 1e-9}


def get_words(folder):
    return read_words(folder / "vocab.txt")


def test_a_run_learns_and_its_result_can_be_used(tmp_path, texts):
    reports = []
    frequencies = {"eval_frequency": 30, "save_frequency": 60}
    changes = change("training", max_steps=120, learn_rate=0.02, **frequencies)
    train(tmp_path, texts, reports=reports, **changes)

    scores = [report.dev.perplexities[2] for report in reports if report.dev]
    # The noun after "I like" cannot be predicted better than chance.
    assert 2 < scores[-1] < 0.5 * scores[0]
    folder = tmp_path / "run" / "model-best"
    result = evaluate_checkpoint(folder, str(texts / "dev"))
    assert result["geometric_mean"] == pytest.approx(min(scores), rel=1e-3)
    assert srsly.read_json(folder / "meta.json")["dev_perplexity"]["kind"] == "exact"


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": {"name": "adam", "amsgrad": True, "weight_decay": 0.01}},
        {"state_steps": 5},
        {"state_steps": 5, "accumulate": 2},
    ],
)
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, texts, settings):
    changes = change("training", **settings)
    train(tmp_path, texts, "straight", **changes)
    for stop_at in (5, 3, 0):
        train(tmp_path, texts, "stopped", resume=True, stop_at=stop_at, **changes)

    assert read_state(tmp_path / "stopped") == read_state(tmp_path / "straight")


@pytest.mark.parametrize("input", ["characters", "words", "vectors"])
def test_every_input_trains_and_is_used_in_a_pipeline(tmp_path, texts, input):
    nlp = spacy.blank("en")
    for i, word in enumerate(("ham", "eggs", "like")):
        nlp.vocab.set_vector(word, np.eye(5, dtype="float32")[i])
    nlp.to_disk(tmp_path / "vectors")
    paths = {"train": str(texts / "train"), "vectors": str(tmp_path / "vectors")}
    changes = {"bilm": {**SHAPE, "input": input}, "paths": paths}
    train(tmp_path, texts, stop_at=3, **changes)
    train(tmp_path, texts, resume=True, **changes)

    folder = tmp_path / "run" / "model-last"
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=pipe_config(folder))
    nlp.get_pipe("elmo").load(folder)
    doc = nlp("I like ham and tofu")
    nlp.to_disk(tmp_path / "nlp")
    assert_close([spacy.load(tmp_path / "nlp")(doc.text).tensor], [doc.tensor])
    unknown, other = nlp("tofu").tensor, nlp("seitan").tensor
    assert np.allclose(unknown, other, atol=1e-6) == (input != "characters")


def read_rows(folder):
    """Rows of a softmax by word."""
    files = CheckpointFiles.of(folder)
    stored = find_reader(files).read_softmax(files)
    return dict(zip(stored.words, stored.state["weight"]))


@pytest.mark.parametrize("input", ["characters", "words"])
def test_a_run_can_start_from_weights_alone(tmp_path, texts, input):
    bilm = {"bilm": {**SHAPE, "input": input}}
    train(tmp_path, texts, "first", **bilm)
    first, second = (tmp_path / name / "model-last" for name in ("first", "second"))
    changes = {"paths": {"init": str(first)}, **change("corpus", size=10), **bilm}

    train(tmp_path, texts, "second", **changes, **change("training", **TINY_RATE))

    rows, before = read_rows(second), read_rows(first)
    assert len(rows) == 10 < len(before)
    for word, row in rows.items():
        torch.testing.assert_close(row, before[word])
    kept = [[*rows][3:]]
    assert_close(load_embedder(second).embed(kept), load_embedder(first).embed(kept))
    meta = srsly.read_json(second / "meta.json")
    assert meta["n_tokens_trained_before"] == 960 and meta["n_tokens_trained"] < 200
    # The weights are not needed to resume.
    shutil.rmtree(tmp_path / "first")
    train(tmp_path, texts, "second", resume=True, **changes, **change("training", max_steps=3))
    assert srsly.read_json(second / "meta.json")["n_tokens_trained_before"] == 960


def test_a_run_can_start_from_published_weights(tmp_path, texts, toy_folder):
    options, weights = sorted(map(str, toy_folder.iterdir()))
    before = load_embedder(toy_folder)
    paths, shape = {"init": options, "init_weights": weights}, before.bilm.config.to_dict()

    train(tmp_path, texts, paths=paths, bilm=shape, **change("training", **TINY_RATE))

    after = load_embedder(tmp_path / "run" / "model-last")
    assert_close(after.embed([["I", "like"]]), before.embed([["I", "like"]]))


def test_weights_of_another_shape_are_refused_before_words_are_counted(tmp_path, texts, caplog):
    train(tmp_path, texts, "first", stop_at=1)
    paths = {"train": str(texts / "train"), "init": str(tmp_path / "first" / "model-last")}
    config = load_config(write_config(tmp_path, texts, paths=paths, bilm={**SHAPE, "width": 16}))
    caplog.set_level("INFO", "spacy_elmo")
    caplog.clear()
    with pytest.raises(ValueError, match="EL097.*width: 16, 8"):
        pretrain(config, tmp_path / "second")
    with pytest.raises(ValueError, match="EL097.*width: 16, 8"):
        describe_corpus(RunConfig.check(config), tmp_path)
    assert "count its words" not in caplog.text


def test_early_stop(tmp_path, texts):
    def resume(patience, is_resumed=True):
        changes = change("training", learn_rate=0.0, patience=patience, max_steps=100)
        return train(tmp_path, texts, resume=is_resumed, **changes).step

    assert resume(4, is_resumed=False) == 8
    # It has ended; with more patience it continues.
    assert resume(4) == 8
    assert resume(8) == 12


def test_folders_with_a_run_are_not_started_again(tmp_path, texts, caplog):
    train(tmp_path, texts)
    with pytest.raises(ValueError, match="EL095.*--resume"):
        train(tmp_path, texts)
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="EL096.*init"):
        train(tmp_path, texts, resume=True, **change("training", seed=5))
    assert "it is of another run: text.seed was 0, now 5" in caplog.text
    # The length and the learning rate may change.
    longer = change("training", max_steps=14, learn_rate=0.1)
    assert train(tmp_path, texts, resume=True, **longer).step == 14


def test_gradients_that_are_not_finite_are_skipped_and_end_a_run(tmp_path, texts, caplog):
    wild = change("training", learn_rate=1e30, warmup_steps=0, clip=0.0, max_steps=50)
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="EL093.*--resume"):
        train(tmp_path, texts, **wild)
    assert caplog.text.count("[WL005]") == 10


def test_weights_that_are_not_finite_replace_no_checkpoint(tmp_path, texts):
    train(tmp_path, texts, stop_at=4)
    wild = change(
        "training", learn_rate=1e39, warmup_steps=0, save_frequency=1, clip=0.0, max_steps=8
    )
    with pytest.raises(ValueError, match="EL093.*step [56].*not finite.*--resume"):
        train(tmp_path, texts, resume=True, **wild)
    assert train(tmp_path, texts, resume=True).step == 12


def test_debug_corpus_describes_the_text(tmp_path, texts):
    config = RunConfig.check(load_config(write_config(tmp_path, texts)))

    figures = describe_corpus(config, tmp_path)

    assert figures["tokens"] == 8 * 210
    assert figures["files"] == 2 and figures["distinct words"] == 11
    assert figures["tokens in the vocabulary"] == 1.0
    assert figures["tokens longer than 12 bytes"] == 0.0
    assert figures["tokens per second here"] > 0


@given(st.lists(st.integers(1, 40), min_size=1), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_quantiles_of_counted_values(values, share):
    expected = np.quantile(values, share, method="inverted_cdf")
    assert find_quantile(Counter(values), share) == expected


@pytest.mark.parametrize("preset", PRETRAINING_PRESETS)
def test_presets_are_valid_and_as_large_as_their_names_say(tmp_path, preset):
    make_pretraining_config(preset).to_disk(tmp_path / "x.cfg", interpolate=False)
    config = RunConfig.check(load_config(tmp_path / "x.cfg", {"paths.train": "text"}))

    sizes = {"kim_5m": 5e6, "kim_19m": 19e6}
    if preset in sizes:
        # Kim et al. 2016 count one direction, with a vocabulary of 10,000 words.
        with torch.device("meta"):
            bilm = BiLM(make_shape(config.bilm, n_words=3))
        n_weights = sum(p.numel() for p in bilm.parameters())
        n_weights -= sum(p.numel() for p in bilm.backward_lstm.parameters())
        n_weights += 10_000 * (bilm.config.direction_width + 1)
        assert n_weights == pytest.approx(sizes[preset], rel=0.1)


def test_words_are_counted_again_for_another_text(tmp_path, texts):
    def prepare_words(**changes):
        path = write_config(tmp_path, texts, **change("corpus", **changes))
        config = RunConfig.check(load_config(path))
        prepare(config, tmp_path / "run", resume=False, processes=ALONE)
        return {*get_words(tmp_path / "run")}

    words = tmp_path / "include.txt"
    words.write_bytes("\ufeffzebra\r\n\r\nokapi\r\n".encode())
    assert len(prepare_words()) == 14
    assert len(prepare_words(size=6)) == 6
    assert {"zebra", "okapi"} < prepare_words(include=str(words))
    words.write_text("<S>\n</S>\n<UNK>\ngiraffe\n")
    assert "giraffe" in prepare_words(vocabulary=str(words))

    # A run that has begun keeps its words.
    changes = change("corpus", vocabulary=str(words))
    train(tmp_path, texts, stop_at=5, **changes)
    changes["corpus"]["vocabulary"] = str(words.rename(tmp_path / "moved.txt"))
    assert train(tmp_path, texts, resume=True, **changes).step == 12
    (tmp_path / "moved.txt").write_text("<S>\n</S>\n<UNK>\nham\n")
    with pytest.raises(ValueError, match="EL096"):
        train(tmp_path, texts, resume=True, **changes)


def test_text_is_counted_only_where_something_follows_from_it(tmp_path, texts, monkeypatch):
    train(tmp_path, texts, "counted", stop_at=1)
    corpus = change("corpus", vocabulary=str(tmp_path / "counted" / "vocab.txt"))
    with monkeypatch.context() as patch:
        patch.setattr("spacy_elmo.pretraining.prepare.count_words", None)
        assert train(tmp_path, texts, **corpus).step == 12

    # Counted when the length has to follow from it; the words stay.
    longer = change("training", max_steps=0, max_epochs=1.0)
    progress = train(tmp_path, texts, resume=True, **corpus, **longer)
    counts = srsly.read_json(tmp_path / "run" / "counts.json")
    assert progress.step == -(-(counts["n_tokens"] + counts["n_sequences"]) // 80)
    assert get_words(tmp_path / "run") == get_words(tmp_path / "counted")


def test_a_runs_own_files_are_not_its_text(tmp_path, texts):
    own = tmp_path / "texts"
    shutil.copytree(texts, own)
    train(own, own, "train/run", stop_at=5)
    assert train(own, own, "train/run", resume=True).step == 12


@pytest.mark.parametrize(
    "state, settings",
    [
        ("zero", {"softmax": {"kind": "full"}}),
        ("zero", {"softmax": {"kind": "adaptive", "cutoffs": [5]}}),
        ("carried", {"state_steps": 4}),
    ],
)
def test_evaluate_cuts_and_measures_as_the_run_did(tmp_path, state, settings):
    (tmp_path / "zh.txt").write_text("我喜欢吃火腿 . 你喜欢吃鸡蛋 !\n" * 20, encoding="utf-8")
    paths, reports = dict.fromkeys(("train", "dev"), str(tmp_path / "zh.txt")), []
    train(
        tmp_path, tmp_path, reports=reports, paths=paths, nlp={"lang": "zh", "tokenizer": None},
        **change("corpus", cut="lines", max_tokens=5),
        **change("training", **settings, eval_sequences=7),
    )  # fmt: skip

    result = evaluate_checkpoint(tmp_path / "run" / "model-last", paths["dev"])

    assert (result["cut"], result["max_tokens"], result["state"]) == ("lines", 5, state)
    assert result["n_sequences"] == 7 < result["n_sequences_of_text"]
    assert result["forward"] == pytest.approx(reports[-1].dev.perplexities[0], rel=1e-3)


def test_words_to_score_with_must_be_predicted(tmp_path, texts):
    train(tmp_path, texts, stop_at=1)
    folder = tmp_path / "run" / "model-last"
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nham\nzebra\n")
    with pytest.raises(ValueError, match="EL075.*zebra"):
        evaluate_checkpoint(folder, str(texts / "dev"), vocab=tmp_path / "vocab.txt")
    (folder / "softmax.safetensors").unlink()
    with pytest.raises(ValueError, match="EL074"):
        evaluate_checkpoint(folder, str(texts / "dev"))


@pytest.mark.gpu
def test_half_precision_trains_on_a_gpu(tmp_path, texts):
    for precision in ("fp32", "bf16", "fp16"):
        path = write_config(tmp_path, texts, **change("training", precision=precision))
        progress = pretrain(load_config(path), tmp_path / precision, device="cuda")
        assert progress.step == 12 and progress.best < 60


def test_text_comes_through_standard_input(tmp_path, texts, monkeypatch):
    data = (texts / "train" / "a.txt").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    train(tmp_path, texts, paths={"train": "-"}, stop_at=4)

    # A resumed run reads what was saved.
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"other text")))
    assert train(tmp_path, texts, resume=True, paths={"train": "-"}).step == 12
    assert (tmp_path / "run" / "stdin.txt").read_bytes() == data


def test_another_held_out_text_has_its_own_best(tmp_path, texts, caplog):
    train(tmp_path, texts, stop_at=8)
    (tmp_path / "other.txt").write_text("ham eggs ham bread like like eggs .\n" * 9)
    other = {"train": str(texts / "train"), "dev": str(tmp_path / "other.txt")}
    caplog.clear()
    progress = train(tmp_path, texts, resume=True, paths=other)

    assert "WL062" in caplog.text and "other.txt" in caplog.text
    meta = srsly.read_json(tmp_path / "run" / "model-best" / "meta.json")
    assert meta["dev_perplexity"]["n_sequences"] == 9 and progress.best_step > 8
