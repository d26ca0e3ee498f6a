"""Word senses: WordNet, centroids, the component "elmo_senses" and its command."""

import lzma

import numpy as np
import pytest
import srsly
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.senses import wordnet
from spacy_elmo.senses.annotated import Instance, read_sentences
from spacy_elmo.senses.inventory import map_pos
from spacy_elmo.senses.sense_model import Centroids, SenseModel, Sums, no_sense_of
from spacy_elmo.senses.sense_training import train_senses
from spacy_elmo.senses.wordnet import read_wordnet

from ..support.helpers import make_nlp
from ..support.toy_wordnet import MONEY, RIVER, TRADE, make_lines


@pytest.fixture
def inventory(wordnet_folder):
    return read_wordnet(wordnet_folder)


def test_wordnet_is_read_whole(inventory):
    assert inventory.find("bank", "n") == [(RIVER, 2), (MONEY, 1)]
    assert inventory.find("Bank", "v") == [(TRADE, 0)]
    assert inventory.find("green", "a") == [("green%3:00:00::", 0)]
    assert inventory.find("eggs", "n") == []
    assert inventory.glosses[MONEY] == "a place for money"
    assert len(inventory.find("depository financial institution", "n")) == 1


@pytest.mark.parametrize(
    "pos, tag, expected",
    [("NOUN", "JJ", "n"), ("", "NNS", "n"), ("ADP", "RB", "-"), ("", "IN", "-"), ("", "", "")],
)
def test_parts_of_speech_are_mapped(pos, tag, expected):
    assert map_pos(pos, tag) == expected


def test_a_missing_wordnet_is_said(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="EL103"):
        read_wordnet(tmp_path)
    monkeypatch.setattr(wordnet, "nltk", None)
    with pytest.raises(ValueError, match="EL038.*nltk"):
        read_wordnet(tmp_path)


def test_empty_lines_are_passed_over_and_damage_is_said(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('\n{"tokens": ["a"], "instances": []}\n\n')
    assert len(list(read_sentences(path))) == 1

    packed = tmp_path / "x.jsonl.xz"
    packed.write_bytes(lzma.compress(path.read_bytes() * 99)[:-9])
    with pytest.raises(ValueError, match="EL103"):
        list(read_sentences(packed))


def test_tokens_of_several_words_are_cut(tmp_path):
    line = {"tokens": ["in", "New_York", "_"], "instances": [[1, "new_york", "NNP", ["k"]]]}
    srsly.write_jsonl(tmp_path / "x.jsonl", [line])

    (sentence,) = read_sentences(tmp_path / "x.jsonl")

    assert sentence.words == ["in", "New", "York", "_"]
    assert sentence.instances == [Instance(1, 3, "new_york", "n", ("k",))]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(0, 99))
