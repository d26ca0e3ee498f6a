"""Minimal configs, and those of the presets, completed by spaCy's own `init fill-config`."""

import pytest
import spacy

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.pipeline.presets import PRESETS

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
