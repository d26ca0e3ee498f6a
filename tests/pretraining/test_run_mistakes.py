"""Pretraining: what is wrong is said, before it costs anything."""

import logging
import math

import numpy as np
import pytest
import torch

from spacy_elmo.files import lock_folder
from spacy_elmo.language_model.softmax import make_softmax
from spacy_elmo.pretraining.config import RunConfig
from spacy_elmo.pretraining.config_files import load_config
from spacy_elmo.pretraining.corpus_report import describe_corpus
from spacy_elmo.pretraining.prepare import prepare
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.run import pretrain
from spacy_elmo.pretraining.words import read_vectors

from ..support.runs import SMALL, all_bytes, train, write_config

BAD = {
    "training.log_frequency": 0,
    "training.precision": "fp16",
    "training.softmax": {"kind": "best"},
    "training.optimizer": {"name": "adam", "momentum": 1},
    "bilm.width": "abc",
    "bilm.filters": [["a", 3]],
    "bilm.cell_clip": "x",
    "nlp.lang": "xy",
    "nlp.lnag": "en",
    "corpus.sources": {"a": 3},
    "corpus.dev": "-",
    "corpus.size": -1,
    "corpus.min_count": -1,
    "corpus.include": "nowhere.txt",
    "corpus.vocabulary": "nowhere.txt",
    "paths.dev": "nowhere",
    "paths.init": "nowhere",
    "training.learn_rate": -1.0,
    "training.decay_share": 1.5,
    "training.eval_sequences": -1,
}


@pytest.mark.parametrize("key", BAD)
def test_impossible_values_are_found_before_anything_is_written(tmp_path, texts, key):
    section, name = key.split(".")
    with pytest.raises(ValueError, match=r"\[EL\d\d\d\]"):
        train(tmp_path, texts, **{section: {**SMALL.get(section, {}), name: BAD[key]}})
    assert not (tmp_path / "run" / "counts.json").exists()


def test_more_pieces_than_rows_of_a_step_are_refused_at_once(tmp_path, texts):
    training = {**SMALL["training"], "batch_tokens": 40, "state_steps": 10}
    with pytest.raises(ValueError, match="EL336.*step: 4. Their 5 shares, 5 of each process"):
        train(tmp_path, texts, training={**training, "accumulate": 5})
    config = RunConfig.check(
        load_config(write_config(tmp_path, texts, training={**training, "accumulate": 2}))
    )
    processes = Processes(0, 3, torch.device("cpu"))
    with pytest.raises(ValueError, match="EL336.*Their 6 shares, 2 of each process"):
        prepare(config, tmp_path / "run", resume=False, processes=processes)
    assert not (tmp_path / "run" / "counts.json").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused(tmp_path, texts):
    config = load_config(write_config(tmp_path, texts))
    with pytest.raises(ValueError, match="EL091.*device = cuda"):
        pretrain(config, tmp_path / "run", device="cuda")


def test_empty_text_is_refused(tmp_path, texts):
    (tmp_path / "train.txt").write_text("\n \n")
    with pytest.raises(ValueError, match=r"EL094.*\[corpus\]"):
        train(tmp_path, texts, paths={"train": str(tmp_path / "train.txt")})


def test_configs_of_another_kind_are_refused(tmp_path):
    broken = ["[pretraining]\nx = 1\n", "[training\n"]
    for text in (*broken, "[training]\nx = ${paths.nothing}\n", '[training]\nx = "${l"\n'):
        (tmp_path / "x.cfg").write_text(text)
        with pytest.raises(ValueError, match="EL098"):
            load_config(tmp_path / "x.cfg")
    (tmp_path / "x.cfg").write_text("[bilm]\nwidht = 8\n[corpus]\ntrain = x\n")
    with pytest.raises(ValueError, match=r"EL090.*bilm\] has no 'widht'"):
        RunConfig.check(load_config(tmp_path / "x.cfg"))
    (tmp_path / "x.cfg").write_text('[corpus]\ntrain = "x"\n[bilm]\ninput = "vectors"\n')
    with pytest.raises(ValueError, match="EL087.*--paths.vectors"):
        read_vectors(RunConfig.check(load_config(tmp_path / "x.cfg")))


