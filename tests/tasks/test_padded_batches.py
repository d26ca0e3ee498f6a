"""What the networks of the tasks read at a time."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.tasks.entailment import esim
from spacy_elmo.tasks.sentiment import bcn
from spacy_elmo.tasks.shared import attention, padded_batches
from spacy_elmo.tasks.shared.attention import attend, pad
from spacy_elmo.tasks.shared.padded_batches import plan_padded

from ..support.toy_tasks import make_examples, make_gold, make_task

WORDS = ["green", "ham", "and", "eggs", "with", "Sam"]


@given(st.lists(st.integers(0, 40)), st.integers(1, 200))
def test_groups_hold_all_and_are_small(lengths, budget):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(padded_batches, "MOST_PADDED", budget)
        groups = list(plan_padded(lengths))
    tokens = [i for i, length in enumerate(lengths) if length]
    assert sorted(i for group in groups for i in group) == tokens
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[i] for i in group) <= budget
    if len(tokens) * max(lengths, default=0) <= budget:
        assert groups == [tokens] * bool(tokens)
    # Never one by one what fits together.
    for group, other in pairwise(groups):
        assert (len(group) + 1) * lengths[other[0]] > budget


def make_docs(nlp, component):
    texts = [" ".join((WORDS * 9)[:n]) for n in (3, 50, 0, 1, 20, 7)]
    if component == "textcat":
        return [nlp.make_doc(text) for text in texts]
    pipe = nlp.get_pipe(component)
    return [pipe.make_pair(nlp, text, "green ham") for text in texts]


@pytest.mark.parametrize("component, module", [("textcat", bcn), ("elmo_entailment", esim)])
def test_long_texts_beside_short_ones_are_read_in_parts(component, module, monkeypatch):
    nlp = make_task(component, with_elmo=False)
    model = nlp.get_pipe(component).model
    docs, gold = make_docs(nlp, component), make_gold(nlp, component, 6)
    dY = np.random.default_rng(0).normal(size=(len(docs), 2)).astype("f")
    sizes, run_rows = [], module.run_rows

    def watched(model, Xs, *args, **kwargs):
        sizes.append(len(Xs) * max(map(len, Xs)))
        return run_rows(model, Xs, *args, **kwargs)

    def learn():
        Y, backprop = model(docs, True)
        backprop(dY)
        tok2vec = model.get_ref("tok2vec")
        grads = [node.get_grad(name) for node in tok2vec.walk() for name in node.param_names]
        model.finish_update(lambda key, weights, gradient: (weights, gradient * 0))
        return model.predict(docs), Y, grads

    expected = learn()
    monkeypatch.setattr(module, "run_rows", watched)
    monkeypatch.setattr(padded_batches, "MOST_PADDED", 60)
    found = learn()

    # Of training and of prediction; a pair has two texts.
    assert len(sizes) == 2 * 3 and max(sizes) <= 100
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-6)
    for gradient, own in zip(found[2], expected[2]):
        np.testing.assert_allclose(gradient, own, atol=1e-6)
    losses = nlp.update(make_examples(nlp, gold), sgd=False)
    assert losses[component] > 0


def test_attention_of_long_texts_is_computed_in_slices(monkeypatch):
    torch.manual_seed(0)
    (A, mask_a), (B, mask_b) = (
        pad(torch.randn(sum(lengths), 3), lengths) for lengths in ([5, 0, 9], [2, 4, 7])
    )
    A.requires_grad_()
    expected = attend(A, B, mask_a, mask_b)
    (gradient,) = torch.autograd.grad(expected.square().sum(), A)
    sizes, softmax = [], attention.masked_softmax

    def watched(scores, mask):
        sizes.append(scores.numel())
        return softmax(scores, mask)

    monkeypatch.setattr(attention, "masked_softmax", watched)
    for most, n_slices in ((45, 5), (1, 9)):
        monkeypatch.setattr(attention, "_MOST_SCORES", most)
        sizes.clear()
        found = attend(A, B, mask_a, mask_b)
        assert len(sizes) == n_slices and max(sizes) <= max(most, 3 * 7)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found.square().sum(), A)[0], gradient)
