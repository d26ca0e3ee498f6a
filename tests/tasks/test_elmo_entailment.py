"""The component "elmo_entailment" and its network."""

import numpy as np
import pytest
import spacy
import torch
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example

from spacy_elmo.tasks.entailment.elmo_entailment import score_entailment
from spacy_elmo.tasks.entailment.esim import ESIM

from ..support.toy_tasks import HASHED, encode_skip, make_examples, make_gold, make_task


@pytest.fixture(scope="module")
def nlp():
    return make_task("elmo_entailment", n_updates=40)


@pytest.fixture
def pipe(nlp):
    return nlp.get_pipe("elmo_entailment")


def test_pairs_get_probabilities(nlp, pipe):
    doc = nlp(pipe.make_pair(nlp, "I like ham", "eggs"))

    assert list(doc.cats) == ["yes", "no"] == list(pipe.labels)
    assert sum(doc.cats.values()) == pytest.approx(1)
    assert doc._.entailment == max(doc.cats, key=doc.cats.get)
    assert pipe.predict_pair(nlp, "I like ham", "eggs") == pytest.approx(doc.cats)
    pairs = [("I like ham", "eggs"), ("ham", "green")]
    found = list(pipe.predict_pairs(nlp, pairs, batch_size=1))
    assert found[0] == pytest.approx(doc.cats, abs=1e-5) and len(found) == 2


@Language.component("set_cats")
def set_cats(doc):
    doc.cats.update(yes=0.25, other=0.75)
    return doc


@pytest.mark.parametrize("first", [True, None])
def test_labels_shared_with_another_component_are_kept_separate(first):
    nlp = make_task("elmo_entailment", n_updates=5)
    pipe = nlp.get_pipe("elmo_entailment")
    alone = pipe.predict_pair(nlp, "I like ham", "eggs")
    nlp.add_pipe("set_cats", first=first)

    assert pipe.predict_pair(nlp, "I like ham", "eggs") == pytest.approx(alone)
    doc = nlp(pipe.make_pair(nlp, "I like ham", "eggs"))
    assert doc._.entailment == max(alone, key=alone.get)
    (stored,) = DocBin(docs=[doc]).get_docs(nlp.vocab)
    assert stored.spans["hypothesis"].attrs["elmo_entailment"] == pytest.approx(alone)
    name = "elmo_entailment"
    with nlp.select_pipes(disable=name), pytest.raises(ValueError, match=f"EL227.*'{name}'"):
        pipe.predict_pair(nlp, "a", "b")


@pytest.mark.parametrize("nO, problem", [(1, "EL198.*'no'"), (3, "EL198.*nO = 3.*need 2")])
def test_a_wrong_number_of_outputs_is_an_error(nO, problem):
    nlp = spacy.blank("en")
    add(nlp, nO=nO)
    examples = make_examples(nlp, make_gold(nlp, "elmo_entailment"))
    with pytest.raises(ValueError, match=problem):
        nlp.initialize(lambda: examples)


def test_labels_are_collected_or_given(nlp):
    gold = make_gold(nlp, "elmo_entailment")
    assert nlp.get_pipe("elmo_entailment").label_data == ["yes", "no"]

    other = spacy.blank("en")
    pipe = add(other)
    pipe.initialize(lambda: make_examples(other, gold), labels=["no", "yes", "perhaps"])
    assert pipe.labels == ("no", "yes", "perhaps")
    assert list(pipe.predict_pair(other, "a", "b")) == ["no", "yes", "perhaps"]


def add(nlp, **settings):
    name = "spacy-elmo.EntailmentESIM.v2"
    config = {"model": {"@architectures": name, "tok2vec": HASHED, **settings}}
    return nlp.add_pipe("elmo_entailment", config=config)


def test_training_data_without_labels_is_an_error():
    nlp = spacy.blank("en")
    pipe = add(nlp)
    with pytest.raises(ValueError, match="EL194.*labels: none; expected at least 2.*convert-data"):
        pipe.initialize(lambda: make_examples(nlp, [nlp.make_doc("a")]))


def test_unknown_labels_are_errors_in_training_and_mistakes_in_scores(nlp):
    (example,) = make_examples(nlp, make_gold(nlp, "elmo_entailment", 1))
    example.reference.cats = {"perhaps": 1.0}
    with pytest.raises(ValueError, match="EL198.* yes, no, .*'perhaps'"):
        nlp.update([example])

    scores = nlp.evaluate([example])
    assert scores["entailment_acc"] == 0
    assert scores["entailment_f_per_type"]["perhaps"]["f"] == 0


@pytest.mark.parametrize("cats", [{"yes": 1.0, "no": 1.0}, {"yes": 0.4, "no": 0.45}])
def test_gold_without_exactly_one_label_is_an_error(nlp, cats):
    (example,) = make_examples(nlp, make_gold(nlp, "elmo_entailment", 1))
    example.reference.cats = cats
    for use in (nlp.update, nlp.evaluate):
        with pytest.raises(ValueError, match="EL318.*'yes': .*'no'"):
            use([example])
    example.reference.cats = {"yes": 0.0, "no": 0.0}
    assert nlp.evaluate([example])["entailment_acc"] is None


