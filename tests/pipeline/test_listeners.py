"""Components that listen: linking, gradients, replacing, and every task a step."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import spacy
import torch
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import SGD, Adam

from spacy_elmo.layers.elmo_layers import get_embedder
from spacy_elmo.layers.elmo_tok2vec import build_static_vectors_v1
from spacy_elmo.pipeline.architectures import (
    build_elmo_listener_v2,
    build_elmo_tok2vec_v1,
    build_elmo_tok2vec_v2,
)

from ..support.helpers import SHAPE, TEXTS, add_elmo, assert_close, make_nlp, tell, vectors
from ..support.pipelines import add_vectors

ELMO = {
    "@architectures": "spacy-elmo.ElmoListener.v2",
    "upstream": "elmo",
    "width": SHAPE["width"],
    "depth": SHAPE["depth"],
}
STOCK = {
    "@architectures": "spacy.Tok2VecListener.v1",
    "width": SHAPE["width"],
    "upstream": "elmo",
}
ENCODE = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2",
    "width": 6,
    "depth": 1,
    "window_size": 1,
    "maxout_pieces": 2,
}
LSTM = {"@architectures": "spacy.TorchBiLSTMEncoder.v1", "width": 6, "depth": 1, "dropout": 0.0}
EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 6,
    "attrs": ["NORM", "SHAPE"],
    "rows": [50, 50],
    "include_static_vectors": False,
}
# Narrower than the word features, so that nobody takes one for the other.
STATIC = {"@architectures": "spacy-elmo.StaticVectors.v1", "width": 3}


def tok2vec(embed=EMBED, encode=ENCODE, input=ELMO, output=None, **more):
    block = {"@architectures": "spacy-elmo.ElmoTok2Vec.v2", "encode": encode}
    return {**block, "embed": embed, "input": input, "output": output, **more}


PLACES = {
    "input": tok2vec(),
    "output": tok2vec(input=None, output=ELMO),
    "both": tok2vec(output=ELMO),
    "input alone": tok2vec(embed=None),
    "no encoder": tok2vec(encode=None),
    "no encoder, both": tok2vec(encode=None, output=ELMO, word_dropout=0.5),
    "input of a bilstm": tok2vec(encode=LSTM),
    "stock listener": tok2vec(input=STOCK),
    "word dropout": tok2vec(word_dropout=0.5),
}
LISTENERS = {"own mix": ELMO, "shared mix": STOCK}
COMPONENTS = [
    "tagger", "morphologizer", "parser", "senter", "ner", "spancat", "textcat",
    "trainable_lemmatizer",
]  # fmt: skip

SENTENCES = [
    (["I", "like", "green", "eggs"], ["P", "V", "A", "N"]),
    (["Eat", "ham"], ["V", "N"]),
    (["you", "like", "ham", "."], ["P", "V", "N", "."]),
]


def make_examples(nlp):
    examples = []
    for words, tags in SENTENCES:
        n = len(words)
        gold = Doc(
            nlp.vocab,
            words=words,
            tags=tags,
            pos=["NOUN"] * n,
            morphs=["Number=Sing" if tag == "N" else "" for tag in tags],
            lemmas=[word.lower().removesuffix("s") for word in words],
            heads=[min(1, n - 1)] * n,
            deps=["ROOT" if i == 1 else "dep" for i in range(n)],
            sent_starts=[True] + [False] * (n - 1),
            ents=["B-FOOD" if tag == "N" else "O" for tag in tags],
        )
        gold.cats = {"pos": float("ham" in words), "neg": float("ham" not in words)}
        gold.spans["sc"] = list(gold.ents)
        examples.append(Example(Doc(nlp.vocab, words=words), gold))
    return examples


# spaCy leaves out labels that are rare, as all are in a toy corpus.
SETTINGS = {"parser": {"min_action_freq": 1}, "trainable_lemmatizer": {"min_tree_freq": 1}}


def add_task(nlp, component, block, name=None):
    """Add a component with a block as its tok2vec."""
    model = nlp.get_factory_meta(component).default_config["model"]
    config = {**SETTINGS.get(component, {}), "model": {**model, "tok2vec": block}}
    return nlp.add_pipe(component, name=name or component, config=config)


def make_tagger(block, **settings):
    """A pipeline with an initialized tagger on elmo, and examples for it."""
    nlp = make_nlp(**settings)
    add_task(nlp, "tagger", block)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    return nlp, examples


def train(nlp, n_steps=3, **kwargs):
    """Some steps as `spacy train` makes them."""
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    losses = {}
    for _ in range(n_steps):
        losses = {}
        nlp.update(examples, sgd=False, losses=losses, **kwargs)
        for _, pipe in nlp.pipeline:
            if hasattr(pipe, "finish_update") and pipe.is_trainable:
                pipe.finish_update(optimizer)
    return losses


def bilm_bytes(nlp, name="elmo"):
    state = dict(get_embedder(nlp.get_pipe(name).model).bilm.named_parameters())
    return {key: tensor.detach().numpy().tobytes() for key, tensor in state.items()}


def shared_mix(nlp, name="elmo"):
    return nlp.get_pipe(name).model.layers[1].get_param("W").copy()


def own_mixes(nlp, name):
    nodes = nlp.get_pipe(name).model.walk()
    return [node.get_param("W").copy() for node in nodes if node.name == "scalar_mix"]


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("kind", LISTENERS)
@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "not frozen"])
def test_every_task_trains_on_both_kinds(component, kind, frozen):
    nlp = make_nlp(frozen=frozen)
    add_task(nlp, component, LISTENERS[kind])
    before = bilm_bytes(nlp)

    losses = train(nlp)

    # A mix of a task's own sends nothing back to a biLM that stays as it is.
    assert (losses["elmo"] > 0) == (kind != "own mix" or not frozen)
    after = bilm_bytes(nlp)
    changed = {key for key in before if before[key] != after[key]}
    assert changed == (set() if frozen else set(before))
    if kind == "own mix":
        assert np.abs(own_mixes(nlp, component)[0]).max() > 0
        assert (shared_mix(nlp) == 0).all()
    else:
        assert np.abs(shared_mix(nlp)).max() > 0


@pytest.mark.parametrize("place", PLACES)
def test_elmo_trains_in_every_place(place):
    nlp = make_nlp()
    add_task(nlp, "tagger", PLACES[place])
    n_mixes = 2 if "both" in place else 1

    train(nlp)

    mixes = [shared_mix(nlp)] if place == "stock listener" else own_mixes(nlp, "tagger")
    assert len(mixes) == n_mixes
    assert all(np.abs(W).max() > 0 for W in mixes)
    assert nlp("I like green eggs")[3].tag_


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("output", ["mix", "all", "top"])
def test_a_task_learns_the_same_whether_the_bilm_learns_or_not(output, norm):
    """What is not computed for a frozen biLM is not missed."""
    gradients = []
    for frozen in (True, False):
        nlp = make_nlp(frozen=frozen)
        block = tok2vec(input={**ELMO, "output": output, "mix_layer_norm": norm})
        tagger = add_task(nlp, "tagger", block)
        examples = make_examples(nlp)
        spacy.util.fix_random_seed(0)
        nlp.initialize(lambda examples=examples: examples)
        nlp.update(examples, sgd=False)
        nodes = list(tagger.model.walk())
        found = {
            (i, name): node.get_grad(name).copy()
            for i, node in enumerate(nodes)
            for name in node.param_names
            if node.has_grad(name)
        }
        gradients.append(found)
    assert gradients[0].keys() == gradients[1].keys()
    assert any(grad.any() for grad in gradients[0].values())
    for place, grad in gradients[0].items():
        np.testing.assert_allclose(grad, gradients[1][place], rtol=1e-4, atol=1e-6)


def test_static_vectors_are_not_dropped():
    """They know words that were never trained on; the word features do not."""
    nlp = make_nlp()
    nlp.vocab.vectors = spacy.vectors.Vectors(shape=(4, 4))
    for i, word in enumerate(("eggs", "spam", "bacon")):
        nlp.vocab.set_vector(word, np.eye(4, dtype="float32")[i])
    block = tok2vec(encode=None, input=None, vectors=STATIC, word_dropout=0.5)
    tagger = add_task(nlp, "tagger", block)
    train(nlp)
    layer = tagger.model.get_ref("tok2vec")
    assert layer.get_dim("nO") == 6 + 3

    known, new, unknown = layer.predict([nlp.make_doc("eggs bacon cheese")])[0]

    assert known[:6].any() and known[6:].any()
    assert not new[:6].any() and new[6:].any()
    assert not unknown.any()


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["", "ham"]], ids=str)
def test_static_vectors_of_empty_docs(texts):
    nlp = make_nlp()
    add_vectors(nlp)
    layer = build_static_vectors_v1(width=3)
    layer.initialize(X=[nlp.make_doc("ham")])
    docs = [nlp.make_doc(text) for text in texts]

    Ys, backprop = layer.begin_update(docs)

    assert [Y.shape for Y in Ys] == [(len(doc), 3) for doc in docs]
    assert [Y.shape for Y in layer.predict(docs)] == [Y.shape for Y in Ys]
    backprop([np.ones_like(Y) for Y in Ys])
    assert layer.layers[0].has_grad("W") == (len(docs) > 0 and len(docs[-1]) > 0)


@pytest.mark.parametrize(
    "block, width",
    [({}, 6 + 8), ({"output": ELMO}, 6 + 8 + 8), ({"embed": None}, 8), ({"word_dropout": 0.5}, 14)],
)
def test_without_an_encoder_all_stand_side_by_side(block, width):
    nlp = make_nlp()
    tagger = add_task(nlp, "tagger", tok2vec(encode=None, **block))
    train(nlp)
    layer = tagger.model.get_ref("tok2vec")
    doc = nlp("green eggs")

    assert layer.get_dim("nO") == width
    (row,) = layer.predict([doc])
    assert row.shape == (2, width)
    # ELMo as it is: no map between.
    mixes = [node for node in layer.walk() if node.name == "scalar_mix"]
    elmo = mixes[0].predict([doc._.elmo["elmo"]["layers"].reshape(2, -1)])[0]
    start = 0 if "embed" in block else 6
    np.testing.assert_allclose(row[:, start : start + 8], elmo, atol=1e-6)


def test_places_need_something_to_read():
    encode = spacy.registry.architectures.get("spacy.MaxoutWindowEncoder.v2")(
        width=6, window_size=1, maxout_pieces=2, depth=1
    )
    listener = build_elmo_listener_v2(width=8, depth=2)
    with pytest.raises(ValueError, match="EL005.*input. or .output"):
        build_elmo_tok2vec_v1(encode=encode)
    with pytest.raises(ValueError, match="EL005"):
        build_elmo_tok2vec_v2(encode=encode, output=listener)
    with pytest.raises(ValueError, match="EL005"):
        build_elmo_tok2vec_v2()
    with pytest.raises(ValueError, match="EL002"):
        build_elmo_listener_v2(upstream="*", width=8, depth=2)


@pytest.mark.parametrize("encode", [None, ENCODE], ids=["alone", "encoded"])
@pytest.mark.parametrize("with_vectors", [True, False])
def test_without_elmo_it_is_what_to_compare_with(encode, with_vectors):
    nlp = make_nlp()
    add_vectors(nlp)
    embed = {**EMBED, "include_static_vectors": with_vectors}
    add_task(nlp, "tagger", tok2vec(encode=encode, input=None, embed=embed))

    assert train(nlp)["tagger"] > 0
    layer = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    assert layer.get_dim("nO") == 6 and layer.predict([nlp("ham")])[0].shape == (1, 6)


@pytest.mark.parametrize(
    "block", [{"word_dropout": 1.0}, {"word_dropout": -0.1}, {"word_dropout": 0.5, "embed": None}]
)
def test_impossible_word_dropout_is_refused(block):
    with pytest.raises(ValueError, match=f"EL012.*word_dropout = {block['word_dropout']}"):
        spacy.registry.resolve({"tok2vec": tok2vec(**block)})


@pytest.mark.parametrize("kind", LISTENERS)
def test_sent_gradients_equal_finite_differences(kind):
    """From a listener's output back into the biLM, through the component."""
    nlp = make_nlp(frozen=False, activation="tanh")
    tagger = add_task(nlp, "tagger", LISTENERS[kind])
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    elmo = nlp.get_pipe("elmo")
    layer = tagger.model.get_ref("tok2vec")
    docs = [eg.predicted for eg in examples]
    rng = np.random.default_rng(0)
    elmo.update(examples)
    Ys, backprop = layer.begin_update(docs)
    dYs = [rng.standard_normal(Y.shape).astype("float32") for Y in Ys]
    backprop(dYs)
    elmo._backprop_sent()

    def loss():
        for doc in docs:
            elmo(doc)
        return sum(float((Y * dY).sum()) for Y, dY in zip(layer.predict(docs), dYs))

    for name, weight in get_embedder(elmo.model).bilm.named_parameters():
        flat, grad = weight.data.view(-1), weight.grad.view(-1)
        i = int(grad.abs().argmax())
        values = []
        for step in (2e-3, -2e-3):
            flat[i] += step
            get_embedder(elmo.model).set_ready()
            values.append(loss())
            flat[i] -= step
        expected = (values[0] - values[1]) / 4e-3
        assert float(grad[i]) == pytest.approx(expected, rel=0.05, abs=0.01), name


