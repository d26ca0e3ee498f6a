"""Minimal configs, and those of the training guide, completed by spaCy's own `init fill-config`."""

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.pipeline.presets import PRESETS

from ..support.pages import blocks
from ..support.pipelines import build, make_minimal
from .test_commands import run


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
    run("elmo", "init-config", path, "--preset", preset)

    run("init", "fill-config", path, path)

    # What `spacy train` would be told.
    paths = {"paths.elmo_options": "x", "paths.elmo_weights": "y"} if preset == "allennlp" else {}
    config = spacy.util.load_config(path, overrides=paths)
    elmo = config["components"]["elmo"]["model"]
    assert elmo.pop("filters") == [list(pair) for pair in BiLMConfig().filters]
    nlp = build(config)
    assert len(nlp.config["components"]["elmo"]["model"]["filters"]) == 6
    assert build(nlp.config).get_pipe("elmo").width == BiLMConfig().width


# The configs of the training guide


CONFIGS = dict(zip(["whole", "cache", "log"], blocks("docs/guides/train.md", "ini")))
FLAGS = {"cache": ["--cache", "cache"], "log": ["--log-mixes", "mixes.jsonl"]}


def fill(path):
    """A config as spaCy completes it, and the pipeline that it makes."""
    run("init", "fill-config", path, path)
    config = spacy.util.load_config(path)
    return config, spacy.util.load_model_from_config(config)


def test_the_whole_config_trains_as_it_is(tmp_path):
    assert len(CONFIGS) == 3
    (tmp_path / "config.cfg").write_text(CONFIGS["whole"])

    _, nlp = fill(tmp_path / "config.cfg")

    words = ["Ham", "is", "good"]
    gold = Doc(nlp.vocab, words=words, ents=["B-FOOD", "O", "O"])
    examples = [Example(nlp.make_doc("Ham is good"), gold)]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(30):
        nlp.update(examples, sgd=optimizer)
    assert [ent.label_ for ent in nlp("Ham is good").ents] == ["FOOD"]


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("preset", ["word_features", "shared_mix"])
def test_configs_pasted_at_the_end_are_those_of_the_flags(tmp_path, name, preset):
    pasted, flagged = tmp_path / "pasted.cfg", tmp_path / "flagged.cfg"
    run("elmo", "init-config", pasted, "--preset", preset)
    run("elmo", "init-config", flagged, "--preset", preset, *FLAGS[name])
    pasted.write_text(pasted.read_text() + "\n" + CONFIGS[name])

    config, nlp = fill(pasted)

    assert config == fill(flagged)[0]
    assert nlp.pipe_names == ["elmo", "tagger", "ner"]


def test_a_cache_of_layers_that_train_is_refused(tmp_path):
    output = run(
        "elmo", "init-config", tmp_path / "x.cfg", "--preset", "fine_tune", "--cache", "x",
        exit_code=1,
    )  # fmt: skip

    assert "[EL018]" in output and not (tmp_path / "x.cfg").exists()
