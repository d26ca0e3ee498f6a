"""projects/table1: each config makes the four variants, and trains."""

import pytest
import spacy
from spacy import util

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.experiments.runs import load_base
from spacy_elmo.experiments.variant_configs import make_variant
from spacy_elmo.experiments.variants import choose_variants, get_score

from ..support.helpers import ROOT, SHAPE
from ..support.pipelines import add_vectors

CONFIGS = {
    "entities": ("ner", "ents_f"),
    "nested": ("spancat", "spans_sc_f"),
    "sentiment": ("textcat", "cats_score"),
    "entailment": ("elmo_entailment", "entailment_acc"),
    "roles": ("elmo_srl", "srl_f"),
    "coreference": ("elmo_coref", "coref_f"),
    "coreference_singletons": ("elmo_coref", "coref_f"),
    "answers": ("elmo_qa", "qa_f1"),
    "answers_or_none": ("elmo_qa", "qa_f1"),
}


def test_every_config_is_tried():
    assert {path.stem for path in (ROOT / "projects/table1").glob("*.cfg")} == set(CONFIGS)


@pytest.mark.parametrize("name", CONFIGS)
def test_variants_differ_in_the_tok2vec_alone(name, tmp_path):
    component, score = CONFIGS[name]
    nlp = spacy.blank("en")
    add_vectors(nlp)
    nlp.to_disk(tmp_path)
    base = load_base(str(ROOT / "projects/table1" / f"{name}.cfg"))
    widths = {}
    rest = []
    for variant in choose_variants("vectors", SHAPE["depth"]):
        config = make_variant(
            variant, component, base=base, vectors=str(tmp_path), shape=BiLMConfig(**SHAPE)
        )
        made = util.load_model_from_config(config, auto_fill=True)
        assert made.pipe_names == ["elmo"] * bool(variant.places) + [component]
        model = config["components"][component]["model"]
        tok2vec = model.pop("tok2vec")
        widths[variant.name] = "input" in tok2vec and tok2vec["input"] is not None
        # With ELMo beside the word features, without it among them, as spaCy has it.
        found = tok2vec["embed"]["include_static_vectors"], bool(tok2vec.get("vectors"))
        with_elmo = bool(variant.places)
        expected = (not with_elmo, with_elmo) if variant.has_vectors else (False, False)
        assert found == expected
        rest.append((model, config["training"], config["corpora"]))

    assert widths == {"plain": False, "elmo": True, "vectors": False, "elmo_vectors": True}
    assert all(each == rest[0] for each in rest)
    assert get_score(component) == score


@pytest.mark.parametrize("name", ["answers", "entailment", "roles"])
def test_places_are_those_of_the_tasks_own_encoder(name):
    component, _ = CONFIGS[name]
    base = load_base(str(ROOT / "projects/table1" / f"{name}.cfg"))
    for variant in choose_variants("placement", SHAPE["depth"]):
        config = make_variant(variant, component, base=base, shape=BiLMConfig(**SHAPE))
        nlp = util.load_model_from_config(config, auto_fill=True)
        tok2vec = nlp.get_pipe(component).model.get_ref("tok2vec")
        assert ("elmo" in nlp.pipe_names) == bool(variant.places)
        assert bool(tok2vec.has_ref("past")) == ("output" in variant.places)
