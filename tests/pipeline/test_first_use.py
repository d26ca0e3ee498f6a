"""Weights of a component that spaCy does not initialize, as those in frozen_components."""

import pytest
import spacy
from spacy.training.initialize import init_nlp
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_elmo import make_config, pipe_config
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.layers.elmo_layers import get_embedder

from ..support.helpers import SHAPE, assert_close
from .test_listeners import make_examples

TEXT = "I like green eggs"


@pytest.fixture
def weights(tmp_path):
    write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / "own")
    return tmp_path / "own"


@pytest.fixture
def expected(weights):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=pipe_config(weights)).load(weights)
    return nlp(TEXT).tensor


@pytest.fixture
def config(weights, tmp_path):
    nlp = spacy.blank("en")
    examples = spacy.tokens.DocBin(docs=[eg.reference for eg in make_examples(nlp)])
    for name in ("train", "dev"):
        examples.to_disk(tmp_path / f"{name}.spacy")
    loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": str(weights)}
    shape = BiLMConfig(**SHAPE)
    config = make_config("task_mix", ["tagger"], shape=shape, loader=loader)
    config["paths"].update({name: str(tmp_path / f"{name}.spacy") for name in ("train", "dev")})
    return Config(config)


@pytest.mark.parametrize("frozen", [[], ["elmo"]])
def test_the_configured_weights_are_taken(config, expected, frozen):
    config["training"]["frozen_components"] = frozen
    config["training"]["annotating_components"] = frozen
    nlp = init_nlp(config)
    assert_close([nlp(TEXT).tensor], [expected])


def test_the_configured_weights_are_taken_without_initializing(config, expected, tmp_path):
    config["nlp"]["pipeline"] = ["elmo"]
    del config["components"]["tagger"]
    nlp = load_model_from_config(config, auto_fill=True)
    assert_close([nlp(TEXT).tensor], [expected])
    nlp.to_disk(tmp_path / "pipeline")
    # Saved weights are not looked for where they came from.
    (tmp_path / "own").rename(tmp_path / "elsewhere")
    assert_close([spacy.load(tmp_path / "pipeline")(TEXT).tensor], [expected])


def test_the_configured_cache_is_used(config, tmp_path):
    cache = {"@misc": "spacy-elmo.ActivationCache.v1", "path": str(tmp_path / "cache")}
    config["initialize"]["components"]["elmo"]["activation_cache"] = cache
    config["training"]["frozen_components"] = ["elmo"]
    config["training"]["annotating_components"] = ["elmo"]
    nlp = init_nlp(config)
    for _ in range(3):
        nlp(TEXT)
    activations = get_embedder(nlp.get_pipe("elmo").model).activations()
    assert activations is not None and list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("rename", [False, True])
def test_another_name_has_the_same_weights(config, expected, rename):
    config["nlp"]["pipeline"] = ["elmo"]
    del config["components"]["tagger"]
    source = nlp = load_model_from_config(config, auto_fill=True)
    if rename:
        nlp.rename_pipe("elmo", "other")
    else:
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", source=source, name="other")
    assert_close([nlp(TEXT).tensor], [expected])