def test_overrides_reach_into_blocks_that_the_file_leaves_out(tmp_path):
    (tmp_path / "x.cfg").write_text('[nlp]\nlang = "de"\n')

    config = load_config(
        tmp_path / "x.cfg", {"training.softmax.n_samples": 7, "paths.train": "text"}
    )

    assert config["training"]["softmax"] == {"kind": "sampled", "n_samples": 7}
    assert config["corpus"]["train"] == "text" and config["nlp"]["lang"] == "de"


def test_a_language_without_a_tokenizer_has_its_own(tmp_path):
    for text, expected in (
        ('[nlp]\nlang = "ko"\n', None),
        ('[nlp]\nlang = "ko"\n[nlp.tokenizer]\n', {}),
        ("[corpus]\nsize = 9\n", {"@tokenizers": "spacy.Tokenizer.v1"}),
    ):
        (tmp_path / "x.cfg").write_text(text)
        assert load_config(tmp_path / "x.cfg")["nlp"].get("tokenizer") == expected


def test_text_beside_sources_is_a_mistake(tmp_path, texts):
    corpus = {**SMALL["corpus"], "sources": {"a": {"path": str(texts / "train"), "weight": 1}}}
    with pytest.raises(ValueError, match="EL091.*train = .*none beside .corpus.sources"):
        train(tmp_path, texts, corpus=corpus)


def test_two_runs_cannot_train_in_one_folder(tmp_path, texts):
    (tmp_path / "run").mkdir()
    with lock_folder(tmp_path / "run", wait=False), pytest.raises(ValueError, match="EL143"):
        train(tmp_path, texts)
    assert train(tmp_path, texts).step == 12


def test_a_path_that_nothing_uses_is_a_mistake(tmp_path, texts):
    path = write_config(tmp_path, texts)
    with pytest.raises(ValueError, match=r"EL090.*\[paths\] has no 'int'.*init"):
        load_config(path, {"paths.int": "folder"})
    source = {"path": "${paths.news}", "weight": 1}
    path = write_config(tmp_path, texts, paths={"news": "x"}, corpus={"sources": {"a": source}})
    assert load_config(path)["corpus"]["sources"]["a"]["path"] == "x"


def test_patience_needs_a_text_to_measure_on(tmp_path, texts):
    training = {**SMALL["training"], "patience": 3}
    with pytest.raises(ValueError, match="EL091.*patience = 3.*paths.dev"):
        train(tmp_path, texts, paths={"dev": None}, training=training)


def test_an_empty_held_out_text_is_no_held_out_text(tmp_path, texts):
    (tmp_path / "dev.txt").write_text(" \n\n")
    with pytest.raises(ValueError, match=r"EL094.*dev\.txt"):
        train(tmp_path, texts, paths={"dev": str(tmp_path / "dev.txt")})


@pytest.mark.timeout(60)
def test_blank_text_is_refused_though_no_word_is_counted(tmp_path, texts):
    (tmp_path / "blank.txt").write_text(" \n" * 100)
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nham\n")
    corpus = {**SMALL["corpus"], "vocabulary": str(tmp_path / "vocab.txt")}
    with pytest.raises(ValueError, match="EL094.*'train'"):
        train(tmp_path, texts, paths={"train": str(tmp_path / "blank.txt")}, corpus=corpus)


@pytest.mark.parametrize("change", [{"min_count": 10_000}, {"size": 3}])
def test_a_vocabulary_without_words_is_refused(tmp_path, texts, change):
    with pytest.raises(ValueError, match="EL077.*a count of 210.*Lower min_count"):
        train(tmp_path, texts, corpus={**SMALL["corpus"], **change})


def test_a_softmax_from_the_command_line_brings_its_own_settings(tmp_path, texts):
    path = write_config(tmp_path, texts)
    for kind in ("full", "adaptive"):
        config = load_config(path, {"training.softmax.kind": kind, "corpus.size": 30_000})
        assert RunConfig.check(config).training.softmax == {"kind": kind}
    softmax = load_config(path, {"training.softmax.kind": "sampled"})["training"]["softmax"]
    assert softmax == {"kind": "sampled", "n_samples": 20}