def test_gradients_do_not_depend_on_the_order_of_reports():
    """Within a component the last listener to be found may report first."""
    gradients = []
    for order in ((0, 1), (1, 0)):
        nlp = make_nlp(frozen=False)
        add_task(nlp, "tagger", ELMO)
        add_task(nlp, "morphologizer", STOCK)
        examples = make_examples(nlp)
        nlp.initialize(lambda examples=examples: examples)
        elmo = nlp.get_pipe("elmo")
        elmo.update(examples)
        listeners = [elmo.listeners[i] for i in order]
        for listener in listeners:
            Ys, backprop = listener([eg.predicted for eg in examples], True)
            backprop([np.ones_like(Y) for Y in Ys])
        elmo._backprop_sent()
        bilm = get_embedder(elmo.model).bilm
        gradients.append([weight.grad.clone() for weight in bilm.parameters()])

    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*gradients))
    assert all(gradient.abs().sum() > 0 for gradient in gradients[0])


def test_frozen_tasks_do_not_stop_the_others():
    """spaCy's own tok2vec learns nothing if the last of its listeners is frozen."""
    nlp = make_nlp(frozen=False)
    add_task(nlp, "tagger", STOCK)
    add_task(nlp, "morphologizer", STOCK)
    train(nlp)
    examples = make_examples(nlp)
    before = bilm_bytes(nlp)

    nlp.update(examples, sgd=False, exclude=["morphologizer"])
    nlp.get_pipe("elmo").finish_update(nlp.create_optimizer())

    assert bilm_bytes(nlp) != before


