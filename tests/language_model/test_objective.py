"""The language model: inputs and targets, gradients, perplexity."""

import math

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.language_model.evaluation import Scorer, measure
from spacy_elmo.language_model.objective import LanguageModel
from spacy_elmo.language_model.readings import make_lm_batch, make_stream_batches
from spacy_elmo.language_model.softmax import Softmax
from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, Vocabulary

from ..support.helpers import SHAPE

WORDS = ["a", "b", "c", "d"]
VOCABULARY = Vocabulary([*SPECIAL_WORDS, *WORDS])
SENTENCES = [["a", "b", "x"], ["c"], ["d", "d", "a", "b", "c"]]


def make_model():
    torch.manual_seed(0)
    config = BiLMConfig(**SHAPE)
    return LanguageModel(BiLM(config), Softmax(config.direction_width, len(VOCABULARY)))


def test_both_directions_read_and_predict_the_right_words():
    batch = make_lm_batch([["a", "b", "x"]], VOCABULARY)
    words = np.array(batch.words)

    assert words[batch.forward.inputs].tolist() == ["<S>", "a", "b", "x"]
    assert words[batch.backward.inputs].tolist() == ["</S>", "x", "b", "a"]
    ids = VOCABULARY.ids
    assert batch.forward.targets.tolist() == [ids[w] for w in ("a", "b", "<UNK>", "</S>")]
    assert batch.backward.targets.tolist() == [ids[w] for w in ("<UNK>", "b", "a", "<S>")]
    assert batch.n_targets == 4


def test_what_is_read_are_the_layers_of_the_embedder():
    model = make_model().eval()
    embedder = Embedder(model.bilm)

    with torch.no_grad():
        forward, backward = model.read(make_lm_batch([["a", "b", "x"]], VOCABULARY))[0]

    top = embedder.embed([["a", "b", "x"]])[0][-1]
    half = model.bilm.config.direction_width
    # Row 0 has read a boundary alone.
    np.testing.assert_allclose(forward[1:].numpy(), top[:, :half], atol=1e-6)
    np.testing.assert_allclose(backward[1:].numpy()[::-1], top[:, half:], atol=1e-6)


def test_the_loss_is_the_exact_perplexity_of_a_full_softmax():
    model = make_model().eval()
    batch = make_lm_batch(SENTENCES, VOCABULARY)

    result = measure(Scorer(model, VOCABULARY), SENTENCES, batch_tokens=100)

    assert result.n_targets == batch.n_targets == 12
    assert result.n_unknown == 1
    total = float(model(batch)[0].detach())
    assert result.forward + result.backward == pytest.approx(total, rel=1e-5)
    mean = math.sqrt(result.perplexities[0] * result.perplexities[1])
    assert result.perplexities[2] == pytest.approx(mean)


@pytest.mark.parametrize("stream", [False, True])
def test_perplexity_does_not_depend_on_the_passes(stream):
    model = make_model()
    scorer = Scorer(model, VOCABULARY)

    small, large = (measure(scorer, SENTENCES, stream=stream, batch_tokens=n) for n in (2, 1000))

    assert small.forward == pytest.approx(large.forward, rel=1e-6)
    assert small.backward == pytest.approx(large.backward, rel=1e-6)
    assert small.n_targets == large.n_targets


def test_a_smaller_vocabulary_gives_the_rest_to_the_unknown():
    model = make_model()
    restrict = Vocabulary([*SPECIAL_WORDS, "c", "a"])
    scorer = Scorer(model, VOCABULARY, restrict)
    hidden = torch.randn(6, model.bilm.config.direction_width)

    with torch.no_grad():
        full = model.softmax.log_probs(hidden).exp()
        scores = [scorer.score(hidden, torch.full((6,), i)).exp() for i in range(len(restrict))]

    ids = VOCABULARY.ids
    torch.testing.assert_close(scores[3], full[:, ids["c"]].double())
    unknown = full[:, ids["<UNK>"]] + full[:, ids["b"]] + full[:, ids["d"]]
    torch.testing.assert_close(scores[2], unknown.double())
    torch.testing.assert_close(sum(scores), torch.ones(6, dtype=torch.float64))


def test_streams_read_on_and_the_backward_direction_comes_from_the_end():
    rows = [[["a", "b"], ["c"]], [["d"], ["d", "a"]]]

    batches = list(make_stream_batches(rows, 2, 5, VOCABULARY))

    read = lambda r, b: np.array(b.words)[r.inputs].reshape(-1, 2)  # noqa: E731
    forward = np.concatenate([read(b.forward, b) for b in batches])
    backward = np.concatenate([read(b.backward, b) for b in batches])
    assert forward[:, 0].tolist() == ["<S>", "a", "b", "<S>", "c"]
    assert forward[:, 1].tolist() == ["<S>", "d", "<S>", "d", "a"]
    assert backward[:, 0].tolist() == ["</S>", "c", "</S>", "b", "a"]
    words = np.array(VOCABULARY.words)
    targets = np.concatenate([words[b.backward.targets].reshape(-1, 2) for b in batches])
    assert targets[:, 0].tolist() == ["c", "<S>", "b", "a", "<S>"]
    assert [b.n_targets for b in batches] == [4, 4, 2]
    skipped = list(make_stream_batches(rows, 2, 5, VOCABULARY, skip=1))
    assert [b.forward.inputs.tolist() for b in skipped] == [
        b.forward.inputs.tolist() for b in batches[1:]
    ]
