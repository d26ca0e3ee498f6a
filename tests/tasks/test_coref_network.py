"""The network of "elmo_coref": what it computes, how it learns, what it takes."""

import itertools

import numpy as np
import pytest
import spacy
import torch
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_elmo.tasks.coref.elmo_coref import compute_loss
from spacy_elmo.tasks.coref.network import (
    AntecedentScorer,
    Candidates,
    CorefScores,
    RankerShape,
    SpanRanker,
    SpanScorer,
    build_coref_span_ranker_v1,
)
from spacy_elmo.tasks.coref.spans import (
    MentionFacts,
    choose_spans,
    compare_words,
    cut,
    find_facts,
    find_words,
)

from ..support.helpers import assert_gradient
from ..support.toy_tasks import HASHED

SHAPE = RankerShape(width=6, depth=1, max_span=4, share=0.3, n_antecedents=5, word_match=True)
VOCAB = spacy.blank("en").vocab


def make_doc(n=9, n_words=5, **annotation):
    return Doc(VOCAB, words=[f"w{i % n_words}" for i in range(n)], **annotation)


# ---- facts of docs


def test_mentions_end_where_sentences_do():
    facts = find_facts(make_doc(6, sent_starts=[1, 0, 0, 1, 0, 0]), 1, 6, 4)
    assert facts.n_widths.tolist() == [2, 1, 3, 2, 1]
    assert find_facts(make_doc(6), 1, 5, 3).n_widths.tolist() == [3, 3, 2, 1]


def test_roots_are_those_of_spacy():
    heads = [1, 4, 3, 1, 4, 4, 5, 8, 6]
    doc = make_doc(9, heads=heads, deps=["dep"] * 9)
    facts = find_facts(doc, 0, 9, 5)
    for start in range(9):
        for w in range(min(5, 9 - start)):
            assert facts.roots[start, w] == doc[start : start + w + 1].root.i
    assert find_facts(make_doc(), 0, 9, 5).roots is None


@pytest.mark.parametrize("starts", [None, [1, 0, 0, 0, 0] * 20, [1] + [0] * 99])
def test_long_docs_are_cut(starts):
    doc = make_doc(100, sent_starts=starts)
    np.random.seed(0)
    parts = {cut(doc, 4, 16) for _ in range(200)}
    assert len(parts) > 10
    for start, end in parts:
        assert 0 <= start < end <= 100 and end - start <= 16
        assert starts is None or starts[1:5] != [0] * 4 or sum(starts) == 1 or start % 5 == 0
    # The end of the doc is read, too.
    assert max(end for _, end in parts) == 100
    assert cut(doc, 20, 100) == (0, 100)


# ---- spans


def oracle_span(module, X, start, end, root=None):
    """A span as Lee et al. 2017 have it, by itself."""
    starts, ends, heads = module.parts(X).chunk(3, dim=1)
    logits = 5 * torch.tanh(module.attention(X[start:end])).squeeze(1)
    if root is not None:
        logits[root - start] += 5 * torch.tanh(module.root_bonus)[0]
    head = torch.softmax(logits, 0) @ heads[start:end]
    return torch.relu(starts[start] + ends[end - 1] + head + module.lengths.weight[end - start - 1])


@pytest.mark.parametrize("bonus", [None, 0.0, 0.3])
def test_spans_are_those_of_the_paper(bonus):
    torch.manual_seed(0)
    module, X = SpanScorer(3, 5, 4), torch.randn(7, 3)
    roots = None
    if bonus is not None:
        module.root_bonus.data[:] = bonus
        roots = torch.tensor([[min(i + w, 6, i + 1) for w in range(4)] for i in range(7)])
    with torch.no_grad():
        grid = module(X, roots, 0.0)
        for start, end in itertools.combinations(range(8), 2):
            if end - start > 4:
                continue
            root = None if roots is None else int(roots[start, end - start - 1])
            span = oracle_span(module, X, start, end, root).unsqueeze(0)
            found = module.represent(X, torch.tensor([start]), torch.tensor([end - 1]), roots)
            np.testing.assert_allclose(found, span, atol=1e-5)
            expected = module.output(torch.relu(module.hidden(span)))[0]
            assert float(grid[start, end - start - 1]) == pytest.approx(float(expected), abs=1e-5)


def test_the_best_spans_that_do_not_cross_are_kept():
    scores = np.full((5, 3), -9.0)
    scores[0, 1], scores[1, 1], scores[1, 0], scores[0, 2] = 4, 3, 2, 1
    scores[4, 1:] = scores[3, 2] = -np.inf
    starts, ends = choose_spans(scores, 0.6)
    # (1, 3) crosses (0, 2).
    assert [*zip(starts, ends)] == [(0, 2), (0, 3), (1, 2)]
    # A doc of one token has one span.
    assert [a.tolist() for a in choose_spans(np.array([[1.0]]), 0.1)] == [[0], [1]]


# ---- antecedents


