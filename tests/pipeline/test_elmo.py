"""The component: what users read from docs, and where vectors survive."""

import pickle
import time

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin
from spacy.training import Example

import spacy_elmo
from spacy_elmo.checkpoints import formats
from spacy_elmo.experiments.contexts import compare_word

from ..support.helpers import TEXTS, add_elmo, assert_close, example, make_nlp, silently, vectors


def test_doc_has_vectors_everywhere(nlp):
    doc = nlp("I like green eggs .")

    assert doc.tensor.shape == (5, 8)
    assert doc._.elmo["elmo"]["mix"] is doc.tensor
    np.testing.assert_array_equal(doc[2]._.elmo, doc.tensor[2])
    np.testing.assert_allclose(doc[1:3]._.elmo, doc.tensor[1:3].mean(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(doc[2].vector, doc.tensor[2])
    np.testing.assert_allclose(doc[1:3].vector, doc.tensor[1:3].mean(axis=0), rtol=1e-5)
    assert doc.has_vector
    assert (doc[1:1]._.elmo == 0).all()


def test_all_layers_can_stand_side_by_side():
    nlp = make_nlp(output="all", store_layers=True)
    tagger = nlp.get_factory_meta("tagger").default_config["model"]
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 3 * 8, "upstream": "elmo"}
    nlp.add_pipe("tagger", config={"model": {**tagger, "tok2vec": listener}}).add_label("N")
    nlp.initialize()
    doc = nlp("green eggs")

    assert nlp.get_pipe("elmo").n_layers == 3
    assert doc.tensor.shape == (2, 3 * 8)
    np.testing.assert_array_equal(doc.tensor[1], doc[1]._.elmo_layers.reshape(-1))
    np.testing.assert_array_equal(doc[1].vector, doc.tensor[1])


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.filterwarnings("error")
def test_similarity_is_that_of_the_contexts():
    """spaCy alone says 1.0 for equal words, and warns of missing static vectors (W007)."""
    nlp = make_nlp()
    doc, other = nlp("green eggs"), nlp("eggs and ham")
    expected = cosine(doc.tensor[1], other.tensor[0])

    for a in (doc[1], doc[1:2]):
        for b in (other[0], other[0:1]):
            assert a.similarity(b) == pytest.approx(expected, abs=1e-5)
            assert a._.elmo_similarity(b) == pytest.approx(expected, abs=1e-5)
    assert expected < 0.999
    assert doc.similarity(other) == pytest.approx(cosine(doc.vector, other.vector), abs=1e-5)
    norm = np.linalg.norm(doc.vector)
    assert [doc.vector_norm, doc[:].vector_norm] == pytest.approx([norm, norm])
    assert np.stack([nlp("").vector, doc.vector]).shape == (2, 8)


def test_similarity_survives_where_spacy_loses_hooks(nlp):
    docs = list(nlp.pipe(["green eggs", "eggs and ham"]))
    mean = np.mean([doc.vector for doc in docs], axis=0)
    data = DocBin(docs=docs, store_user_data=True).to_bytes()

    doc, other = DocBin().from_bytes(data).get_docs(nlp.vocab)

    for a, b in ((doc, other), (doc[1], other[0]), (doc[0:2], other[1])):
        x, y = a._.elmo_similarity(b), a._.elmo_similarity(b, mean=mean)
        u, v = (item._.elmo["elmo"]["mix"].mean(axis=0) if item in (doc, other) else item._.elmo
                for item in (a, b))  # fmt: skip
        assert [x, y] == pytest.approx([cosine(u, v), cosine(u - mean, v - mean)], abs=1e-5)
    with pytest.raises(ValueError, match="EL051"):
        doc._.elmo_similarity(nlp.make_doc("ham"))


def test_static_vectors_keep_their_similarity_unless_told_otherwise():
    nlp = make_nlp()
    for word, vector in {"green": [1, 0, 0], "eggs": [1, 1, 0]}.items():
        nlp.vocab.set_vector(word, np.array(vector, dtype="float32"))
    doc = nlp("green eggs")

    assert doc[0].similarity(doc[1]) == pytest.approx(0.5**0.5)
    assert doc[0]._.elmo_similarity(doc[1]) == pytest.approx(cosine(*doc.tensor), abs=1e-5)


def test_merged_tokens_have_the_vector_that_spacy_keeps(nlp):
    doc = nlp("green eggs and ham")
    rows = doc.tensor.copy()
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])

    assert_close([doc[0].vector, doc[1:].vector], [rows[1], rows[2:].mean(axis=0)])
    assert_close([doc.vector], [rows[1:].mean(axis=0)])


