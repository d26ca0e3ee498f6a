"""The component: trained, saved, copied, and on bad input."""

import copy
import pickle
import re

import numpy as np
import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_elmo.tasks.shared.span_corpus import build_span_corpus_v1
from spacy_elmo.tasks.srl.clauses import Clause

from ...support.helpers import add_elmo, make_nlp
from ...support.toy_roles import (
    LISTENER,
    PLAIN,
    add_srl,
    make_corpus,
    make_doc,
    make_examples,
    read,
    train,
)

TEXTS = ["Cleo eats green eggs that Ann makes .", "", "Bob", "Bob eats ham ."]


def make_trained(tok2vec, n_updates=60):
    nlp = make_nlp() if tok2vec is LISTENER else spacy.blank("en")
    add_srl(nlp, tok2vec)
    train(nlp, make_examples(make_corpus(nlp.vocab)), n_updates)
    return nlp


@pytest.fixture(scope="module")
def trained():
    return make_trained(PLAIN)


@pytest.fixture(scope="module")
def with_elmo():
    return make_trained(LISTENER, 3)


@pytest.fixture
def nlp():
    return spacy.blank("en")


def describe(nlp, texts=TEXTS, **settings):
    return [read(doc) for doc in nlp.pipe(texts, **settings)]


def get_scores(nlp, docs):
    model, places = nlp.get_pipe("elmo_srl").model, [[(0, 1)] if len(d) else [] for d in docs]
    scores = model.predict((list(docs), lambda _: places))
    return [*scores.predicates, *scores.tags]


def test_it_learns_predicates_and_roles(trained):
    scores = trained.evaluate(make_examples(make_corpus(trained.vocab, seed=1)))
    (frame, other) = trained(TEXTS[0])._.elmo_srl

    assert scores["srl_f"] > 0.9 and scores["srl_predicate_f"] > 0.9
    assert [str(frame.predicate), str(other.predicate)] == ["eats", "makes"]
    assert [(label, str(span)) for label, span in frame.arguments] == [
        ("A0", "Cleo"), ("A1", "green eggs"),
    ]  # fmt: skip
    assert trained.get_pipe("elmo_srl").labels == ("A0", "A1", "R-A1")


def test_loss_falls_with_every_tok2vec():
    for tok2vec in (PLAIN, LISTENER):
        nlp = make_nlp() if tok2vec is LISTENER else spacy.blank("en")
        add_srl(nlp, tok2vec)
        losses = train(nlp, make_examples(make_corpus(nlp.vocab)), 12)
        assert losses[-1] < 0.8 * losses[0]


def test_given_predicates_are_used(trained):
    nlp = copy.deepcopy(trained)
    nlp.get_pipe("elmo_srl").predicates = "given"
    doc = nlp.make_doc(TEXTS[0])
    doc.spans["srl_predicates"] = [doc[6:7], doc[2:4]]
    nlp(doc)

    # One frame each, in their order; all tokens of a predicate are its own.
    assert [frame["V"] for frame in read(doc)] == [(6, 7), (2, 4)]
    assert read(doc)[0]["A0"] == (5, 6)
    # Each once, and whitespace is none.
    spaced = nlp.make_doc("Sam  " + TEXTS[0])
    assert spaced[1].is_space
    spaced.spans["srl_predicates"] = [spaced[8:9], spaced[1:2], spaced[8:9], spaced[1:1]]
    assert [frame["V"] for frame in read(nlp(spaced))] == [(8, 9)]
    doc.spans["srl_predicates"] = []
    assert read(nlp(doc)) == []


def test_given_predicates_come_from_a_corpus(trained, tmp_path):
    nlp = copy.deepcopy(trained)
    nlp.get_pipe("elmo_srl").predicates = "given"
    nlp.get_pipe("elmo_srl").threshold = 1 - 1e-12
    DocBin(docs=make_corpus(nlp.vocab, seed=1)).to_disk(tmp_path / "x.spacy")
    corpus = build_span_corpus_v1(tmp_path / "x.spacy", ["srl_predicates"])
    scores = nlp.evaluate(list(corpus(nlp)))

    assert scores["srl_predicate_f"] == 1 and scores["srl_f"] > 0.9


