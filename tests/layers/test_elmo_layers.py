import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import Adam

from spacy_elmo.layers import torch_shim
from spacy_elmo.layers.elmo_layers import get_embedder

from ..support.helpers import TEXTS, assert_close, make_nlp
from ..support.toy_tasks import make_task


def make(**model):
    nlp = make_nlp(**model)
    layers = nlp.get_pipe("elmo").model.layers[0]
    return nlp, layers, [nlp.make_doc(text) for text in TEXTS]


def test_layers_are_side_by_side_and_equal_embed():
    _, layers, docs = make()

    Ys = layers.predict(docs)

    assert [Y.shape for Y in Ys] == [(len(doc), 24) for doc in docs]
    words = [[token.text for token in doc if not token.is_space] for doc in docs]
    for Y, doc, array in zip(Ys, docs, get_embedder(layers).embed(words)):
        is_word = [not token.is_space for token in doc]
        rows = Y.reshape(len(doc), 3, 8)
        assert_close([rows[is_word].transpose(1, 0, 2)], [array])


def test_whitespace_tokens_are_no_input_and_get_zeros():
    nlp, layers, _ = make()
    with_space = Doc(nlp.vocab, words=["\n", "a", "  ", "b", "\t"])
    without = Doc(nlp.vocab, words=["a", "b"])

    spaced, plain = layers.predict([with_space, without])

    assert (spaced[[0, 2, 4]] == 0).all()
    assert_close([spaced[[1, 3]]], [plain])


@pytest.mark.parametrize("words", [[[]], [[" "]], [[], [" ", "\n"]], []], ids=str)
def test_nothing_to_read_gives_zeros(words):
    nlp, layers, _ = make(frozen=False)
    docs = [Doc(nlp.vocab, words=w) for w in words]

    Ys, backprop = layers.begin_update(docs)

    assert [Y.shape for Y in Ys] == [(len(w), 24) for w in words]
    assert all((Y == 0).all() for Y in Ys)
    assert backprop(Ys) == []


def test_frozen_layers_build_no_graph_and_get_no_gradient():
    _, layers, docs = make(frozen=True)

    Ys, backprop = layers.begin_update(docs)

    assert backprop(Ys) == []
    assert all(weight.grad is None for weight in get_embedder(layers).parameters())


@pytest.mark.parametrize("batch_tokens", [7, 1000])
def test_gradients_equal_finite_differences(batch_tokens):
    """Through the whole Thinc layer, docs cut into several batches and windows."""
    windows = {"@misc": "spacy-elmo.window_spans.v1", "window": 5}
    _, layers, docs = make(
        # Without kinks: no ReLU.
        frozen=False,
        get_spans=windows,
        batch_tokens=batch_tokens,
        activation="tanh",
        n_highway=0,
    )
    bilm = get_embedder(layers).bilm.double()
    rng = np.random.default_rng(0)

    def loss():
        return sum(float((Y * dY).sum()) for Y, dY in zip(layers.predict(docs), dYs))

    Ys, backprop = layers.begin_update(docs)
    dYs = [rng.standard_normal(Y.shape).astype("float32") for Y in Ys]
    backprop(dYs)

    for name, weight in bilm.named_parameters():
        flat, grad = weight.data.view(-1), weight.grad.view(-1)
        i = int(grad.abs().argmax())
        eps = 1e-3
        values = []
        for step in (eps, -eps):
            flat[i] += step
            values.append(loss())
            flat[i] -= step
        expected = (values[0] - values[1]) / (2 * eps)
        assert float(grad[i]) == pytest.approx(expected, rel=0.02, abs=5e-3), name


def test_bytes_of_another_shape_are_refused():
    _, layers, docs = make()
    _, other, _ = make(cell_width=7)
    expected = other.predict(docs)

    with pytest.raises(ValueError, match="EL021.*the saved pipeline"):
        other.from_bytes(layers.to_bytes())
    assert_close(other.predict(docs), expected, atol=0)


@pytest.mark.gpu
def test_arrays_stay_on_the_gpu_and_saved_there_load_on_the_cpu():
    from thinc.api import prefer_gpu, require_cpu

    _, expected_layers, docs = make()
    expected = expected_layers.predict(docs)
    assert prefer_gpu()
    try:
        _, layers, docs = make()
        Ys = layers.predict(docs)
        assert all(isinstance(Y, layers.ops.xp.ndarray) for Y in Ys)
        assert layers.ops.xp is not np
        assert_close([Y.get() for Y in Ys], expected)
        data = layers.to_bytes()
    finally:
        require_cpu()
    _, other, docs = make(seed=1)
    assert_close(other.from_bytes(data).predict(docs), expected)


def test_the_optimizer_knows_copies_apart():
    _, layers, docs = make(frozen=False)

    def train(optimizers):
        """Predictions with the averages of two copies, pulled into opposite directions."""
        copies, found = [layers.copy(), layers.copy()], []
        for _ in range(3):
            for sign, model, optimizer in zip((-1, 1), copies, optimizers):
                Ys, backprop = model.begin_update(docs)
                backprop([Y * 0 + sign for Y in Ys])
                model.finish_update(optimizer)
        for model, optimizer in zip(copies, optimizers):
            with model.use_params(optimizer.averages):
                found += model.predict(docs)
        return found

    both = Adam(0.1)
    assert_close(train([both, both]), train([Adam(0.1), Adam(0.1)]))


def test_a_mac_with_a_gpu_computes_on_its_processor(monkeypatch, tmp_path):
    """There `spacy.prefer_gpu()` has Thinc say "mps"; here torch has no such device."""
    monkeypatch.setattr(torch_shim, "get_torch_default_device", lambda: torch.device("mps"))

    nlp = make_task("elmo_qa")
    expected = nlp(TEXTS[0]).tensor
    nlp.to_disk(tmp_path)
    read = spacy.load(tmp_path)

    for pipeline in (nlp, read):
        assert get_embedder(pipeline.get_pipe("elmo").model).bilm.device.type == "cpu"
        (shim,) = pipeline.get_pipe("elmo_qa").model.layers[1].shims
        assert shim.device.type == "cpu"
    assert_close(read(TEXTS[0]).tensor, expected)