def test_vectors_that_were_read_can_be_changed():
    nlp = make_nlp(store_layers=True)
    doc = nlp("green eggs")
    before, layers = doc.tensor.copy(), doc[1]._.elmo_layers.copy()
    for vector in (doc[1]._.elmo, doc[1:2]._.elmo, doc[1].vector, doc[1]._.elmo_layers):
        vector /= 2

    assert_close([doc.tensor, doc[1]._.elmo_layers], [before, layers], 0)


def test_vector_hooks_serve_pipelines_with_static_vectors():
    nlp = make_nlp(vector_hooks=True)
    nlp.vocab.set_vector("eggs", np.ones(3, dtype="float32"))
    doc, other = nlp("green eggs"), nlp("green ham")

    np.testing.assert_array_equal(doc[1].vector, doc.tensor[1])
    np.testing.assert_array_equal(doc[0:2].vector, doc.vector)
    assert doc.has_vector and doc[0].has_vector
    assert doc.similarity(other) == pytest.approx(cosine(doc.vector, other.vector), abs=1e-5)
    assert doc[0].similarity(doc[0]) == pytest.approx(1)
    assert nlp("").similarity(doc) == 0.0
    with pytest.raises(ValueError, match="'eggs'.*different widths, 8 and 3"):
        doc[1].similarity(nlp.vocab["eggs"])
    with pytest.warns(UserWarning, match="W109"):
        doc.to_bytes()


@pytest.mark.parametrize("width", [3, 8])
@pytest.mark.parametrize("start, end", [(0, 2), (1, 2)], ids=["two tokens", "one token"])
def test_merged_tokens_put_no_contextual_vector_into_the_static_table(width, start, end):
    nlp = make_nlp(vector_hooks=True)
    nlp.vocab.set_vector("green", np.ones(width, dtype="float32"))
    table = nlp.vocab.vectors.data.copy()
    doc = nlp("green eggs .")
    error = pytest.raises(ValueError, match="before 'elmo', or leave `vector_hooks` out")
    with error, doc.retokenize() as retokenizer:
        retokenizer.merge(doc[start:end])

    np.testing.assert_array_equal(nlp.vocab.vectors.data, table)
    assert not nlp.vocab.has_vector("eggs") and not nlp.vocab.has_vector("green eggs")


def test_tokens_that_were_merged_or_split_are_an_error_until_elmo_runs_again():
    """One merge, one split: as many tokens as before, and the last one is where it was."""
    nlp = make_nlp(store_layers=True, vector_hooks=True)
    words = ["na", "na", "na", "batman", "!"]
    doc = nlp(Doc(nlp.vocab, words=words, spaces=[True, True, True, False, False]))
    expected, mean = doc[4]._.elmo.copy(), doc.vector.copy()
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.split(doc[3], ["bat", "man"], heads=[doc[2], doc[2]])

    for i in range(4):
        for read in ("elmo", "elmo_layers"):
            with pytest.raises(ValueError, match='EL050.*get_pipe."elmo"..doc'):
                getattr(doc[i]._, read)
    for item in (doc[:]._, doc[1:3]._):
        with pytest.raises(ValueError, match="EL050"):
            item.elmo
    np.testing.assert_array_equal(doc[4]._.elmo, expected)
    with pytest.warns(UserWarning, match="WL061"):
        nlp.get_pipe("elmo")(doc)
    assert_close([doc.vector, doc[:]._.elmo], [doc.tensor.mean(axis=0)] * 2)
    assert not np.allclose(doc.vector, mean)