def test_another_text_is_described_in_few_words(tmp_path, texts, caplog):
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(300):
        (folder / f"{i}.txt").write_text(f"I like ham {i} .\n")
    train(tmp_path, texts, paths={"train": str(folder)})
    (folder / "more.txt").write_text("I like eggs .\n")
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="EL096"):
        train(tmp_path, texts, resume=True, paths={"train": str(folder)})
    assert "text.files was a list of 300, now a list of 301 with ['more.txt', 14" in caplog.text
    assert max(map(len, caplog.text.splitlines())) < 500


# Steps, and whether the words are given, so that nothing is counted.
SHORT = [(2, False), (2, True), (0, False)]


@pytest.mark.parametrize("max_steps, is_given", SHORT)
def test_a_run_that_is_too_short_is_told_before_it_starts(
    tmp_path, texts, caplog, max_steps, is_given
):
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nham\n")
    corpus = {
        **SMALL["corpus"],
        "buffer_tokens": 5000,
        **({"vocabulary": str(tmp_path / "vocab.txt")} if is_given else {}),
    }
    training = {**SMALL["training"], "max_steps": max_steps, "batch_tokens": 5000}
    path = write_config(tmp_path, texts, training=training, corpus=corpus)
    at_start = []

    with caplog.at_level(logging.WARNING):
        pretrain(
            load_config(path),
            tmp_path / "run",
            should_stop=lambda: at_start.append(caplog.text) or True,
        )

    n_steps, share = (2, "50%") if max_steps else (1, "25%")
    assert f"has only {n_steps}: it comes to {share} of" in at_start[0] and "[WL028]" in at_start[0]
    # 210 lines of two sentences, some of which are cut into windows.
    assert "tokens and ends of sequences, fewer than the 5000" in at_start[0]
    assert "[WL029]" in at_start[0]


@pytest.mark.parametrize("is_given", [False, True])
def test_a_run_that_is_long_enough_is_not_warned_of(tmp_path, texts, caplog, is_given):
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nham\n")
    words = {"vocabulary": str(tmp_path / "vocab.txt")} if is_given else {}
    # Half of the text has fewer sequences than this.
    training = {**SMALL["training"], "batch_tokens": 1000}
    corpus = {**SMALL["corpus"], "buffer_tokens": 1000, **words}
    path = write_config(tmp_path, texts, corpus=corpus, training=training)
    config = RunConfig.check(load_config(path))
    with caplog.at_level(logging.WARNING):
        pretrain(load_config(path), tmp_path / "run", should_stop=lambda: True)
        describe_corpus(config, tmp_path)
    assert "[WL029]" not in caplog.text


@pytest.mark.parametrize(
    "name, content, is_refused",
    [
        ("vocab.txt", "my own words\n", True),
        ("counts.json", '{"mine": 1}', True),
        ("counts.json", "", True),
        ("notes.txt", "mine", False),
    ],
)
def test_files_of_others_are_not_replaced(tmp_path, texts, name, content, is_refused):
    config = load_config(write_config(tmp_path, texts))
    run = tmp_path / "run"
    run.mkdir()
    (run / name).write_text(content)
    if is_refused:
        with pytest.raises(ValueError, match=f"EL333.*{name}.*empty folder"):
            pretrain(config, run, should_stop=lambda: True)
        assert {path.name for path in run.iterdir()} == {".lock", name}
    else:
        pretrain(config, run, should_stop=lambda: True)
    assert (run / name).read_text() == content


def test_debug_corpus_tells_of_a_run_that_is_too_short(tmp_path, texts, caplog):
    changes = {
        "training": {**SMALL["training"], "max_steps": 3, "batch_tokens": 5000},
        "corpus": {**SMALL["corpus"], "buffer_tokens": 5000},
    }
    config = RunConfig.check(load_config(write_config(tmp_path, texts, **changes)))
    with caplog.at_level(logging.WARNING):
        figures = describe_corpus(config, tmp_path)
    assert figures["steps of the whole run"] == 3
    assert "[WL028]" in caplog.text and "[WL029]" in caplog.text


