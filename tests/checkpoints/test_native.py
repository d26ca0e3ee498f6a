import pytest
import safetensors.torch
import torch

from spacy_elmo import load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import load_weights
from spacy_elmo.checkpoints.native import write_native

from ..helpers import SHAPE, assert_close

SENTENCES = [["I", "like", "eggs"], ["Ham"]]


@pytest.fixture
def folder(tmp_path):
    write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / "model")
    return tmp_path / "model"


def edit(folder, change):
    path = folder / "model.safetensors"
    state = safetensors.torch.load_file(path)
    change(state)
    safetensors.torch.save_file(state, path)


@pytest.mark.parametrize("dtype, atol", [(torch.float32, 0), (torch.float16, 0.01)])
def test_written_and_read_gives_the_same_vectors(tmp_path, toy_folder, dtype, atol):
    embedder = load_embedder(toy_folder)
    write_native(embedder.bilm, tmp_path / "ours", dtype=dtype)

    read = load_embedder(tmp_path / "ours")

    assert_close(read.embed(SENTENCES), embedder.embed(SENTENCES), atol)
    assert read.bilm.config == embedder.bilm.config


def test_writing_replaces_a_checkpoint_and_nothing_else(folder, tmp_path):
    other = BiLM(BiLMConfig(**{**SHAPE, "depth": 1}))
    write_native(other, folder)
    assert load_embedder(folder).bilm.config.depth == 1

    (tmp_path / "thesis").mkdir()
    with pytest.raises(ValueError, match="EL034.*thesis"):
        write_native(other, tmp_path / "thesis")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "thesis"]


def test_bad_json_is_refused(folder):
    for text in ("{", '{"width": 8, "colour": 1}'):
        (folder / "config.json").write_text(text)
        with pytest.raises(ValueError, match=r"EL032.*config\.json"):
            load_embedder(folder)


def test_a_truncated_file_is_refused(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])

    with pytest.raises(ValueError, match=r"EL033.*model\.safetensors"):
        load_embedder(folder)


BAD_STATES = {
    "missing": (lambda s: s.pop("char_cnn.projection.bias"), "EL020.*char_cnn.projection.bias"),
    "unexpected": (lambda s: s.update(more=torch.zeros(2)), "EL020.*Unexpected: more"),
    "shape": (
        lambda s: s.update({"char_cnn.projection.bias": torch.zeros(3)}),
        r"EL021.*char_cnn.projection.bias.*\(3,\).*\(4,\)",
    ),
    "integers": (
        lambda s: s.update({"char_cnn.projection.bias": torch.zeros(4, dtype=torch.int32)}),
        "EL022.*char_cnn.projection.bias.*int32",
    ),
}


@pytest.mark.parametrize("change, match", BAD_STATES.values(), ids=BAD_STATES)
def test_bad_weights_are_refused_and_change_nothing(folder, change, match):
    edit(folder, change)
    bilm = BiLM(BiLMConfig(**SHAPE))
    before = {name: tensor.clone() for name, tensor in bilm.state_dict().items()}

    with pytest.raises(ValueError, match=match):
        load_weights(bilm, safetensors.torch.load_file(folder / "model.safetensors"), "here")
    with pytest.raises(ValueError, match=match):
        load_embedder(folder)

    assert all(torch.equal(before[name], t) for name, t in bilm.state_dict().items())