def test_parts_of_docs_need_elmo_again():
    nlp = make_nlp(vector_hooks=True)
    doc = nlp("I like green eggs and ham .")
    part = doc[1:6].as_doc()

    assert_close([part.vector, part[1:3].vector], [doc[1:6]._.elmo, doc[2:4]._.elmo])
    with pytest.raises(ValueError, match="EL051.*vectors it has: none.*as_doc"):
        part[0]._.elmo
    assert nlp.get_pipe("elmo")(part)[0]._.elmo.shape == (8,)


def test_layers_are_kept_when_asked_for(nlp):
    with pytest.raises(ValueError, match=r"EL052.*'elmo'.*store_layers"):
        nlp("green eggs")[0]._.elmo_layers

    keeping = make_nlp(store_layers=True)
    doc = keeping("green eggs")
    assert doc[0]._.elmo_layers.shape == (3, 8)
    np.testing.assert_allclose(doc[0]._.elmo_layers.mean(axis=0), doc[0]._.elmo, atol=1e-6)


def test_the_last_component_that_ran_is_read(nlp):
    add_elmo(nlp, "second", seed=5, width=4, cell_width=3)
    doc = nlp("green eggs")

    assert list(doc._.elmo) == ["elmo", "second"]
    assert doc[0]._.elmo.shape == (4,)
    doc = nlp.get_pipe("elmo")(doc)
    assert list(doc._.elmo) == ["second", "elmo"]
    assert doc[0]._.elmo.shape == (8,)


def test_no_vectors_is_an_error():
    doc = spacy.blank("en")("green eggs")
    for read in ("elmo", "elmo_layers"):
        with pytest.raises(ValueError, match="EL051.*green eggs"):
            getattr(doc[0]._, read)
    doc.tensor = np.zeros((2, 7), dtype="float32")
    with pytest.raises(ValueError, match="EL051"):
        doc[0]._.elmo


READS = {
    "token": lambda doc: [token._.elmo for token in doc],
    "layers": lambda doc: [token._.elmo_layers for token in doc],
    "spans": lambda doc: [doc[i : i + 2]._.elmo for i in range(len(doc) - 1)],
    "hooks": lambda doc: [token.vector for token in doc],
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_each_token_takes_linear_time(read):
    nlp = make_nlp(store_layers=True, vector_hooks=True)
    seconds = {}
    for n in (500, 8000):
        doc = nlp(Doc(nlp.vocab, words=["a", "bb"] * (n // 2)))
        # Not the clock's: the machine may be busy.
        start = time.process_time()
        read(doc)
        seconds[n] = (time.process_time() - start) / n

    # A hash of the doc for each token would take sixteen times as long.
    assert seconds[8000] < 5 * seconds[500]


def test_doc_bin_keeps_the_store_and_drops_the_tensor(nlp):
    docs = list(nlp.pipe(TEXTS))
    data = DocBin(docs=docs, store_user_data=True).to_bytes()

    others = list(DocBin().from_bytes(data).get_docs(nlp.vocab))

    for doc, other in zip(docs, others):
        assert other.tensor.size == 0
        assert_close([token._.elmo for token in other], [token._.elmo for token in doc], 0)


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=8),
        max_size=4,
    )
)
def test_any_text_gives_a_row_a_token(nlp, words):
    docs = [Doc(nlp.vocab, words=w) for w in words]
    expected = vectors([silently(nlp, doc) for doc in docs])

    together = vectors(silently(lambda: list(nlp.pipe(docs))))

    assert [v.shape for v in together] == [(len(w), 8) for w in words]
    assert_close(together, expected)


def test_config_decides_over_saved_settings(nlp, tmp_path):
    nlp.to_disk(tmp_path)

    top = spacy.load(tmp_path, config={"components": {"elmo": {"model": {"output": "top"}}}})

    nlp.get_pipe("elmo").store_layers = True
    assert_close([top("green eggs").tensor], [nlp("green eggs")._.elmo["elmo"]["layers"][:, -1]])


def test_long_words_are_told_before_training():
    nlp, words = make_nlp(), ["x" * 20, "y" * 30, "a"]
    examples = [example(nlp, words), example(nlp, words)]

    with pytest.warns(UserWarning, match="WL003.*4 of 6 words are cut to 12 bytes"):
        nlp.initialize(lambda: examples)
    # Only once.
    nlp.update(examples, sgd=False)
    nlp(Doc(nlp.vocab, words=["z" * 40]))


def test_another_architecture_is_refused():
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 8, "depth": 1, "embed_size": 10,
             "window_size": 1, "maxout_pieces": 2, "subword_features": False,
             "pretrained_vectors": None}  # fmt: skip
    with pytest.raises(ValueError, match=r"EL006.*'elmo'.*Elmo\.v2"):
        nlp.add_pipe("elmo", config={"model": model})


