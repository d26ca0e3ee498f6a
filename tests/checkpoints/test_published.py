"""Published weights and options, in ../shared."""

import h5py
import pytest
import srsly

from spacy_elmo import load_embedder
from spacy_elmo.checkpoints.allennlp import config_from_options, read_options

from ..support.helpers import assert_close


def test_word_vectors_are_golden(shared):
    folder = shared / "data" / "elmo" / "fixtures" / "allennlp"
    words = (folder / "vocab_test.txt").read_text("utf-8").splitlines()
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file_:
        golden = file_["embedding"][...]

    embedder = load_embedder(folder / "options.json", folder / "lm_weights.hdf5")
    layers = embedder.embed([words])[0]

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
