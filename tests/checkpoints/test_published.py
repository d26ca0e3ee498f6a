"""Published weights and options, in ../shared."""

import json

import h5py
import numpy as np
import pytest
import srsly

from spacy_elmo import load_embedder
from spacy_elmo.checkpoints.allennlp import config_from_options, read_options

from ..support import oracle
from ..support.helpers import assert_close
from ..support.toy import write_model


@pytest.fixture(scope="module")
def fixture(shared):
    folder = shared / "data" / "elmo" / "fixtures" / "allennlp"
    streams = srsly.read_json(folder / "sentences.json")
    with h5py.File(folder / "lm_embeddings_0.hdf5") as file_:
        golden = [file_[str(i)][...] for i in range(10)]
    embedder = load_embedder(folder / "options.json", folder / "lm_weights.hdf5")
    options = json.loads((folder / "options.json").read_text())
    weights = {}
    with h5py.File(folder / "lm_weights.hdf5") as file_:
        file_.visititems(lambda n, d: weights.update({n: d[...]}) if hasattr(d, "dtype") else None)
    batches = [[stream[i].split() for stream in streams] for i in range(10)]
    return embedder, options, weights, batches, golden


def directions(layers):
    """(n_layers, n_tokens, width) -> top layer (2, n_tokens, width // 2)."""
    return np.stack(np.split(layers[-1], 2, axis=-1))


def test_the_first_sentence_is_golden_without_state(fixture):
    embedder, _, _, batches, golden = fixture

    assert_close([directions(embedder.embed(batches[0])[0])], [golden[0]])


def test_all_sentences_are_golden_with_state(fixture):
    embedder, _, _, batches, golden = fixture
    state = None
    for batch, expected in zip(batches, golden):
        arrays, state = embedder.embed_stateful(batch, state)
        assert_close([directions(arrays[0])], [expected])


def test_the_oracle_is_golden_with_state(fixture):
    _, options, weights, batches, golden = fixture
    state = None
    for batch, expected in zip(batches, golden):
        layers, state = oracle.embed(options, weights, batch[0], state)
        assert_close([directions(layers)], [expected])


@pytest.mark.parametrize("skip", [True, False])
def test_all_streams_equal_the_oracle(fixture, tmp_path, skip):
    """One stream is published, and only with skip connections."""
    _, options, weights, batches, _ = fixture
    options = {**options, "lstm": {**options["lstm"], "use_skip_connections": skip}}
    embedder = load_embedder(*write_model(tmp_path, options, weights))
    state, states = None, [None] * 3
    for batch in batches[:4]:
        arrays, state = embedder.embed_stateful(batch, state)
        for row, words in enumerate(batch):
            expected, states[row] = oracle.embed(options, weights, words, states[row])
            assert_close([arrays[row]], [expected])


def test_word_vectors_are_golden(shared, fixture):
    folder = shared / "data" / "elmo" / "fixtures" / "allennlp"
    words = (folder / "vocab_test.txt").read_text("utf-8").splitlines()
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file_:
        golden = file_["embedding"][...]

    layers = fixture[0].embed([words])[0]

    assert_close([layers[0, :, :16]], [golden])


@pytest.mark.parametrize(
    "name, width, cell_width, n_highway",
    [
        ("elmo_original_2x4096_512_2048cnn_2xhighway_options.json", 1024, 4096, 2),
        ("elmo_small_2x1024_128_2048cnn_1xhighway_options.json", 256, 1024, 1),
        ("nlpl_225_en_coha_2048_options.json", 1024, 2048, None),
        ("cl_tohoku_elmo_japanese_train_config.json", None, None, None),
    ],
)
def test_published_options_are_read(shared, name, width, cell_width, n_highway):
    config = read_options(shared / "data" / "elmo" / "published_options" / name)

    assert config.depth == 2
    assert width in (None, config.width)
    assert cell_width in (None, config.cell_width)
    assert n_highway in (None, config.n_highway)


def test_options_of_another_library_are_refused(shared):
    name = "elmoformanylangs_cnn_50_100_512_4096_sample.json"
    options = srsly.read_json(shared / "data" / "elmo" / "published_options" / name)

    with pytest.raises(ValueError, match="EL032.*no 'lstm'"):
        config_from_options(options, name)


def test_interim_model_tells_two_banks_apart(interim):
    embedder = load_embedder(interim)
    sentences = [
        ["He", "went", "to", "the", "bank", "to", "get", "money", "."],
        ["She", "opened", "an", "account", "at", "the", "bank", "."],
        ["He", "sat", "by", "the", "bank", "of", "the", "river", "."],
    ]
    money, account, river = (
        layers[-1, words.index("bank")] / np.linalg.norm(layers[-1, words.index("bank")])
        for layers, words in zip(embedder.embed(sentences), sentences)
    )

    assert money @ account > money @ river + 0.05
