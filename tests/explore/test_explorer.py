"""Answers to the page, without a server."""

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.explore.explorer import (
    ExploreLimits,
    Explorer,
    find_embedder,
    prepare_pipeline,
)
from spacy_elmo.pipeline.weights_logger import collect_weights
from spacy_elmo.search.search_index import SearchIndex

from ..support.helpers import make_nlp

# The toy biLM reads short words only.
pytestmark = pytest.mark.filterwarnings("ignore:.*WL003")
TEXT = "The bank of the river.\n\n  A bank  lends money.\nRivers!"
SENTENCES = [["A", "bank", "lends", "."], ["The", "river", "bank", "."], ["Green", "eggs", "."]]


@pytest.fixture(scope="module")
def nlp():
    nlp = make_nlp()
    prepare_pipeline(nlp, "toy", "en_small")
    return nlp


def make_index(nlp, folder, sentences):
    opened = SearchIndex.create(
        folder,
        find_embedder(nlp),
        layer=0,
        weighting="mean",
        backend="numpy",
        lang="en",
    )
    opened.add("some text", sentences)
    return opened


@pytest.fixture
def index(nlp, tmp_path):
    return make_index(nlp, tmp_path / "index", SENTENCES)


def test_lines_are_read_on_their_own(nlp):
    lines = Explorer(nlp).read(TEXT)["lines"]

    docs = [nlp(line) for line in ("The bank of the river.", "A bank  lends money.", "Rivers!")]
    assert [[t["text"] for t in line["tokens"]] for line in lines] == [
        [t.text for t in doc] for doc in docs
    ]
    for line, doc in zip(lines, docs):
        assert line["perplexity"] == pytest.approx(doc._.elmo_perplexity, rel=1e-4)
        for entry, token in zip(line["tokens"], doc):
            assert entry["is_space"] == token.is_space == (entry["bits"] is None)
            if not token.is_space:
                assert entry["bits"] == pytest.approx(token._.elmo_surprisal, abs=1e-3)
    assert not lines[2]["tokens"][0]["is_known"] or lines[0]["tokens"][0]["is_known"]


def test_merged_tokens_are_read_one_by_one():
    nlp = make_nlp()
    nlp.add_pipe("merge_noun_chunks", first=True)
    nlp.disable_pipe("merge_noun_chunks")
    nlp.add_pipe("elmo_lm", config={"substitutes": False})
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "P", "pattern": "green eggs"}])
    nlp.add_pipe("merge_entities")
    with pytest.warns(UserWarning, match="WL066.*merge_entities"):
        prepare_pipeline(nlp, "toy")

    answer = Explorer(nlp).read("I like green eggs.")

    assert [t["text"] for t in answer["lines"][0]["tokens"]] == ["I", "like", "green", "eggs", "."]
    (entities,) = answer["drawings"]
    assert (entities["title"], entities["lines"][0]["items"]) == ("Entities", ["P: green eggs"])
    assert Explorer(nlp).substitute("I like eggs.", 1)["substitutes"]


def test_cosines_are_those_of_the_layers(nlp):
    answer = Explorer(nlp).compare(TEXT, [1, 7, 4])

    first, second = nlp("The bank of the river."), nlp("A bank  lends money.")
    layers = np.stack([t._.elmo_layers for t in (first[1], second[1], first[4])])
    for k, layer in enumerate(answer["layers"]):
        X = layers[:, k] / np.linalg.norm(layers[:, k], axis=1, keepdims=True)
        np.testing.assert_allclose(layer["cosines"], X @ X.T, atol=1e-5)
    assert [layer["name"] for layer in answer["layers"]] == ["words", "LSTM 1", "LSTM 2"]
    # The same word without context.
    assert answer["layers"][0]["cosines"][0][1] == pytest.approx(1)
    assert answer["layers"][2]["cosines"][0][1] < 0.9999


def test_words_that_occur_twice_are_chosen_first(nlp):
    explorer = Explorer(nlp, limits=ExploreLimits(max_chosen=3))
    assert explorer.read(TEXT)["chosen"] == [1, 7, 4]
    assert explorer.read("!\n? 12")["chosen"] == [0, 1, 2]


def test_substitutes_are_those_of_the_token(nlp):
    answer = Explorer(nlp).substitute(TEXT, 1)["substitutes"]
    expected = nlp("The bank of the river.")[1]._.elmo_substitutes(10)
    assert [entry["word"] for entry in answer] == [word for word, _ in expected]