def test_hand_written_loops_train_one_batch_late():
    nlp = make_nlp(frozen=False)
    add_task(nlp, "tagger", ELMO)
    train(nlp)
    examples = make_examples(nlp)
    optimizer = SGD(0.1, L2=0.0)
    start = bilm_bytes(nlp)

    nlp.update(examples, sgd=optimizer)
    assert bilm_bytes(nlp) == start
    nlp.update(examples, sgd=optimizer)
    assert bilm_bytes(nlp) != start


COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda nlp: pickle.loads(pickle.dumps(nlp))}


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("kind", LISTENERS)
def test_copies_made_in_training_have_gradients_of_their_own(make_copy, kind):
    nlp = make_nlp(frozen=False)
    add_task(nlp, "tagger", LISTENERS[kind])
    train(nlp)
    examples = make_examples(nlp)
    nlp.update(examples, sgd=False)
    before = bilm_bytes(nlp)

    other = make_copy(nlp)
    optimizer = SGD(0.1, L2=0.0)
    for _ in range(2):
        other.update(examples, sgd=optimizer)

    # Each pipeline has one elmo, to which its listeners are linked.
    for pipeline in (nlp, other):
        elmo = pipeline.get_pipe("elmo")
        nodes = pipeline.get_pipe("tagger").model.walk()
        (listener,) = [node for node in nodes if isinstance(node, Tok2VecListener)]
        assert elmo.listeners == [listener]
        assert kind == "shared mix" or listener.upstream_layers is elmo.model.layers[0]
    assert bilm_bytes(other) != before
    weights = get_embedder(nlp.get_pipe("elmo").model).bilm.parameters()
    assert bilm_bytes(nlp) == before
    assert all(weight.grad is None or not weight.grad.any() for weight in weights)
    # The original still has its gradients.
    nlp.get_pipe("elmo").finish_update(optimizer)
    assert bilm_bytes(nlp) != before


