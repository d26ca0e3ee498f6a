"""Language, licence and sources of weights. A warning if the docs are of another language."""

import pytest
import spacy
import srsly

from spacy_elmo import pipe_config
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.language_model.loading import collect_softmax
from spacy_elmo.language_model.softmax import make_softmax
from spacy_elmo.layers.elmo_layers import get_embedder

from ..support.helpers import SHAPE, example, tell
from .test_elmo_lm import WORDS

TEXT = "green eggs"


def make_weights(embedder, folder, **meta):
    softmax = collect_softmax(make_softmax("full", 4, len(WORDS)), "full", {}, WORDS)
    write_native(embedder.bilm, folder / "lm", softmax=softmax, meta=meta)
    return folder / "lm"


def make_elmo(lang, folder):
    nlp = spacy.blank(lang)
    nlp.add_pipe("elmo", config=pipe_config(folder)).load(folder)
    return nlp


def make_lm(lang, folder):
    nlp = spacy.blank(lang)
    nlp.add_pipe("elmo_lm", config={"path": str(folder)})
    return nlp


KINDS = {"elmo": make_elmo, "elmo_lm": make_lm}


def is_told(nlp):
    messages, _ = tell(lambda: list(nlp.pipe([TEXT, TEXT])))
    return ["[WL018]" in message for message in messages]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("lang", ["de", "xx"])
def test_another_language_is_told_once(embedder, tmp_path, name, lang):
    nlp = KINDS[name](lang, make_weights(embedder, tmp_path, lang="fr"))

    (message,), _ = tell(nlp, TEXT)

    assert f"[WL018] The weights of '{name}' were trained on the language 'fr'" in message
    assert f"the docs are in '{lang}'" in message
    assert is_told(nlp) == []


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("meta", [{"lang": "de"}, {"lang": "xx"}, {}, {"lang": None}, {"lang": 5}])
def test_the_same_or_no_language_is_not_told(embedder, tmp_path, name, meta):
    nlp = KINDS[name]("de", make_weights(embedder, tmp_path, **meta))

    assert is_told(nlp) == []


@pytest.mark.parametrize("name", KINDS)
def test_the_bundled_weights_are_english(name):
    for lang, expected in (("en", []), ("de", [True])):
        nlp = spacy.blank(lang)
        nlp.add_pipe(name)
        assert is_told(nlp) == expected


@pytest.mark.parametrize("name", KINDS)
def test_the_language_is_saved_with_the_weights(embedder, tmp_path, name):
    nlp = KINDS[name]("fr", make_weights(embedder, tmp_path / "weights", lang="fr"))
    nlp.to_disk(tmp_path / "pipeline")
    other = KINDS[name]("de", make_weights(embedder, tmp_path / "others", lang="de"))

    other.get_pipe(name).from_disk(tmp_path / "pipeline" / name, exclude=["vocab"])
    assert is_told(other) == [True]
    other = KINDS[name]("de", tmp_path / "others" / "lm")
    other.get_pipe(name).from_bytes(nlp.get_pipe(name).to_bytes(exclude=["vocab"]))
    assert is_told(other) == [True]


def test_training_tells_before_it_starts(embedder, tmp_path):
    folder = make_weights(embedder, tmp_path, lang="fr")
    nlp = spacy.blank("de")
    nlp.add_pipe("elmo", config=pipe_config(folder))
    loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": str(folder)}
    nlp.config["initialize"]["components"]["elmo"] = {"loader": loader}

    with pytest.warns(UserWarning, match="WL018.*'fr'.*'de'"):
        nlp.initialize(lambda: [example(nlp)])
    assert is_told(nlp) == []


def test_another_load_has_another_language(embedder, tmp_path):
    nlp = spacy.blank("de")
    elmo = nlp.add_pipe("elmo", config={"model": {"@architectures": "spacy-elmo.Elmo.v2", **SHAPE}})

    elmo.load(make_weights(embedder, tmp_path / "fr", lang="fr"))
    assert elmo.lang == "fr" and get_embedder(elmo.model).is_ready
    elmo.load(make_weights(embedder, tmp_path / "de", lang="de"))
    assert elmo.lang == "de" and is_told(nlp) == []


@pytest.mark.parametrize("place", ["", "elmo"])
def test_weights_of_a_pipeline_have_their_own_language(embedder, tmp_path, place):
    nlp = make_elmo("en", make_weights(embedder, tmp_path / "weights", lang="de"))
    nlp.to_disk(tmp_path / "pipeline")
    other = make_elmo("en", tmp_path / "pipeline" / place)
    assert other.get_pipe("elmo").lang == "de" and is_told(other) == [True]
    (tmp_path / "pipeline/elmo/cfg").write_text("no JSON")
    assert make_elmo("en", tmp_path / "pipeline" / place).get_pipe("elmo").lang is None


@pytest.mark.parametrize("name", KINDS)
def test_licence_and_sources_of_weights_are_saved_with_a_pipeline(embedder, tmp_path, name):
    about = {"licence": "CC0", "description": "A biLM", "text": "letters", "teachers": 5}
    nlp = KINDS[name]("en", make_weights(embedder, tmp_path, lang="en", **about))
    nlp.get_pipe(name).from_bytes(nlp.get_pipe(name).to_bytes())
    nlp.to_disk(tmp_path / "first")
    spacy.load(tmp_path / "first").to_disk(tmp_path / "second")
    copied = spacy.blank("en")
    copied.add_pipe(name, source=spacy.load(tmp_path / "second"))
    copied.meta["license"] = "GPL"
    copied.to_disk(tmp_path / "third")

    for folder, licence in (("first", "CC0"), ("second", "CC0"), ("third", "GPL")):
        meta = spacy.load(tmp_path / folder).meta
        assert (meta["license"], meta["sources"]) == (licence, ["A biLM", "letters"])


def test_the_meta_of_another_folder_is_kept(embedder, tmp_path):
    elmo = make_elmo("en", make_weights(embedder, tmp_path, licence="CC0")).get_pipe("elmo")
    (tmp_path / "meta.json").write_text("{}")
    elmo.to_disk(tmp_path / "elmo", exclude=["vocab"])

    assert srsly.read_json(tmp_path / "meta.json") == {}


@pytest.mark.parametrize("name", KINDS)
def test_the_bundled_weights_have_a_licence_before_they_are_used(tmp_path, name):
    nlp = spacy.blank("en")
    nlp.add_pipe(name)
    nlp.to_disk(tmp_path)

    meta = srsly.read_json(tmp_path / "meta.json")
    assert meta["license"].startswith("CC BY-SA 4.0") and len(meta["sources"]) == 3
