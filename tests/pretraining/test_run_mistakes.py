"""Mistakes in configs and texts are found before training."""

import logging
from contextlib import suppress

import pytest
import torch

from spacy_elmo.files import lock_folder
from spacy_elmo.pretraining.config import RunConfig, load_config
from spacy_elmo.pretraining.corpus_report import describe_corpus
from spacy_elmo.pretraining.prepare import prepare, read_vectors
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.run import pretrain

from ..support.runs import SMALL, change, train, write_config

BAD = [
    ("training", {"log_frequency": 0}, r"EL091.*training\] log_frequency = .*at least 1"),
    ("training", {"precision": "fp16"}, "EL091.*bf16 on a CPU"),
    ("training", {"precision": "int4"}, r"EL091.*training\] precision = "),
    ("training", {"schedule": "up"}, r"EL091.*training\] schedule = "),
    ("training", {"dropout": 1.0}, r"EL091.*training\] dropout = "),
    ("training", {"seed": "a"}, r"EL091.*training\] seed = "),
    ("training", {"decay_share": 1.5}, r"EL091.*training\] decay_share = "),
    ("training", {"max_steps": 0, "max_epochs": 0.0}, r"EL091.*training\] max_epochs = "),
    ("training", {"softmax": {"kind": "best"}}, "EL073.*there is no 'best'"),
    ("training", {"softmax": {"kind": "full", "n_samples": 3}}, "EL073.*n_samples"),
    ("training", {"softmax": {"kind": "sampled", "n_samples": 0}}, "EL073.*n_samples = 0"),
    ("training", {"softmax": {"kind": "adaptive", "cutoffs": [70]}}, "EL073.*cutoffs = .70.*60"),
    ("training", {"optimizer": {"name": "adam", "momentum": 1}}, "EL091.*optimizer.*momentum"),
    ("training", {"init_part": "all"}, "EL090.*no 'init_part'"),
    ("training", {"batch_tokens": 301}, "EL091.*buffer_tokens = 300.*batch_tokens, 301"),
    ("training", {"accumulate": 81}, "EL091.*batch_tokens = 80.*at least 81"),
    (
        "training", {"batch_tokens": 40, "state_steps": 10, "accumulate": 5},
        "EL091.*batch_tokens = 40.*at least 50: 10 for each of 5",
    ),
    ("bilm", {"width": "abc"}, "EL091"),
    ("bilm", {"filters": [["a", 3]]}, "EL010"),
    ("nlp", {"lang": "xy"}, "EL161"),
    ("nlp", {"lnag": "en"}, "EL090"),
    ("corpus", {"sources": {"a": 3}}, r"EL091.*no value with \[corpus.sources\]"),
    ("corpus", {"dev": "-"}, "standard input"),
    ("corpus", {"max_tokens": 1}, "EL091"),
    ("corpus", {"window_share": 2.0}, "EL091"),
    ("corpus", {"cut": "bytes"}, "EL091"),
    ("corpus", {"include": "nowhere.txt"}, "EL100|EL103"),
    ("corpus", {"vocabulary": "nowhere.txt"}, "EL100|EL103"),
    ("corpus", {"min_count": 10_000}, "EL077.*a count of 210.*Lower min_count"),
    ("corpus", {"size": 3}, "EL077.*a count of 210"),
    ("paths", {"dev": "nowhere"}, "EL080"),
    ("paths", {"init": "nowhere"}, "EL030"),
    ("paths", {"init_weights": "weights.hdf5"}, "EL091.*options.json"),
]  # fmt: skip


@pytest.mark.parametrize("section, settings, message", BAD)
def test_impossible_values_are_found_before_anything_is_written(
    tmp_path, texts, section, settings, message
):
    with pytest.raises(ValueError, match=message):
        train(tmp_path, texts, **{section: {**SMALL.get(section, {}), **settings}})
    assert not (tmp_path / "run" / "counts.json").exists()


def test_each_piece_of_each_process_needs_a_row(tmp_path, texts):
    rows = change("training", batch_tokens=40, state_steps=10, accumulate=2)
    config = RunConfig.check(load_config(write_config(tmp_path, texts, **rows)))
    processes = Processes(0, 3, torch.device("cpu"))
    with pytest.raises(ValueError, match="EL091.*at least 60.*of 3 processes"):
        prepare(config, tmp_path / "run", resume=False, processes=processes)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_device_is_refused(tmp_path, texts):
    config = load_config(write_config(tmp_path, texts))
    with pytest.raises(ValueError, match="EL091.*device = cuda"):
        pretrain(config, tmp_path / "run", device="cuda")


@pytest.mark.parametrize("text", ["", " \n\n"])
@pytest.mark.parametrize("key", ["train", "dev"])
def test_text_without_words_is_refused(tmp_path, texts, key, text):
    (tmp_path / "x.txt").write_text(text)
    paths = {"train": str(texts / "train"), key: str(tmp_path / "x.txt")}
    with pytest.raises(ValueError, match="EL094"):
        train(tmp_path, texts, paths=paths)


@pytest.mark.parametrize(
    "text", ["[pretraining]\nx = 1\n", "[training\n", "[training]\nx = ${paths.nothing}\n"]
)
def test_configs_of_another_kind_are_refused(tmp_path, text):
    (tmp_path / "x.cfg").write_text(text)
    with pytest.raises(ValueError, match="EL098"):
        load_config(tmp_path / "x.cfg")