# Weights


def test_no_weights_is_an_error_that_names_the_next_line(monkeypatch, tmp_path):
    monkeypatch.setattr(formats, "BUNDLED", tmp_path / "nowhere")
    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo")
    for use in (
        lambda: nlp("eggs"),
        lambda: list(nlp.pipe(["eggs"])),
        lambda: nlp.to_bytes(),
        lambda: pickle.dumps(elmo),
        lambda: nlp.initialize(),
        lambda: spacy_elmo.load_embedder(),
    ):
        with pytest.raises(ValueError, match="EL189.*en_small.*no folder"):
            use()


def test_the_bundled_model_works_at_once_and_knows_its_banks():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"store_layers": True})
    texts = (
        "He went to the bank to get money .",
        "She opened an account at the bank .",
        "He sat by the bank of the river .",
    )

    cosines = compare_word(list(nlp.pipe(texts)), "bank")

    assert cosines[0][1] > cosines[0][2] + 0.2


def test_load_names_what_differs_and_changes_nothing(nlp, toy_folder):
    expected = vectors(nlp.pipe(TEXTS))

    with pytest.raises(ValueError, match=r"EL023.*n_highway: 1, 2.*init-config.*toy"):
        nlp.get_pipe("elmo").load(toy_folder)
    assert_close(vectors(nlp.pipe(TEXTS)), expected, 0)


def test_initialize_starts_with_the_mix_of_the_config(nlp):
    elmo = nlp.get_pipe("elmo")
    mix = elmo.model.layers[1]
    before = mix.get_param("W").copy(), mix.get_param("gamma").copy()
    mix.set_param("W", before[0] + [1.0, 0.0, -1.0])
    mix.set_param("gamma", before[1] * 2)

    nlp.initialize(lambda: [Example.from_dict(nlp.make_doc("eggs"), {})])

    np.testing.assert_array_equal(mix.get_param("W"), before[0])
    np.testing.assert_array_equal(mix.get_param("gamma"), before[1])


# Streams


@pytest.mark.parametrize("batch_size, n_read", [(1, 1), (2, 3), (100, 3)])
def test_docs_of_a_stream_are_read_ahead_for_a_full_forward_pass(batch_size, n_read):
    nlp = make_nlp(batch_tokens=12)
    elmo, read = nlp.get_pipe("elmo"), []
    texts = ["green eggs and ham"] * 9

    def stream():
        for text in texts:
            read.append(text)
            yield nlp.make_doc(text)

    docs = elmo.pipe(stream(), batch_size=batch_size)
    first = next(docs)

    assert len(read) == n_read
    expected = elmo(nlp.make_doc(texts[0])).tensor
    for doc in (first, *docs):
        np.testing.assert_allclose(doc.tensor, expected, atol=1e-6)
    assert len(read) == len(texts)


def test_docs_that_raise_go_to_the_error_handler_and_the_stream_goes_on(monkeypatch):
    nlp = make_nlp(batch_tokens=4)
    elmo, failed = nlp.get_pipe("elmo"), []
    elmo.set_error_handler(lambda name, pipe, docs, error: failed.append((name, docs[0].text)))
    predict = elmo.predict

    def fail_on_ham(docs):
        if "ham" in docs[0].text:
            raise ValueError("ham")
        return predict(docs)

    monkeypatch.setattr(elmo, "predict", fail_on_ham)
    docs = list(elmo.pipe(map(nlp.make_doc, ["green eggs and", "ham and eggs", "Sam I am"])))
    assert [doc.text for doc in docs] == ["green eggs and", "Sam I am"]
    assert failed == [("elmo", "ham and eggs")]