def make_words(mentions):
    """mentions: the words of each, as numbers."""
    flat = np.array([word for own in mentions for word in own] or [0])
    ends = np.cumsum([len(own) for own in mentions])
    starts = ends - [len(own) for own in mentions]
    every = np.ones(len(flat), dtype=bool)
    facts = MentionFacts(0, flat, flat, every, ~every, None)
    return find_words(facts, starts, ends)


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=9), st.data())
def test_shared_words_are_those_of_sets(mentions, data):
    start, end = sorted(data.draw(st.integers(0, len(mentions))) for _ in range(2))
    found = compare_words(make_words(mentions), start, end)
    for row, own in zip(found, mentions[start:end], strict=True):
        for kind, other in zip(row, mentions, strict=True):
            a, b = set(own), set(other)
            expected = 0 if not a & b else 3 if a == b else 2 if a <= b or b <= a else 1
            assert kind == expected


@pytest.mark.parametrize("word_match", [True, False])
@torch.no_grad()
def test_the_best_antecedents_are_compared(word_match):
    torch.manual_seed(0)
    module, words = AntecedentScorer(4, 3, word_match=word_match), None
    module.alike_bonus.data[:] = 2.0
    X, scores, texts = torch.randn(8, 4), torch.randn(8), torch.arange(8) % 3
    if word_match:
        module.shared_bonus.data[:] = torch.tensor([0.0, 0.3, -0.2, 0.5])
        words = make_words([[1], [1, 2], [], [2, 3], [2, 1], [3], [4], [1]])
    links, chosen = module(X, scores, texts, 0.0, words)
    coarse = module.coarse(X) @ X.T + 2 * (texts.unsqueeze(1) == texts) + scores
    if words is not None:
        kinds = compare_words(words, 0, 8)
        coarse += module.shared_bonus[kinds]
    for i in range(8):
        best = sorted(range(i), key=lambda j: -coarse[i, j])[:3]
        assert chosen[i].tolist() == best + [-1] * (3 - len(best))
        assert links[i, 0] == 0 and torch.isinf(links[i, 1 + len(best) :]).all()
        for column, j in enumerate(best, start=1):
            # 1, 2, 3, 4, 5 to 7.
            bucket = min(i - j, 5) - 1
            hidden = module.mention(X[i]) + module.antecedent(X[j]) + module.product(X[i] * X[j])
            hidden = hidden + module.distances.weight[bucket]
            hidden = hidden + module.alike.weight[int(texts[i] == texts[j])]
            if words is not None:
                hidden = hidden + module.shared.weight[kinds[i, j]]
            expected = coarse[i, j] + scores[i] + module.output(torch.relu(hidden))[0]
            assert float(links[i, column]) == pytest.approx(float(expected), abs=1e-5)


# ---- the whole network


@pytest.mark.parametrize("n", [1, 2, 5])
def test_gradients_are_those_of_finite_differences(n):
    torch.manual_seed(0)
    module = SpanRanker(3, SHAPE).double()
    X = torch.randn(n + 4, 3, dtype=torch.double, requires_grad=True)
    facts = [find_facts(make_doc(k), 0, k, 4) for k in (n, 4)]

    def run(X):
        return module(X, [n, 4], facts)[0].clamp(min=-99)

    assert torch.autograd.gradcheck(run, X)


def test_the_loss_has_its_gradient():
    rng = np.random.default_rng(0)
    mentions = rng.normal(size=(6, 3))
    mentions[4, 2] = mentions[5, 1:] = -np.inf
    links = rng.normal(size=(4, 3))
    links[0, 1:] = links[1, 2] = -np.inf
    candidates = Candidates(
        np.array([[0, 1], [1, 3], [3, 4], [4, 6]]), np.array([[-1, -1], [0, -1], [1, 0], [2, 0]])
    )
    links[:, 0] = 0.3
    # A mention that was not kept, one of another part, one that is too long.
    clusters = [[(10, 11), (11, 13), (14, 16), (12, 13)], [(13, 14), (1, 2)], [(10, 14)]]

    def run():
        return compute_loss(CorefScores(10, mentions, links, candidates), clusters, 0.7)

    arrays = [mentions, links]
    assert_gradient(lambda: run()[0], arrays, run()[1], eps=1e-4, atol=1e-4)


def test_training_reads_parts_and_prediction_whole_docs():
    tok2vec = spacy.registry.resolve({"x": HASHED})["x"]
    model = build_coref_span_ranker_v1(tok2vec, width=4, max_span=2, max_train_sentences=2)
    docs = [make_doc(200), Doc(VOCAB), make_doc(3)]
    model.initialize(X=docs)
    scores, backprop = model.begin_update(docs)
    assert [len(own.mentions) for own in scores] == [80, 0, 3]
    backprop([(np.ones_like(own.mentions), np.zeros_like(own.links)) for own in scores])
    (embedding,) = (node for node in model.walk() if node.has_grad("E"))
    assert embedding.get_grad("E").any()
    assert [len(own.mentions) for own in model.predict(docs)] == [200, 0, 3]