def test_the_nearest_mean_is_chosen(senses, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((len(senses), 2, 5))
    sums = Sums(2, 5)
    for sense, layers in zip(senses, vectors):
        sums.add(str(sense), layers)
    query = rng.standard_normal(5)
    keys = [str(sense) for sense in range(4)]
    cosines = {}
    for sense in set(senses):
        mean = vectors[np.array(senses) == sense, 1].mean(axis=0)
        cosines[str(sense)] = mean @ query / np.linalg.norm(mean) / np.linalg.norm(query)

    chosen = sums.make(1, prior=0.0).choose(query, keys)

    assert cosines[chosen] == pytest.approx(max(cosines.values()), abs=2e-3)


def test_senses_never_seen_fall_back_to_the_first():
    empty = Centroids(0, 0.0, np.zeros((0, 2), "float16"), [])

    assert empty.choose(np.ones(2), ["first", "second"]) == "first"


def test_a_large_prior_chooses_what_is_frequent():
    sums = Sums(1, 2)
    for sense, vector, n in (("rare", [1.0, 0.0], 1), ("frequent", [0.0, 1.0], 9)):
        for _ in range(n):
            sums.add(sense, np.array([vector]))

    near_rare = np.array([1.0, 0.1])
    assert sums.make(0, 0.0).choose(near_rare, ["rare", "frequent"]) == "rare"
    assert sums.make(0, 9.0).choose(near_rare, ["rare", "frequent"]) == "frequent"


def test_training_learns_what_contexts_tell(embedder, inventory, sense_corpus):
    test = list(read_sentences(sense_corpus))[:6]

    centroids, report = train_senses(embedder, inventory, read_sentences(sense_corpus), test)

    assert report["tune"]["n_instances"] == 8 and report["test"]["n_instances"] == 12
    # Half of the banks are no rivers.
    assert report["test"]["first"] == pytest.approx(0.75)
    # The word layer sees no context; the others do.
    assert report["test"]["layers"]["0"] == pytest.approx(0.75)
    assert report["test"]["layers"]["1"] == report["test"]["chosen"] == 1.0
    assert report["test"]["forms"] == 1.0
    assert report["n_senses"] == len(centroids.counts) == len(centroids.rows)
    assert centroids.counts[centroids.rows[RIVER]] == 20
    assert centroids.counts[centroids.rows[no_sense_of("in")]] == 40


def test_senses_of_another_version_are_passed_over(embedder, inventory, sense_corpus):
    def train(change):
        lines = make_lines()
        for line in lines:
            change(line["instances"][1])
        srsly.write_jsonl(sense_corpus, lines)
        return train_senses(embedder, inventory, read_sentences(sense_corpus))

    without, _ = train(lambda instance: instance.__setitem__(3, []))
    unknown, report = train(lambda instance: instance.__setitem__(3, ["green%9:99:99::"]))

    assert unknown.rows == without.rows and unknown.counts == without.counts
    assert no_sense_of("green") not in unknown.rows
    assert report["tune"]["n_instances"] == 4


@pytest.fixture
def trained(embedder, inventory, sense_corpus, tmp_path):
    """A pipeline as `train-senses` writes it."""
    write_native(embedder.bilm, tmp_path / "weights")
    nlp = make_nlp(store_layers=True)
    nlp.get_pipe("elmo").load(tmp_path / "weights")
    centroids, _ = train_senses(embedder, inventory, read_sentences(sense_corpus))
    nlp.add_pipe("elmo_senses").model = SenseModel(inventory, centroids)
    return nlp


TEXT = "the river bank in green . my money banks in green ."


def read(doc):
    return [(token._.sense, token._.sense_gloss) for token in doc]


def test_the_component_tells_senses_apart(trained):
    river, money = trained.pipe(["the river bank in green .", "my money bank in green ."])

    assert river[2]._.sense == RIVER
    assert money[2]._.sense == MONEY and money[2]._.sense_gloss == "a place for money"
    assert river[4]._.sense == "green%3:00:00::"
    # A word of the inventory that has no sense here, and one that is not in it.
    assert money[3]._.sense is None and money[0]._.sense is None
    assert trained("banks")[0]._.sense in (RIVER, MONEY, TRADE)


def test_annotation_of_others_is_used(trained):
    doc = Doc(trained.vocab, words=["money", "bank"], pos=["X", "VERB"], lemmas=["money", "bank"])

    assert [token._.sense for token in trained(doc)] == [None, TRADE]


def test_given_a_part_of_speech_unseen_senses_are_possible(inventory):
    sums = Sums(1, 2)
    sums.add(no_sense_of("mouse"), np.ones((1, 2)))
    model = SenseModel(inventory, sums.make(0, 0.0))

    assert model.choose("mouse", np.ones((1, 2)), pos="n") == "mouse%1:00:00::"
    assert model.choose("mouse", np.ones((1, 2))) == ""
    assert model.choose("mouse", np.ones((1, 2)), pos="-") == ""


def test_files_with_a_hash_of_the_bilm_still_load(inventory):
    sums = Sums(1, 2)
    sums.add(RIVER, np.ones((1, 2)))
    model = SenseModel(inventory, sums.make(0, 0.0))
    parts = srsly.msgpack_loads(model.to_bytes())

    older = SenseModel.from_bytes(srsly.msgpack_dumps([*parts, "hash"]))

    assert len(parts) == 2
    assert older.to_bytes() == model.to_bytes()


def test_what_is_missing_is_said(trained):
    nlp = make_nlp()
    nlp.add_pipe("elmo_senses")
    with pytest.raises(ValueError, match="EL059.*elmo_senses"):
        nlp(TEXT)
    with pytest.raises(ValueError, match="EL059"):
        nlp.initialize()
    pipe = trained.get_pipe("elmo_senses")
    with pytest.raises(ValueError, match="EL051"):
        pipe(Doc(trained.vocab, words=["a"]))
    with pytest.raises(ValueError, match="EL052"):
        pipe(make_nlp()("a"))