def test_given_predicates_that_are_not_there_are_said(trained):
    nlp = copy.deepcopy(trained)
    nlp.get_pipe("elmo_srl").predicates = "given"
    with pytest.raises(ValueError, match="EL202.*'Bob eats ham .'.*srl_predicates"):
        nlp("Bob eats ham .")
    assert read(nlp("")) == []


def test_an_earlier_run_leaves_nothing(trained):
    doc = trained(TEXTS[0])
    doc.spans["sc"] = [doc[:1]]
    assert "srl_2" in doc.spans

    nlp = copy.deepcopy(trained)
    nlp.get_pipe("elmo_srl").threshold = 1 - 1e-12
    nlp(doc)
    assert sorted(doc.spans) == ["sc", "srl_predicates"] and doc._.elmo_srl == []


def test_docs_do_not_depend_on_batch_mates(with_elmo):
    expected = list(with_elmo.pipe(TEXTS))
    for batch_size in (1, 2):
        docs = list(with_elmo.pipe(TEXTS, batch_size=batch_size))
        assert [read(doc) for doc in docs] == [read(doc) for doc in expected]
    alone = [row for doc in expected for row in get_scores(with_elmo, [doc])]
    # Those of one doc: predicates, then tags.
    together = get_scores(with_elmo, expected)
    assert sum(map(len, alone)) == sum(map(len, together))
    for row in together:
        assert min(np.abs(row - o).max(initial=0) for o in alone if o.shape == row.shape) < 1e-5


SAVES = {
    "deepcopy": lambda nlp, path: copy.deepcopy(nlp),
    "pickle": lambda nlp, path: pickle.loads(pickle.dumps(nlp)),
    "disk": lambda nlp, path: (nlp.to_disk(path), spacy.load(path))[1],
    "bytes": lambda nlp, path: spacy.util.load_model_from_config(
        nlp.config, auto_fill=True
    ).from_bytes(nlp.to_bytes()),
}


@pytest.mark.parametrize("name", SAVES)
def test_copies_say_the_same(with_elmo, tmp_path, name):
    nlp = SAVES[name](with_elmo, tmp_path / "pipeline")
    docs, others = list(nlp.pipe(TEXTS)), list(with_elmo.pipe(TEXTS))

    assert nlp.get_pipe("elmo_srl").labels == with_elmo.get_pipe("elmo_srl").labels
    for row, other in zip(get_scores(nlp, docs), get_scores(with_elmo, others)):
        np.testing.assert_allclose(row, other, atol=1e-6)


def test_settings_are_in_the_config(trained, tmp_path):
    trained.to_disk(tmp_path)
    config = {"components": {"elmo_srl": {"predicates": "given", "threshold": 0.3}}}
    srl = spacy.load(tmp_path, config=config).get_pipe("elmo_srl")

    # Older versions of srsly read 0.30000000000000004.
    assert (srl.predicates, srl.threshold) == ("given", pytest.approx(0.3))


def test_a_file_of_another_shape_is_refused(trained, nlp):
    srl = add_srl(nlp, width=8)
    with pytest.raises(ValueError, match="EL020|EL021|EL116"):
        srl.from_bytes(trained.get_pipe("elmo_srl").to_bytes())


def test_labels_can_be_given(nlp):
    srl = add_srl(nlp)
    examples = make_examples(make_corpus(nlp.vocab))
    nlp.config["initialize"]["components"] = {"elmo_srl": {"labels": ["A0", "A9"]}}
    optimizer = nlp.initialize(lambda: examples)
    with pytest.warns(UserWarning, match="WL034") as warned:
        losses = nlp.update(examples, sgd=optimizer)

    # Older versions of spaCy's packages warn of other things, too.
    told = [warning for warning in warned if "WL034" in str(warning.message)]
    labels = {re.search("WL034.*role '(.*?)'", str(warning.message))[1] for warning in told}
    assert labels == {"A1", "R-A1"}
    assert srl.labels == ("A0", "A9") and srl.label_data == ["A0", "A9"]
    assert losses["elmo_srl"] > 0


def test_labels_of_a_trained_component_are_fixed(trained):
    assert trained.get_pipe("elmo_srl").add_label("A0") == 0
    with pytest.raises(ValueError, match="EL198.*'A9'.*A0, A1, R-A1"):
        trained.get_pipe("elmo_srl").add_label("A9")