def test_learn_rate_factor_scales_the_bilm_alone():
    moves = {}
    for factor in (1.0, 0.1, 0.0):
        nlp = make_nlp(frozen=False, learn_rate_factor=factor)
        add_task(nlp, "tagger", STOCK)
        bias = get_embedder(nlp.get_pipe("elmo").model).bilm.forward_lstm.layers[0].bias
        before = bias.detach().clone()
        # At the first step the tagger's output weights are zero, and so is the gradient.
        train(nlp, n_steps=2)
        bias = get_embedder(nlp.get_pipe("elmo").model).bilm.forward_lstm.layers[0].bias
        moves[factor] = (bias - before).abs().max().item(), np.abs(shared_mix(nlp)).max()

    assert moves[1.0][0] > 1e-3
    assert moves[0.1][0] == pytest.approx(0.1 * moves[1.0][0], rel=0.1)
    assert moves[0.0][0] == 0
    assert moves[0.0][1] == pytest.approx(moves[1.0][1], rel=0.01)


def test_averages_reach_a_bilm_that_learns_and_are_what_is_saved(tmp_path):
    nlp, examples = make_tagger(PLACES["both"], frozen=False)
    optimizer = Adam(0.01, use_averages=True)
    first = bilm_bytes(nlp)
    for _ in range(4):
        nlp.update(examples, sgd=optimizer)
    trained, scores_before = bilm_bytes(nlp), scores(nlp, TEXTS[0])

    with nlp.use_params(optimizer.averages):
        averaged, expected = bilm_bytes(nlp), scores(nlp, TEXTS[0])
        nlp.to_disk(tmp_path)

    assert first != trained != averaged != first
    assert bilm_bytes(nlp) == trained
    assert_close(scores(nlp, TEXTS[0]), scores_before, atol=0)
    loaded = spacy.load(tmp_path)
    assert bilm_bytes(loaded) == averaged
    assert_close(scores(loaded, TEXTS[0]), expected)
    assert np.abs(expected - scores_before).max() > 1e-4


