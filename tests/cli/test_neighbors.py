"""`spacy elmo neighbors`."""

import numpy as np
import pytest
import spacy
import srsly

from spacy_elmo.experiments.contexts import find_contexts, nearest_words, summarise
from spacy_elmo.experiments.plots import plot_contexts
from spacy_elmo.text.languages import StaticVectors

from ..support.helpers import hash_of
from .test_commands import run

CORPUS = [
    ["Ham", "is", "green"],
    ["I", "like", "ham", "and", "eggs"],
    ["Eggs"],
    ["ham", "ham", "<b>"],
    [],
]
QUERY = (["green", "ham"], 1)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(" ".join(words) for words in CORPUS))
    return path


def test_the_same_word_in_any_case(embedder):
    query = find_contexts(embedder, [QUERY], CORPUS, same_word=True)[0]

    assert {c.words[c.position].lower() for c in query.contexts} == {"ham"}
    assert len(query.contexts) == 3


def test_queries_do_not_find_themselves_nor_disturb_each_other(embedder):
    other = (["Ham", "is", "green"], 0)

    together = find_contexts(embedder, [QUERY, other], CORPUS)
    alone = find_contexts(embedder, [other], CORPUS)

    assert [c.words for c in together[1].contexts] == [c.words for c in alone[0].contexts]
    assert all(c.words != other[0] for query in together for c in query.contexts)


def test_nothing_to_find_is_said(embedder):
    with pytest.raises(ValueError, match="EL094"):
        find_contexts(embedder, [QUERY], [])
    with pytest.raises(ValueError, match="EL057.*the word 'ham'.*look at all words"):
        find_contexts(embedder, [QUERY], [["Eggs"]], same_word=True)
    with pytest.raises(ValueError, match=r"EL057.*has a word\. Give more text\."):
        find_contexts(embedder, [QUERY], [QUERY[0]])


def test_static_neighbours():
    table = StaticVectors(["a", "b", "c"], np.array([[1, 0], [1, 0.1], [-1, 0]], "float32"))

    assert [word for word, _ in nearest_words(table, "A")] == ["b", "c"]
    assert nearest_words(table, "a", n=1) == [("b", pytest.approx(0.995, abs=1e-3))]
    assert nearest_words(table, "unknown") == []


def test_the_command_prints_draws_and_writes(text, weights, tmp_path):
    vectors = tmp_path / "vectors"
    nlp = spacy.blank("en")
    for word in ("ham", "eggs", "tea"):
        nlp.vocab.set_vector(word, np.random.default_rng(len(word)).random(4, "float32"))
    nlp.to_disk(vectors)
    page, picture = tmp_path / "x.html", tmp_path / "x.png"

    printed = run(
        "elmo", "neighbors", "green ham", "I like ham", "--token", "ham", "--corpus", text,
        "--weights", weights, "--vectors", vectors, "--n", 2, "--html", page, "--output", picture,
        "--json", tmp_path / "x.json", "--title", "toy",
    )  # fmt: skip

    assert "Static vectors" in printed and "eggs" in printed
    assert printed.count("0.") + printed.count("1.00") >= 4
    assert "<table>" in page.read_text("utf-8")
    assert picture.stat().st_size > 5000
    result = srsly.read_json(tmp_path / "x.json")
    assert result["experiment"] == "neighbors" and result["title"] == "toy"
    assert result["seconds"] > 0 and result["biLM"] == hash_of(weights)
    assert [len(query["contexts"]) for query in result["queries"]] == [2, 2]


def test_letters_that_no_font_has_are_said(embedder, tmp_path):
    found = summarise(find_contexts(embedder, [QUERY], [["ham", "\U00012000"]]), [])

    with pytest.warns(UserWarning, match="WL009.*x.png"):
        plot_contexts(found, tmp_path / "x.png")
    assert (tmp_path / "x.png").exists()
