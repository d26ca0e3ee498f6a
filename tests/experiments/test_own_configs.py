"""A config of one's own in an experiment: all of it but its biLM."""

import pytest
import spacy
from spacy import util
from spacy.training.initialize import init_nlp

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.experiments.variant_configs import make_variant
from spacy_elmo.experiments.variants import SUITES, choose_variants
from spacy_elmo.pipeline.presets import make_config

from ..support.helpers import SHAPE
from ..support.pipelines import add_vectors

PLAIN, ELMO = choose_variants("gain", 2)
LOADER = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": "weights"}


def make_own(preset="word_features"):
    return make_config(preset, ["tagger"])


def rename(own, name):
    for blocks in (own["components"], own["initialize"]["components"]):
        blocks[name] = blocks.pop("elmo")
    own["nlp"]["pipeline"] = [name if n == "elmo" else n for n in own["nlp"]["pipeline"]]
    return own


def make_with_loader():
    own = make_own()
    own["initialize"]["components"]["elmo"]["loader"] = dict(LOADER)
    return own


def make_with_shape():
    own = make_own()
    own["components"]["elmo"]["model"]["width"] = 16
    return own


def make_with_source():
    own = make_own()
    own["components"]["elmo"] = {"source": "pipeline"}
    return own


OWN = {"a loader": make_with_loader, "another width": make_with_shape, "a source": make_with_source}


@pytest.mark.parametrize("what", OWN)
def test_the_bilm_is_that_of_the_runs(what):
    own = OWN[what]()
    with pytest.raises(ValueError, match=f"EL316.*{what}.*--weights"):
        make_variant(ELMO, "tagger", base=own)

    loader = {**LOADER, "path": "other"}
    made = make_variant(ELMO, "tagger", base=own, shape=BiLMConfig(**SHAPE), loader=loader)
    model = made["components"]["elmo"]["model"]
    assert BiLMConfig(**SHAPE).to_dict().items() <= model.items()
    assert made["initialize"]["components"]["elmo"]["loader"] == loader
    assert "source" not in made["components"]["elmo"]


def test_several_are_refused():
    own = make_own()
    own["components"]["second"] = dict(own["components"]["elmo"])
    with pytest.raises(ValueError, match="EL317.*elmo, second"):
        make_variant(ELMO, "tagger", base=own)


@pytest.mark.parametrize("name", ["elmo", "bilm"])
def test_its_place_and_its_settings_are_kept(name):
    own = make_own()
    own["nlp"]["pipeline"] = ["sentencizer", "elmo", "tagger"]
    own["components"]["sentencizer"] = {"factory": "sentencizer"}
    spans = {"@misc": "spacy-elmo.sentence_spans.v1"}
    own["components"]["elmo"]["model"]["get_spans"] = spans
    own["components"]["elmo"]["store_layers"] = True
    rename(own, name)
    own["training"]["annotating_components"] = ["sentencizer", name]
    own["training"]["frozen_components"] = [name]
    before = own.copy()

    elmo, plain = (make_variant(v, "tagger", base=own) for v in (ELMO, PLAIN))

    assert own == before
    assert elmo["nlp"]["pipeline"] == ["sentencizer", "elmo", "tagger"]
    assert elmo["components"]["elmo"]["model"]["get_spans"] == spans
    assert elmo["components"]["elmo"]["store_layers"]
    assert sorted(elmo["components"]) == sorted(elmo["nlp"]["pipeline"])
    assert elmo["training"]["annotating_components"] == ["sentencizer", "elmo"]
    assert elmo["training"]["frozen_components"] == ["elmo"]
    assert plain["nlp"]["pipeline"] == sorted(plain["components"]) == ["sentencizer", "tagger"]
    assert plain["training"]["annotating_components"] == ["sentencizer"]
    assert plain["training"]["frozen_components"] == []


def test_a_variant_without_elmo_trains_where_the_config_names_it(tagged_corpus):
    own = rename(make_own(), "bilm")
    own["training"]["annotating_components"] = own["training"]["frozen_components"] = ["bilm"]
    plain = make_variant(PLAIN, "tagger", base=own)
    for split in ("train", "dev"):
        plain["paths"][split] = str(tagged_corpus / f"{split}.spacy")

    nlp = init_nlp(util.load_config_from_str(plain.to_str(), interpolate=False))

    assert nlp.pipe_names == ["tagger"]


@pytest.fixture
def vectors(tmp_path):
    nlp = spacy.blank("en")
    add_vectors(nlp)
    nlp.to_disk(tmp_path / "vectors")
    return str(tmp_path / "vectors")


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite != "vectors"])
@pytest.mark.parametrize("where", ["beside", "inside"])
def test_static_vectors_of_the_config_are_in_every_variant(suite, where, vectors):
    own = make_own("static_vectors" if where == "beside" else "word_features")
    own["paths"]["vectors"] = vectors
    if where == "inside":
        block = own["components"]["tagger"]["model"]["tok2vec"]
        block["embed"]["include_static_vectors"] = True
    for variant in choose_variants(suite, 2):
        made = make_variant(variant, "tagger", base=own)
        block = made["components"]["tagger"]["model"]["tok2vec"]
        inside = block["embed"]["include_static_vectors"]
        beside = bool(variant.places) and block["vectors"] is not None
        is_beside = where == "beside" and bool(variant.places)
        assert (inside, beside) == (not is_beside, is_beside)
        assert made["paths"]["vectors"] == vectors


def test_presets_have_no_static_vectors_unasked():
    for suite in ("gain", "weighting", "placement"):
        for variant in choose_variants(suite, 2):
            block = make_variant(variant, "tagger")["components"]["tagger"]["model"]["tok2vec"]
            assert not block.get("vectors") and not block["embed"]["include_static_vectors"]