def scores(nlp, text, name="tagger"):
    doc = nlp(text)
    return nlp.get_pipe(name).model.predict([doc])[0]


@pytest.mark.parametrize("kind", LISTENERS)
def test_frozen_and_annotating_components_read_the_doc(kind):
    nlp, examples = make_tagger(LISTENERS[kind])
    losses = {}

    nlp.update(examples, sgd=False, losses=losses, exclude=["elmo"], annotates=["elmo"])

    assert losses["tagger"] > 0
    assert "elmo" not in losses


@pytest.mark.parametrize("kind", LISTENERS)
def test_elmo_may_be_frozen_after_some_updates(kind):
    """A listener reads the layers of the docs, not those that it was sent for other docs."""
    nlp, examples = make_tagger(LISTENERS[kind])
    nlp.update(examples[:2], sgd=False)

    nlp.update(examples[2:], sgd=False, exclude=["elmo"], annotates=["elmo"])

    model = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    docs = list(nlp.get_pipe("elmo").pipe(eg.predicted for eg in examples[2:]))
    assert_close(model.begin_update(docs)[0], model.predict(docs))


def test_frozen_without_annotating_is_an_error_that_says_so():
    nlp, examples = make_tagger(ELMO)

    with pytest.raises(ValueError, match="EL003.*annotating_components"):
        nlp.update(examples, sgd=False, exclude=["elmo"])


EMPTY = [[], ["a", "b"], [], [" "], []]


@pytest.mark.parametrize("kind", LISTENERS)
@pytest.mark.parametrize("frozen", [True, False])
def test_empty_docs_may_stand_anywhere(kind, frozen):
    nlp = make_nlp(frozen=frozen)
    add_task(nlp, "tagger", LISTENERS[kind])
    train(nlp)
    examples = [
        Example(Doc(nlp.vocab, words=w), Doc(nlp.vocab, words=w, tags=["N"] * len(w)))
        for w in EMPTY
    ]

    nlp.update(examples, sgd=False)
    nlp.get_pipe("elmo").finish_update(nlp.create_optimizer())

    docs = list(nlp.pipe(Doc(nlp.vocab, words=w) for w in EMPTY))
    assert [doc.tensor.shape for doc in docs] == [(len(w), 8) for w in EMPTY]