def test_the_predicate_s_label_is_no_role(nlp):
    srl = add_srl(nlp)
    with pytest.raises(ValueError, match="EL334.*elmo_srl"):
        srl.add_label("V")
    assert srl.labels == ()


def test_a_component_that_was_never_trained_says_so(nlp):
    add_srl(nlp)
    assert nlp("")._.elmo_srl == []
    with pytest.raises(ValueError, match="EL190"):
        nlp("Bob eats .")
    with pytest.raises(ValueError, match="EL190"):
        nlp.update(make_examples([make_doc(nlp.vocab, "Bob")]))


def test_unknown_roles_of_an_evaluation_are_missed(trained):
    doc = make_doc(trained.vocab, "Bob eats ham .", {"V": (1, 2), "A0": (0, 1), "A7": (2, 3)})
    scores = trained.evaluate(make_examples([doc]))

    assert scores["srl_per_type"]["A7"] == {"p": 0.0, "r": 0.0, "f": 0.0}
    assert scores["srl_per_type"]["A0"]["f"] == 1


def test_data_without_roles_is_said(nlp):
    add_srl(nlp)
    docs = [make_doc(nlp.vocab, "Bob eats .", {"V": (1, 2)}), make_doc(nlp.vocab, "Bob .")]
    with pytest.raises(ValueError, match="EL194.*'elmo_srl' needs at least 1.*srl_N"):
        nlp.initialize(lambda: make_examples(docs))


def test_docs_without_tokens_predicates_or_context(trained):
    docs = [Doc(trained.vocab), trained.make_doc("."), trained.make_doc("eats")]
    for batch in ([docs[0]], docs, [Doc(trained.vocab), Doc(trained.vocab)]):
        done = list(trained.pipe([doc.copy() for doc in batch]))
        assert all(doc.spans["srl_predicates"] is not None for doc in done)
        assert read(done[0]) == []
    assert list(trained.pipe([])) == []


@pytest.mark.parametrize(
    "texts", [[""], ["", ""], ["a"], ["", "a", "a b"]], ids=["empty", "two", "one", "mixed"]
)
def test_it_trains_on_docs_without_frames(trained, texts):
    nlp = copy.deepcopy(trained)
    docs = [make_doc(nlp.vocab, text) for text in texts]
    losses = nlp.update(make_examples(docs), sgd=nlp.resume_training())

    assert np.isfinite(losses["elmo_srl"])
    # As it was written: by now it knows that these are no predicates.
    assert (losses["elmo_srl"] > 0) == any(texts)


def test_nothing_is_learned_from_docs_that_are_not_annotated(trained):
    nlp = copy.deepcopy(trained)
    docs = [nlp.make_doc("Bob eats ham .")]
    srl = nlp.get_pipe("elmo_srl")
    scores, _ = srl.model.begin_update((docs, lambda _: [[]]))
    loss, (d_predicates, d_tags) = srl.get_loss([Example(docs[0], docs[0].copy())], scores)

    assert loss == 0 and not d_predicates[0].any() and d_tags == []


def test_the_loss_has_its_gradient(trained):
    srl = trained.get_pipe("elmo_srl")
    examples = make_examples(make_corpus(trained.vocab, 2))
    places = [[(f.predicate.start, f.predicate.end) for f in eg.reference._.elmo_srl]
              for eg in examples]  # fmt: skip
    scores = srl.model.predict(([eg.predicted for eg in examples], lambda _: places))
    _, gradients = srl.get_loss(examples, scores)
    for arrays, d_arrays in zip((scores.predicates, scores.tags), gradients):
        for X, dX in zip(arrays, d_arrays):
            place = np.unravel_index(np.abs(dX).argmax(), dX.shape)
            value, losses = X[place], []
            for step in (0.01, -0.01):
                X[place] = value + step
                losses.append(srl.get_loss(examples, scores)[0])
            X[place] = value
            assert dX[place] == pytest.approx((losses[0] - losses[1]) / 0.02, rel=0.02, abs=1e-5)