@pytest.mark.parametrize("are_given", [True, False])
def test_a_textcat_learns_from_the_same_docs_if_both_know_their_labels(are_given):
    nlp = spacy.blank("en")
    pipe = add(nlp)
    nlp.add_pipe("textcat_multilabel")
    gold = make_gold(nlp, "elmo_entailment", 6)
    for i, doc in enumerate(gold):
        doc.cats = {**doc.cats, "positive": float(i % 2), "negative": float(i % 2 == 0)}
    examples = make_examples(nlp, gold)
    labels = {"elmo_entailment": ["yes", "no"], "textcat_multilabel": ["positive", "negative"]}
    if not are_given:
        nlp.initialize(lambda: examples)
        with pytest.raises(ValueError, match="EL318.*labels of each"):
            nlp.update(examples)
        return
    nlp.config["initialize"]["components"] = {k: {"labels": v} for k, v in labels.items()}
    nlp.initialize(lambda: examples)
    assert nlp.update(examples)["elmo_entailment"] > 0
    assert pipe.labels == ("yes", "no")
    assert set(nlp(examples[0].predicted).cats) == {"yes", "no", "positive", "negative"}


def test_gold_without_pairs_to_predict_is_an_error(nlp):
    (gold,) = make_gold(nlp, "elmo_entailment", 1)
    example = Example(nlp.make_doc(gold.text), gold)
    with pytest.raises(ValueError, match="EL199.*SpanCorpus.*premise"):
        nlp.update([example])


def test_scores_count_labels(nlp):
    examples = make_examples(nlp, make_gold(nlp, "elmo_entailment", 3))
    for eg, gold, said in zip(examples, ("a", "a", "b"), ("a", "b", "b")):
        eg.reference.cats = {"a": float(gold == "a"), "b": float(gold == "b")}
        eg.predicted._.entailment = said
    scores = score_entailment(examples)

    assert scores["entailment_acc"] == pytest.approx(2 / 3)
    assert scores["entailment_macro_f"] == pytest.approx(2 / 3)
    assert scores["entailment_f_per_type"]["a"] == {"p": 1, "r": 0.5, "f": pytest.approx(2 / 3)}


@pytest.mark.parametrize("word_match", [True, False])
def test_gradients_are_those_of_finite_differences(word_match):
    """From the loss to the vectors of the tokens."""
    torch.manual_seed(0)
    module = ESIM(3, 1, width=4, word_match=word_match).double()
    X = torch.randn(9, 3, dtype=torch.double, requires_grad=True)
    matches = [i % 2 == 0 for i in range(9)]
    assert torch.autograd.gradcheck(lambda X: module(X, [2, 0, 3, 4], matches), X)


def oracle(module, a, b, matches):
    """ESIM of one pair, without padding."""

    def encode(layer, X):
        return layer.layers[0](X)[0]

    known = [torch.empty(len(X), 0) for X in (a, b)]
    if module.match is not None:
        known = [module.match.weight[own] for own in matches]
        a, b = (torch.cat([M, X], 1) for M, X in zip(known, (a, b)))
    a, b = encode_skip(module.encode, a), encode_skip(module.encode, b)
    scores = a @ b.T
    others = torch.softmax(scores, 1) @ b, torch.softmax(scores.T, 1) @ a
    pooled = []
    for X, other, M in zip((a, b), others, known):
        joined = torch.cat([X, other, X - other, X * other, M], 1)
        Y = encode(module.compose, torch.relu(module.project(joined)))
        pooled += [Y.mean(0), Y.max(0).values]
    return torch.tanh(module.output(torch.cat(pooled)))


@pytest.mark.parametrize("skip_width", [0, 2])
@pytest.mark.parametrize("word_match", [True, False])
def test_the_network_is_that_of_the_paper(word_match, skip_width):
    torch.manual_seed(0)
    module = ESIM(5, skip_width, width=6, word_match=word_match)
    pairs = [(2, 4), (3, 1), (1, 7)]
    firsts, seconds = ([torch.randn(p[i], 5) for p in pairs] for i in (0, 1))
    lengths = [len(X) for X in [*firsts, *seconds]]
    groups = [[[1, 0], [0, 0, 0], [1]], [[0, 1, 1, 0], [0], [1, 0, 0, 0, 1, 0, 1]]]
    matches = [bool(match) for group in groups for own in group for match in own]
    with torch.no_grad():
        together = module(torch.cat([*firsts, *seconds]), lengths, matches)
        expected = torch.stack(
            [oracle(module, *each) for each in zip(firsts, seconds, zip(*groups))]
        )

    np.testing.assert_allclose(together, expected, atol=1e-6)