def test_text_without_spaces_between_words_is_told(tmp_path, texts, caplog):
    lines = "彼女は昨日東京で新しい庭を見ました。\nはい 。\n"
    (tmp_path / "ja.txt").write_text(lines * 300, "utf-8")
    paths = {"train": str(tmp_path / "ja.txt")}
    config = RunConfig.check(load_config(write_config(tmp_path, texts, paths=paths)))
    with caplog.at_level(logging.WARNING):
        describe_corpus(config, tmp_path / "stdin")
    assert "[WL070] Of the tokens 25%" in caplog.text


def test_a_file_that_is_no_text_is_told_before_training_though_nothing_is_counted(tmp_path, texts):
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nham\n")
    corpus = {**SMALL["corpus"], "vocabulary": str(tmp_path / "vocab.txt")}
    (tmp_path / "train").mkdir()
    for name, content in (("a", b"I like ham .\n" * 100), ("b", "Schön .\n".encode("latin-1"))):
        (tmp_path / "train" / f"{name}.txt").write_bytes(content)
    with pytest.raises(ValueError, match=r"EL155.*b\.txt.*byte 3, in line 1.*latin-1"):
        train(tmp_path, texts, paths={"train": str(tmp_path / "train")}, corpus=corpus)
    assert not (tmp_path / "run" / "vocab.txt").exists()


def test_weights_that_are_no_numbers_replace_no_checkpoint(tmp_path, texts):
    train(tmp_path, texts, stop_at=4)
    before = all_bytes(tmp_path / "run")
    # One step of infinite length, and a checkpoint after each.
    training = {**SMALL["training"], "learn_rate": 1e39, "warmup_steps": 0, "save_frequency": 1}
    training.update(clip=0.0, max_steps=8)
    with pytest.raises(ValueError, match="EL163.*step [56].*--resume"):
        train(tmp_path, texts, resume=True, training=training)
    for (file, name), content in all_bytes(tmp_path / "run")[0].items():
        assert np.isfinite(np.frombuffer(content, "float32")).all(), (file, name)
    assert before[1]["step"] == 4
    assert train(tmp_path, texts, resume=True).step == 12


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_settings_of_a_softmax_are_checked_without_its_memory(tmp_path, texts, monkeypatch, kind):
    made = []

    def keep(*args, **settings):
        made.append(make_softmax(*args, **settings))
        return made[-1]

    monkeypatch.setattr("spacy_elmo.pretraining.config.make_softmax", keep)
    training = {**SMALL["training"], "softmax": {"kind": kind}}
    corpus = {**SMALL["corpus"], "size": 30_000}
    RunConfig.check(load_config(write_config(tmp_path, texts, corpus=corpus, training=training)))
    assert all(weight.is_meta for weight in made[0].parameters())


def test_settings_that_no_machine_can_hold_are_refused(tmp_path, texts, monkeypatch):
    monkeypatch.setattr("spacy_elmo.pretraining.config._read_total_memory", lambda: 20_000)
    with pytest.raises(ValueError, match="EL160.*weights, which take 0 GB in training"):
        train(tmp_path, texts)
    monkeypatch.setattr("spacy_elmo.pretraining.config._read_total_memory", lambda: 49_000)
    train(tmp_path, texts, training={**SMALL["training"], "max_steps": 1})


@pytest.mark.slow
@pytest.mark.parametrize("section", ["paths", "nlp", "bilm", "corpus", "training"])
def test_any_value_is_possible_or_refused_with_a_message(tmp_path, texts, section):
    config = load_config(write_config(tmp_path, texts))
    values = [None, "", "x", -1, 0, 1, 2.5, math.nan, math.inf, 1e308, 10**30, True, [], ["x"],
              [[1]], {}, {"a": 1}, {"@misc": "x"}]  # fmt: skip
    for key in [*config[section], "nothing"]:
        for value in values:
            changed = {**config, section: {**config[section], key: value}}
            try:
                RunConfig.check(changed)
            except ValueError as err:
                assert str(err).startswith("[EL"), (key, value)


def test_a_buffer_holds_a_step(tmp_path, texts):
    training = {**SMALL["training"], "batch_tokens": SMALL["corpus"]["buffer_tokens"] + 1}
    with pytest.raises(ValueError, match="EL091.*buffer_tokens = 300.*batch_tokens, 301"):
        train(tmp_path, texts, training=training)