def test_the_nearest_contexts_are_tokens_of_other_sentences(nlp, index):
    answer = Explorer(nlp, index).search("A bank lends .", 1, 0)["contexts"]

    # Its own sentence is left out; in the word layer the same word is the same.
    assert [context["words"] for context in answer] == SENTENCES[1:]
    assert answer[0]["position"] == 2 and answer[0]["similarity"] == pytest.approx(1, abs=1e-5)
    assert (answer[0]["source"], answer[0]["number"]) == ("some text", 2)


@pytest.mark.parametrize("found", [[], SENTENCES[1:]])
def test_copies_of_the_own_sentence_do_not_hide_others(nlp, tmp_path, found):
    copies = [SENTENCES[0]] * 60 + found[:1] * 60 + found[1:]
    index = make_index(nlp, tmp_path / "index", copies)
    answer = Explorer(nlp, index).search("A bank lends .", 1, 0)["contexts"]
    assert [context["words"] for context in answer] == found


def test_mixes_are_those_of_the_pipeline(nlp):
    (mix,) = Explorer(nlp).describe()["mixes"]
    (expected,) = collect_weights(nlp)
    assert mix == {**expected._asdict(), "layers": ["words", "LSTM 1", "LSTM 2"]}


BAD = {
    "empty": (lambda e: e.read(" \n\t\n"), "EL272.*0 lines"),
    "long": (lambda e: e.read("x" * 300), "EL272.*300 characters, expected 1 to 200.*--max-chars"),
    "lines": (lambda e: e.read("x\n" * 30), "EL272.*30 lines, expected 1 to 20.*--max-lines"),
    "tokens": (lambda e: e.read("x " * 60), "EL272.*60 tokens, expected 1 to 50.*--max-tokens"),
    "no choice": (lambda e: e.compare(TEXT, []), "Choose 1 to 16"),
    "negative": (lambda e: e.substitute(TEXT, -1), "Token -1"),
    "whitespace": (lambda e: e.substitute(TEXT, 8), "Token 8"),
}


@pytest.mark.parametrize("ask, message", BAD.values(), ids=BAD)
def test_bad_input_is_refused(nlp, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(Explorer(nlp, limits=ExploreLimits(max_chars=200, max_tokens=50)))


def test_what_a_pipeline_lacks_is_explained():
    layers = make_nlp()
    prepare_pipeline(layers, "toy")
    without_model = Explorer(layers)
    assert "elmo_lm" in without_model.obstacles["surprisal"]
    assert without_model.obstacles["likeness"] is None
    assert without_model.read("Ham.")["lines"][0]["tokens"][0]["bits"] is None
    with pytest.raises(ValueError, match="has no component elmo_lm, but elmo"):
        without_model.substitute("Ham.", 0)

    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_lm", name="lm")
    prepare_pipeline(nlp, "toy")
    without_layers = Explorer(nlp)
    assert without_layers.read("Ham.")["lines"][0]["tokens"][0]["bits"] > 0
    assert "EL063" in without_layers.obstacles["mixes"]
    with pytest.raises(ValueError, match="no component elmo, but lm"):
        without_layers.compare("Ham.", [0])

    plain = spacy.blank("en")
    plain.add_pipe("sentencizer")
    with pytest.raises(ValueError, match="EL270.*'plain'.*sentencizer"):
        prepare_pipeline(plain, "plain")


def test_a_text_that_was_read_is_not_read_again(nlp, monkeypatch):
    explorer = Explorer(nlp)
    n_read = []
    pipe = nlp.pipe
    monkeypatch.setattr(nlp, "pipe", lambda docs: n_read.append(1) or pipe(docs))

    explorer.read(TEXT)
    explorer.compare(TEXT, [1])
    assert len(n_read) == 1
    # Only the last ones are kept.
    for i in range(8):
        explorer.read(f"Text {i}")
    explorer.read(TEXT)
    assert len(n_read) == 10


@settings(max_examples=15)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(nlp, text):
    explorer = Explorer(nlp)
    try:
        answer = explorer.read(text)
    except ValueError as err:
        assert "EL272" in str(err)
    else:
        assert answer["chosen"]
        explorer.compare(text, answer["chosen"])