@pytest.mark.parametrize("is_stock", [False, True])
def test_training_without_the_elmo_that_ran_before_is_refused(is_stock):
    nlp, examples = make_tagger(STOCK if is_stock else ELMO)
    nlp.update(examples[:2], sgd=nlp.resume_training())
    with nlp.select_pipes(enable=["tagger"]), pytest.raises(ValueError, match="EL003"):
        nlp.update(examples[2:], sgd=nlp.resume_training())


def test_a_listener_before_its_elmo_is_told_where_it_belongs():
    for upstream in ("*", "elmo"):
        nlp = make_nlp()
        nlp.remove_pipe("elmo")
        add_task(nlp, "tagger", {**STOCK, "upstream": upstream})
        add_elmo(nlp, "elmo")
        examples = make_examples(nlp)
        with pytest.raises(ValueError, match="EL339.*'elmo' before 'tagger'"):
            nlp.initialize(partial(iter, examples))


def test_a_stock_listener_refuses_docs_that_were_cut_anew():
    nlp = make_nlp()
    add_task(nlp, "tagger", STOCK)
    nlp.initialize(lambda: make_examples(nlp))
    doc = nlp.get_pipe("elmo")(nlp.make_doc("I like green eggs ."))
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[2:4])
    with pytest.raises(ValueError, match="EL050"):
        nlp.get_pipe("tagger")(doc)
    # Its rows are right again.
    with pytest.warns(UserWarning, match="WL061"):
        nlp.get_pipe("elmo")(doc)
    nlp.get_pipe("tagger")(doc)


def test_two_elmos_serve_their_own_listeners():
    nlp = make_nlp(frozen=False)
    add_elmo(nlp, "other", seed=2, frozen=False, width=4, cell_width=3, depth=1)
    add_task(nlp, "tagger", ELMO)
    other = {**ELMO, "upstream": "other", "width": 4, "depth": 1}
    add_task(nlp, "morphologizer", other)
    before = bilm_bytes(nlp), bilm_bytes(nlp, "other")

    losses = train(nlp)

    assert losses["elmo"] > 0 and losses["other"] > 0
    assert bilm_bytes(nlp) != before[0]
    assert bilm_bytes(nlp, "other") != before[1]
    doc = nlp("green eggs")
    assert {name: e["layers"].shape for name, e in doc._.elmo.items()} == {
        "elmo": (2, 3, 8),
        "other": (2, 2, 4),
    }


def test_own_mixes_do_not_read_the_tensor():
    """A tok2vec in between overwrites it."""
    nlp = make_nlp()
    tagger = add_task(nlp, "tagger", ELMO)
    train(nlp)
    expected = scores(nlp, "green eggs")
    nlp.add_pipe("tok2vec", after="elmo").initialize(lambda: make_examples(nlp))

    assert_close([scores(nlp, "green eggs")], [expected])
    assert tagger.model.get_ref("tok2vec").get_dim("nO") == 8


def test_a_tok2vec_in_between_is_warned_of():
    nlp = make_nlp()
    nlp.add_pipe("tok2vec")
    add_task(nlp, "tagger", STOCK)

    with pytest.warns(UserWarning, match="WL001.*'tok2vec'.*'elmo'.*'tagger'"):
        nlp.initialize(lambda: make_examples(nlp))


def test_a_listener_that_two_claim_is_warned_of():
    nlp = make_nlp()
    add_elmo(nlp, "other")
    add_task(nlp, "tagger", {**STOCK, "upstream": "*"})

    messages, _ = tell(nlp.initialize, lambda: make_examples(nlp))
    assert [message[:7] for message in messages] == ["[WL001]", "[WL002]"]
    assert "'elmo', 'other'" in messages[1]


def test_widths_are_compared_when_linked():
    for block, hint in (
        ({**ELMO, "depth": 3}, r"components\.elmo\.model\.width.*components\.elmo\.model\.depth"),
        ({**STOCK, "width": 5}, r"set `width = \d+`\."),
    ):
        nlp = make_nlp()
        with pytest.raises(ValueError, match=rf"EL001.*'tagger'.*{hint}"):
            add_task(nlp, "tagger", block)