def test_overlapping_gold_is_told_and_trained_on(trained):
    nlp = copy.deepcopy(trained)
    doc = make_doc(nlp.vocab, "Bob eats ham .", {"V": (1, 2), "A0": (2, 3), "A1": (2, 4)})
    with pytest.warns(UserWarning, match="WL035"):
        losses = nlp.update(make_examples([doc]))
    assert losses["elmo_srl"] > 0


def test_gold_without_a_predicate_is_said(trained):
    doc = make_doc(trained.vocab, "Bob eats ham .")
    doc.spans["srl_1"] = [Span(doc, 0, 1, label="A0")]
    for use in (trained.evaluate, trained.update):
        with pytest.raises(ValueError, match="EL200"):
            use(make_examples([doc]))


@pytest.mark.parametrize("threshold", [-0.1, 7])
def test_impossible_thresholds_are_refused(nlp, threshold):
    with pytest.raises(ValueError, match="EL201"):
        add_srl(nlp, threshold=threshold)


def test_thresholds_at_their_limits_choose_all_words_or_none(trained, monkeypatch):
    srl, text = trained.get_pipe("elmo_srl"), "Bob eats\n\ngreen  eggs ."
    monkeypatch.setattr(srl, "threshold", 1.0)
    assert trained(text)._.elmo_srl == []
    monkeypatch.setattr(srl, "threshold", 0.0)
    frames = trained(text)._.elmo_srl
    assert [str(frame.predicate) for frame in frames] == ["Bob", "eats", "green", "eggs", "."]
    spans = [span for frame in frames for _, span in frame.arguments]
    assert spans and not any(span[0].is_space or span[-1].is_space for span in spans)


def test_roles_begin_and_end_with_words(trained):
    srl, doc = trained.get_pipe("elmo_srl"), trained.make_doc("Bob eats \n\n ham \n\n . \n")
    clause = Clause(0, 0, len(doc), (1, 2))
    first = 3 + 2 * srl.labels.index("A1")
    frames = []
    for start, end in ((2, 5), (2, 3)):
        tags = [0, 1, *[0] * (len(doc) - 2)]
        tags[start:end] = [first, *[first + 1] * (end - start - 1)]
        srl.set_annotations([doc], [[(clause, tags)]])
        frames.append([(label, str(span)) for label, span in doc._.elmo_srl[0].arguments])
    assert frames == [[("A1", "ham")], []]


def test_other_sources_of_predicates_are_refused(trained):
    srl = trained.get_pipe("elmo_srl")
    with pytest.raises(ValueError, match="EL017.*predicted, given"):
        type(srl)(trained.vocab, srl.model, predicates="gold")


def test_many_docs_are_read_in_parts(trained, monkeypatch):
    expected = describe(trained, TEXTS * 3)
    srl, sizes = trained.get_pipe("elmo_srl"), []
    predict = srl._predict
    monkeypatch.setattr("spacy_elmo.tasks.srl.elmo_srl._MOST_TOKENS", 10)
    monkeypatch.setattr(srl, "_predict", lambda docs: (sizes.append(docs), predict(docs))[1])

    assert describe(trained, TEXTS * 3) == expected
    assert len(sizes) > 3 and all(len(s) == 1 or sum(map(len, s)) <= 10 for s in sizes)


def test_long_docs_have_frames_in_every_part(trained):
    doc = trained(Doc(trained.vocab, words="Bob eats ham .".split() * 500))  # noqa: SIM905

    assert len(doc._.elmo_srl) == 500
    assert [frame.predicate.start for frame in doc._.elmo_srl] == list(range(1, 2000, 4))


def test_it_stands_beside_other_components():
    nlp = make_nlp()
    add_srl(nlp, LISTENER)
    add_elmo(nlp, "second")
    train(nlp, make_examples(make_corpus(nlp.vocab, 3)), 1)
    assert nlp.get_pipe("elmo").listening_components == ["elmo_srl"]


def test_labels_that_are_not_the_model_s_are_refused(trained):
    srl = trained.get_pipe("elmo_srl")
    model = srsly.msgpack_loads(srl.to_bytes(exclude=["vocab"]))["model"]
    data = srsly.msgpack_dumps({"cfg": '{"labels": ["A0"]}', "model": model})

    with pytest.raises(ValueError, match="EL116.*outputs of the model: .*, for its labels: 5"):
        copy.deepcopy(srl).from_bytes(data, exclude=["vocab"])