def test_keys_and_paths_of_a_config_file_are_checked(tmp_path, texts):
    path = tmp_path / "x.cfg"
    path.write_text("[bilm]\nwidht = 8\n[corpus]\ntrain = x\n")
    with pytest.raises(ValueError, match=r"EL090.*bilm\] has no 'widht'"):
        RunConfig.check(load_config(path))
    path.write_text('[corpus]\ntrain = "x"\n[bilm]\ninput = "vectors"\n')
    with pytest.raises(ValueError, match="EL087.*--paths.vectors"):
        read_vectors(RunConfig.check(load_config(path)))
    with pytest.raises(ValueError, match=r"EL090.*\[paths\] has no 'int'.*init"):
        load_config(path, {"paths.int": "folder"})
    source = {"path": "${paths.news}", "weight": 1}
    path = write_config(tmp_path, texts, paths={"news": "x"}, corpus={"sources": {"a": source}})
    assert load_config(path)["corpus"]["sources"]["a"]["path"] == "x"


@pytest.mark.parametrize(
    "text, expected",
    [
        ('[nlp]\nlang = "ko"\n', None),
        ('[nlp]\nlang = "ko"\n[nlp.tokenizer]\n', {}),
        ("[corpus]\nsize = 9\n", {"@tokenizers": "spacy.Tokenizer.v1"}),
    ],
)
def test_a_language_without_a_tokenizer_has_its_own(tmp_path, text, expected):
    (tmp_path / "x.cfg").write_text(text)
    config = load_config(tmp_path / "x.cfg", {"training.softmax.n_samples": 7})
    assert config["nlp"].get("tokenizer") == expected
    # Overrides reach into blocks that the file leaves out.
    assert config["training"]["softmax"] == {"kind": "sampled", "n_samples": 7}


def test_a_softmax_from_the_command_line_has_its_own_settings(tmp_path, texts):
    path = write_config(tmp_path, texts)
    for kind, settings in (("full", {}), ("sampled", {"n_samples": 20})):
        softmax = load_config(path, {"training.softmax.kind": kind})["training"]["softmax"]
        assert softmax == {"kind": kind, **settings}


def test_two_runs_cannot_train_in_one_folder(tmp_path, texts):
    (tmp_path / "run").mkdir()
    with lock_folder(tmp_path / "run"), pytest.raises(ValueError, match="EL143"):
        train(tmp_path, texts)
    assert train(tmp_path, texts, stop_at=1).step == 1


def test_a_vocabulary_of_something_else_is_not_replaced(tmp_path, texts):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "vocab.txt").write_text("my own words\n")
    with pytest.raises(ValueError, match="EL095.*empty folder"):
        train(tmp_path, texts)
    assert (tmp_path / "run" / "vocab.txt").read_text() == "my own words\n"


def test_patience_needs_a_text_to_measure(tmp_path, texts):
    with pytest.raises(ValueError, match="EL091.*patience = 3.*paths.dev"):
        train(tmp_path, texts, paths={"dev": None}, **change("training", patience=3))


@pytest.mark.parametrize(
    "max_steps, expected", [(2, "has only 2, so the rate reaches only 50%"), (0, "25%")]
)
def test_short_runs_are_warned_of_before_they_start(tmp_path, texts, caplog, max_steps, expected):
    changes = {
        **change("training", max_steps=max_steps, batch_tokens=5000),
        **change("corpus", buffer_tokens=5000),
    }
    config = load_config(write_config(tmp_path, texts, **changes))

    for start in (
        lambda: pretrain(config, tmp_path / "run", should_stop=lambda: 1 / 0),
        lambda: describe_corpus(RunConfig.check(config), tmp_path),
    ):
        caplog.clear()
        with suppress(ZeroDivisionError):
            start()
        assert "[WL028]" in caplog.text and expected in caplog.text
        assert "[WL029]" in caplog.text and "fewer than the 5000" in caplog.text


def test_counting_warns_of_forgotten_and_of_long_words(tmp_path, texts, monkeypatch, caplog):
    lines = "彼女は昨日東京で新しい庭を見ました。\nはい 。\n"
    (tmp_path / "ja.txt").write_text(lines * 300, "utf-8")
    monkeypatch.setattr("spacy_elmo.pretraining.prepare.WordCounter.__init__.__defaults__", (2,))
    with caplog.at_level(logging.WARNING):
        train(tmp_path, texts, paths={"train": str(tmp_path / "ja.txt")}, stop_at=1)
    assert "[WL006]" in caplog.text
    monkeypatch.undo()
    with caplog.at_level(logging.WARNING):
        train(tmp_path, texts, "other", paths={"train": str(tmp_path / "ja.txt")}, stop_at=1)
    assert "[WL070] 25% of the tokens" in caplog.text


def test_a_file_that_is_not_text_is_found_though_nothing_is_counted(tmp_path, texts):
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nham\n")
    (tmp_path / "train").mkdir()
    for name, content in (("a", b"I like ham .\n" * 100), ("b", "Schön .\n".encode("latin-1"))):
        (tmp_path / "train" / f"{name}.txt").write_bytes(content)
    corpus = change("corpus", vocabulary=str(tmp_path / "vocab.txt"))
    with pytest.raises(ValueError, match=r"EL155.*b\.txt.*byte 3, in line 1.*latin-1"):
        train(tmp_path, texts, paths={"train": str(tmp_path / "train")}, **corpus)