def test_listeners_to_anyone_are_left_to_who_fits():
    nlp = make_nlp()
    nlp.add_pipe("tok2vec", first=True)
    add_task(nlp, "tagger", {**STOCK, "upstream": "*", "width": 96})

    assert train(nlp)["tagger"] > 0
    assert nlp.get_pipe("elmo").listeners == []


def test_listeners_to_anyone_that_fit_nobody_are_refused():
    nlp = make_nlp()
    add_task(nlp, "tagger", {**STOCK, "upstream": "*", "width": 5})

    with pytest.raises(ValueError, match="EL001.*'tagger'.*width 5"):
        nlp.initialize(lambda: make_examples(nlp))


def test_a_drop_in_for_tok2vec_keeps_the_listeners():
    nlp = spacy.blank("en")
    add_elmo(nlp, "tok2vec")
    add_task(nlp, "tagger", {**STOCK, "upstream": "*"})

    assert train(nlp)["tok2vec"] > 0


REPLACED = {
    "own mix": ({**ELMO, "mix_layer_norm": True}, ["model.tok2vec"]),
    "own mix of version 1": (
        {**ELMO, "@architectures": "spacy-elmo.ElmoListener.v1"}, ["model.tok2vec"],
    ),
    "shared mix": (STOCK, ["model.tok2vec"]),
    "input": (tok2vec(), ["model.tok2vec.input"]),
    "all layers": (
        tok2vec(input={**ELMO, "output": "all"}, word_dropout=0.5),
        ["model.tok2vec.input"],
    ),
    "both": (
        tok2vec(input={**ELMO, "output": "top"}, output={**ELMO, "output": 0}),
        ["model.tok2vec.input", "model.tok2vec.output"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("block, paths", REPLACED.values(), ids=REPLACED)
@pytest.mark.parametrize("frozen", [True, False])
def test_replaced_listeners_predict_and_load_the_same(tmp_path, block, paths, frozen):
    nlp = make_nlp(frozen=frozen)
    add_task(nlp, "tagger", block)
    train(nlp)
    expected = [scores(nlp, text) for text in TEXTS]

    nlp.replace_listeners("elmo", "tagger", paths)
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)

    assert_close([scores(nlp, text) for text in TEXTS], expected)
    assert_close([scores(loaded, text) for text in TEXTS], expected)


@pytest.mark.parametrize("frozen", [True, False])
def test_replaced_listeners_train_on(frozen):
    nlp = make_nlp(frozen=frozen)
    add_task(nlp, "tagger", ELMO)
    train(nlp)
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    nlp.remove_pipe("elmo")
    bilm = get_embedder(nlp.get_pipe("tagger").model.get_ref("tok2vec")).bilm
    before = {name: weight.clone() for name, weight in bilm.named_parameters()}

    examples = make_examples(nlp)
    nlp.update(examples, sgd=nlp.create_optimizer())

    moved = {name for name, weight in bilm.named_parameters() if not weight.equal(before[name])}
    assert moved == (set() if frozen else set(before))


def test_vectors_in_training_are_those_of_prediction():
    nlp, examples = make_tagger(ELMO, frozen=False)
    elmo = nlp.get_pipe("elmo")
    elmo.update(examples)
    sent = elmo.listeners[0]._outputs

    docs = [elmo(eg.predicted) for eg in examples]

    assert_close(sent, [doc._.elmo["elmo"]["layers"].reshape(len(doc), 24) for doc in docs])
    assert_close(vectors(docs), elmo.model.predict(docs))


@pytest.mark.parametrize("kind", LISTENERS)
def test_a_part_of_a_doc_can_be_read(kind):
    """spaCy's entity linker predicts from the result of `Span.as_doc`, which has no layers."""
    nlp = make_nlp()
    tagger = add_task(nlp, "tagger", LISTENERS[kind])
    train(nlp)
    doc = nlp("I like green eggs and ham")
    layer = tagger.model.get_ref("tok2vec")

    (rows,) = layer.predict([doc[1:4].as_doc()])

    again = nlp.get_pipe("elmo")(nlp.make_doc("like green eggs"))
    expected = layer.predict([again])[0] if kind == "own mix" else doc.tensor[1:4]
    assert_close([rows], [expected])
