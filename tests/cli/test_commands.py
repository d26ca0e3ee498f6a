"""Every command, through spaCy's own command line."""

import subprocess
import sys

import numpy as np
import pytest
import spacy
from spacy.cli import app
from spacy.cli.init_config import init_config
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus
from typer.testing import CliRunner

from spacy_elmo import cli, load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.formats import CheckpointFiles
from spacy_elmo.checkpoints.native import matches_native, write_native
from spacy_elmo.experiments.contexts import compare_word
from spacy_elmo.pipeline.presets import PRESETS, STATIC_VECTORS, make_config

from ..support.helpers import SHAPE, assert_close, make_nlp
from ..support.pipelines import add_vectors, build, make_minimal


def test_spacy_lists_our_commands():
    result = subprocess.run(
        [sys.executable, "-m", "spacy", "elmo", "--help"], check=True, capture_output=True
    )
    for name, *_ in cli._COMMANDS:
        assert name in result.stdout.decode()


def run(*arguments, exit_code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


@pytest.fixture
def corpus(tmp_path):
    """Paths of train and dev."""
    vocab = spacy.blank("en").vocab
    docs = [
        Doc(
            vocab,
            words=words.split(),
            tags=["T"] * len(words.split()),
            ents=["B-FOOD", *["O"] * (len(words.split()) - 1)],
            sent_starts=[True] + [False] * (len(words.split()) - 1),
        )
        for words in ("eggs are green .", "ham I like .", "ham and eggs")
    ]
    paths = []
    for name in ("train", "dev"):
        paths.append(tmp_path / f"{name}.spacy")
        DocBin(docs=docs).to_disk(paths[-1])
    return paths


@pytest.fixture
def vectors_folder(tmp_path):
    nlp = spacy.blank("en")
    add_vectors(nlp)
    nlp.to_disk(tmp_path / "vectors")
    return tmp_path / "vectors"


def with_corpus(corpus):
    return ["--paths.train", corpus[0], "--paths.dev", corpus[1]]


@pytest.mark.parametrize("preset", ["allennlp", STATIC_VECTORS])
def test_configs_are_written_filled_checked_and_trained(
    tmp_path, toy_folder, vectors_folder, corpus, preset
):
    config, output = tmp_path / "config.cfg", tmp_path / "output"
    weights = ["--options", toy_folder / "options.json", "--weights", toy_folder / "weights.hdf5"]

    vectors = ["--vectors", vectors_folder] if preset == STATIC_VECTORS else []
    run("elmo", "init-config", config, "--preset", preset, *weights, *vectors)
    run("init", "fill-config", config, config)
    assert "valid" in run("debug", "config", config, *with_corpus(corpus)).lower()
    data = run("debug", "data", config, *with_corpus(corpus), exit_code=1)
    # It fails for a corpus as small as this one, and for nothing else.
    assert "Corpus is loadable" in data and "[EL" not in data
    run("train", config, *with_corpus(corpus), "--output", output, "--training.max_steps", 2)

    nlp = spacy.load(output / "model-last")
    assert nlp("ham and eggs").tensor.shape == (3, 8)
    assert nlp("ham and eggs")[0].tag_ == "T"


def test_missing_static_vectors_are_told(tmp_path, toy_folder, corpus):
    config = tmp_path / "config.cfg"
    init = ["init-config", config, "--weights", toy_folder, "--preset", "static_vectors"]
    told = " ".join(run("elmo", *init, exit_code=1).split())
    assert "none are given. Add `--vectors PIPELINE`" in told and not config.exists()

    make_config("static_vectors", ["tagger"]).to_disk(config)
    run("init", "fill-config", config, config)
    command = ["train", config, *with_corpus(corpus)]
    with pytest.raises(ValueError, match=r"EL186.*'tagger'.*--paths\.vectors"):
        CliRunner().invoke(app, [str(part) for part in command], catch_exceptions=False)


def test_configs_have_language_and_tokenizer_of_the_weights(tmp_path):
    config, weights = tmp_path / "config.cfg", tmp_path / "weights"

    def write(*options, **meta):
        write_native(BiLM(BiLMConfig(**SHAPE)), weights, meta=meta)
        run("elmo", "init-config", config, "-F", "--weights", weights, *options)
        return spacy.util.load_config(config)["nlp"]

    # The default tokenizer of Korean needs MeCab.
    by_space = {"@tokenizers": "spacy.Tokenizer.v1"}
    for option in ((), ("--pretraining",)):
        nlp = write(*option, lang="ko", tokenizer=by_space)
        assert (nlp["lang"], nlp["tokenizer"]) == ("ko", by_space)
        assert write(*option, "--lang", "xx", lang="ko")["lang"] == "xx"
        assert "tokenizer" not in write(*option, lang="zh", tokenizer={})
    # By spaces alone nothing of it would be a word.
    assert "tokenizer" not in write("--pretraining", lang="ja")
    # What is the language's own anyway is not written.
    assert "tokenizer" not in write(lang="de", tokenizer=by_space)
    assert "tokenizer" not in write(lang="ko")


def test_configs_are_replaced_by_force_alone(tmp_path):
    config = tmp_path / "not" / "there" / "config.cfg"
    run("elmo", "init-config", config, "--pipeline", "tagger")
    written = config.read_text()
    refused = run("elmo", "init-config", config, "--pipeline", "ner", exit_code=1)
    assert "--force" in refused and config.read_text() == written
    for flag in ("--force", "-F"):
        run("elmo", "init-config", config, "--pipeline", "ner", flag)
        assert config.read_text() != written
    # As `spacy init config` does: nothing but the config, which can be piped.
    printed = run("elmo", "init-config", "-", "--pipeline", "tagger")
    assert printed.strip() == written.strip()


def test_convert_writes_our_folder(tmp_path, toy_folder):
    pair = [
        toy_folder / "options.json",
        tmp_path / "pair",
        "--weights",
        toy_folder / "weights.hdf5",
    ]
    run("elmo", "convert", toy_folder, tmp_path / "whole")
    run("elmo", "convert", *pair)
    run("elmo", "convert", toy_folder, tmp_path / "half", "--half")

    expected = load_embedder(toy_folder).embed([["green", "eggs"]])
    for name, atol in (("whole", 0), ("pair", 0), ("half", 0.01)):
        assert matches_native(CheckpointFiles(tmp_path / name))
        assert_close(load_embedder(tmp_path / name).embed([["green", "eggs"]]), expected, atol)


def test_demo_prints_a_table_and_draws_it(tmp_path, toy_folder):
    texts = tmp_path / "texts.txt"
    texts.write_text("The play was good .\n\nThey play outside .\n")
    picture = tmp_path / "play.png"

    output = run(
        "elmo", "demo", toy_folder, "--word", "play", "--texts", texts, "--output", picture
    )

    assert "They play outside ." in output and "What " not in output
    assert output.count("1.00") >= 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_words_are_compared_in_the_top_layer():
    nlp = make_nlp(store_layers=True)
    docs = [nlp("a bank"), nlp("the bank of x"), nlp("no bank !")]

    for n in (2, 3):
        top = np.stack([doc[1]._.elmo_layers[-1] for doc in docs[:n]])
        # The mean of two vectors would leave opposites.
        top -= top.mean(axis=0) if n > 2 else 0
        top /= np.linalg.norm(top, axis=1, keepdims=True)
        np.testing.assert_allclose(compare_word(docs[:n], "bank"), top @ top.T, atol=1e-5)


def test_who_sets_sentences_behind_a_sentencizer(tmp_path):
    """With the preset of published weights, which were trained on sentences."""
    command = ["elmo", "init-config", tmp_path / "x.cfg", "-F", "--preset"]
    assert "keeps the sentence" in run(*command, "allennlp", "--pipeline", "tagger,parser")
    for preset, pipeline in (("allennlp", "senter"), ("task_mix", "parser,senter")):
        assert "keeps the sentence" not in run(*command, preset, "--pipeline", pipeline)
    assert make_config("allennlp", ["senter"])["components"]["senter"]["overwrite"]
    assert "overwrite" not in make_config("task_mix", ["senter"])["components"]["senter"]


@pytest.mark.parametrize("name, score", [("ner", "ents_f"), ("senter", "sents_f")])
def test_a_score_that_nothing_learns_chooses_no_step(name, score):
    paths = {"elmo_options": "x", "elmo_weights": "y"}
    config = make_config("allennlp", [name], paths=paths)
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    weights = nlp.config["training"]["score_weights"]
    assert {key: weight for key, weight in weights.items() if weight} == {score: 1.0}


def test_components_that_learn_alike_share_an_encoder():
    config = make_config("word_features", ["tagger", "parser", "ner", "elmo_srl"])
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    assert nlp.get_pipe("tok2vec").listening_components == ["tagger", "parser"]
    assert nlp.get_pipe("elmo").listening_components == ["tok2vec", "ner", "elmo_srl"]
    for preset, components in (
        ("word_features", ["tagger", "ner"]),
        ("task_mix", ["tagger", "parser"]),
    ):
        assert "tok2vec" not in make_config(preset, components)["components"]


def test_components_of_a_trained_pipeline_stay_as_they_are(
    tmp_path, toy_folder, corpus, monkeypatch
):
    """A tagger with spaCy's tok2vec stays, `ner` is replaced, and the data have entities alone."""
    base = build(init_config(lang="en", pipeline=["tagger", "ner"]))
    base.add_pipe("sentencizer")
    base.initialize(lambda: Corpus(corpus[0])(base))
    base.to_disk(tmp_path / "base")
    train = tmp_path / "train.spacy"
    DocBin(docs=[Doc(base.vocab, ["eat", "ham"], ents=["O", "B-DISH"])]).to_disk(train)
    config = tmp_path / "config.cfg"
    run(
        "elmo", "init-config", config, "--pipeline", "ner", "--base", tmp_path / "base",
        "--weights", toy_folder,
    )  # fmt: skip
    run("init", "fill-config", config, config)
    run(
        "train", config, "--output", tmp_path / "out", "--paths.train", train, "--paths.dev", train,
        "--training.max_steps", 1, "--training.eval_frequency", 1,
    )  # fmt: skip

    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.pipe_names == ["tok2vec", "tagger", "elmo", "ner", "sentencizer"]
    assert nlp.get_pipe("ner").labels == ("DISH",)
    weights = nlp.config["training"]["score_weights"]
    assert {key for key, value in weights.items() if value} == {"ents_f"}
    doc, expected = nlp("green eggs"), base("green eggs")
    assert [token.tag_ for token in doc] == [token.tag_ for token in expected]
    assert_close(nlp.get_pipe("tok2vec").predict([doc]), [expected.tensor])
    again = make_config("word_features", ["textcat"], base=str(tmp_path / "out" / "model-last"))
    extended = spacy.util.load_model_from_config(again, auto_fill=True)
    assert extended.pipe_names == [*nlp.pipe_names[:-1], "textcat", "sentencizer"]
    assert extended.get_pipe("elmo").listening_components == ["ner", "textcat"]
    assert "elmo" not in again["training"]["frozen_components"]
    with pytest.raises(ValueError, match="has an 'elmo'"):
        make_config("word_features", ["textcat"], base=str(tmp_path / "out/model-last"), cache="x")
    path = tmp_path / "out" / "model-last" / "config.cfg"
    path.write_text(path.read_text().replace("frozen = true", "frozen = false"))
    with pytest.raises(ValueError, match="Set `frozen = true`"):
        make_config("word_features", ["textcat"], base=str(path.parent))
    monkeypatch.chdir(tmp_path)
    shown = run("elmo", "demo", toy_folder, "--pipeline", tmp_path / "out" / "model-last")
    assert "What " in shown and "Google" in shown


@pytest.mark.parametrize("name", ["elmo", "elmo_lm", "elmo_senses"])
def test_a_config_with_a_factory_alone_is_filled(name, tmp_path):
    path, filled = tmp_path / "config.cfg", tmp_path / "filled.cfg"
    path.write_text(make_minimal("elmo", name) if name == "elmo_senses" else make_minimal(name))

    run("init", "fill-config", path, filled)

    config = spacy.util.load_config(filled)
    assert config["components"][name].items() >= get_defaults(name).items()
    assert spacy.util.load_model_from_config(config).pipe_names[-1] == name
    # Once filled, there is nothing more to fill.
    run("init", "fill-config", filled, path)
    assert path.read_text() == filled.read_text()


def get_defaults(name):
    default = spacy.blank("en").get_factory_meta(name).default_config
    return {key: value for key, value in default.items() if key != "model"}


@pytest.mark.parametrize("preset", PRESETS)
def test_the_config_of_a_preset_is_filled(preset, tmp_path):
    path = tmp_path / "config.cfg"
    vectors = ["--vectors", "x"] if preset == STATIC_VECTORS else []
    run("elmo", "init-config", path, "--preset", preset, *vectors)

    run("init", "fill-config", path, path)

    # What `spacy train` would be told.
    paths = {"paths.elmo_options": "x", "paths.elmo_weights": "y"} if preset == "allennlp" else {}
    config = spacy.util.load_config(path, overrides=paths)
    elmo = config["components"]["elmo"]["model"]
    assert elmo.pop("filters") == [list(pair) for pair in BiLMConfig().filters]
    nlp = build(config)
    assert len(nlp.config["components"]["elmo"]["model"]["filters"]) == 6
    assert build(nlp.config).get_pipe("elmo").width == BiLMConfig().width
