"""What components save: interrupted writes lose nothing, and files of strangers are checked."""

import numpy as np
import pytest
import srsly

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.language_model.loading import collect_softmax
from spacy_elmo.language_model.softmax import make_softmax
from spacy_elmo.layers.elmo_layers import get_embedder
from spacy_elmo.pipeline.elmo_lm import ElmoLM
from spacy_elmo.senses.annotated import read_sentences
from spacy_elmo.senses.sense_model import SenseModel
from spacy_elmo.senses.sense_training import train_senses
from spacy_elmo.senses.wordnet import read_wordnet

from ..support.faults import kill_at_each_write
from ..support.helpers import SHAPE, TEXTS, assert_close, make_nlp, vectors
from ..support.toy_wordnet import make_lines, write_wordnet

WORDS = ["<S>", "</S>", "<UNK>", "eggs", "ham", "I", "like", "."]
NAMES = ["elmo", "elmo_senses", "elmo_lm"]


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    """All components, of a tiny shape."""
    folder = tmp_path_factory.mktemp("lm")
    softmax = collect_softmax(make_softmax("full", 4, len(WORDS)), "full", {}, WORDS)
    write_native(BiLM(BiLMConfig(**SHAPE)), folder / "lm", softmax=softmax)
    nlp = make_nlp(store_layers=True)
    srsly.write_jsonl(folder / "senses.jsonl", make_lines())
    inventory = read_wordnet(write_wordnet(folder / "dict"))
    embedder = get_embedder(nlp.get_pipe("elmo").model)
    centroids, _ = train_senses(embedder, inventory, read_sentences(folder / "senses.jsonl"))
    nlp.add_pipe("elmo_senses").model = SenseModel(inventory, centroids)
    nlp.add_pipe("elmo_lm", config={"path": str(folder / "lm")})
    return nlp


@pytest.mark.parametrize("data", [b"", b"\x92", "x", None, b"\xc1", srsly.msgpack_dumps({})])
@pytest.mark.parametrize("name", NAMES)
def test_bytes_of_something_else_are_refused(nlp, name, data):
    with pytest.raises(ValueError, match="EL116|EL031"):
        nlp.get_pipe(name).from_bytes(data)


def test_names_in_bytes_are_not_paths(nlp, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    message = srsly.msgpack_loads(nlp.get_pipe("elmo_lm").to_bytes())
    strange = {"../../../x": b"data", "language_model/../../x": b"data", "y": b"data"}

    other = ElmoLM(nlp.vocab).from_bytes(srsly.msgpack_dumps({**message, **strange}))

    assert other.load().vocabulary.words == WORDS
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["temporary"]


@pytest.mark.parametrize("name", ["elmo", "elmo_senses"])
def test_a_process_killed_while_it_saves_leaves_whole_files(nlp, tmp_path, name):
    pipe = nlp.get_pipe(name)
    pipe.to_disk(tmp_path / "pipe", exclude=["vocab"])

    for _ in kill_at_each_write(lambda: pipe.to_disk(tmp_path / "pipe", exclude=["vocab"])):
        pipe.from_disk(tmp_path / "pipe", exclude=["vocab"])


def test_what_is_excluded_is_neither_saved_nor_loaded(nlp, tmp_path):
    elmo, other = nlp.get_pipe("elmo"), make_nlp(seed=4).get_pipe("elmo")
    expected = vectors(make_nlp(seed=4).pipe(TEXTS))
    elmo.to_disk(tmp_path, exclude=["model", "vocab"])
    assert [path.name for path in tmp_path.iterdir()] == ["cfg"]

    other.from_disk(tmp_path, exclude=["model", "vocab"])
    other.from_bytes(elmo.to_bytes(exclude=["model"]), exclude=["model"])
    other.from_bytes(elmo.to_bytes(), exclude=["model", "vocab"])
    docs = [other(make_nlp().make_doc(text)) for text in TEXTS]
    assert_close(vectors(docs), expected)
    with pytest.raises(ValueError, match="EL116.*no file model"):
        other.from_bytes(elmo.to_bytes(exclude=["model"]))


# Elmo's model, from a stranger


def change_model(change):
    def apply(files):
        message = srsly.msgpack_loads(files["model"])
        change(message)
        return {**files, "model": srsly.msgpack_dumps(message)}

    return apply


def set_param(name, value):
    return change_model(lambda message: message["params"][2].update({name: value}))


def set_state(state):
    return change_model(lambda message: message["shims"].__setitem__(3, [state]))


BAD_MODELS = {
    "no message": lambda files: {**files, "model": b"\xc1"},
    "a list": lambda files: {**files, "model": srsly.msgpack_dumps([1, 2])},
    "nodes are numbers": change_model(lambda message: message.update(nodes=[1, 2, 3, 4])),
    "another model": change_model(lambda message: message["nodes"][2].update(name="softmax")),
    "no weights": change_model(lambda message: message.update(shims=[[], [], [], []])),
    "weights are a number": set_state(5),
    "weights are no safetensors": set_state(srsly.msgpack_dumps({"state": b"abc"})),
    "weights are text": set_state(srsly.msgpack_dumps({"state": "abc"})),
    "a mix of two layers": set_param("W", np.zeros(2, dtype="float32")),
    "a mix of NaN": set_param("W", np.full(3, np.nan, dtype="float32")),
    "a mix of text": set_param("W", "abc"),
    "no scale": set_param("gamma", None),
    "a cfg of numbers": lambda files: {**files, "cfg": b"[1]"},
}


@pytest.mark.parametrize("change", BAD_MODELS.values(), ids=BAD_MODELS)
def test_impossible_models_are_refused_and_change_nothing(nlp, tmp_path, change):
    elmo, expected = nlp.get_pipe("elmo"), vectors(nlp.pipe(TEXTS))
    files = change(srsly.msgpack_loads(elmo.to_bytes(exclude=["vocab"])))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    with pytest.raises(ValueError, match="EL116|EL103"):
        elmo.from_bytes(srsly.msgpack_dumps(files))
    with pytest.raises(ValueError, match="EL116|EL103"):
        elmo.from_disk(tmp_path)
    assert_close(vectors(nlp.pipe(TEXTS)), expected)


def test_only_weights_are_taken_from_a_model(nlp):
    elmo = nlp.get_pipe("elmo")
    files = srsly.msgpack_loads(elmo.to_bytes(exclude=["vocab"]))
    attrs = {name: srsly.msgpack_dumps("x") for name in ("settings", "replace_listener")}
    change = change_model(lambda message: message["attrs"][1].update(attrs))
    settings = dict(elmo.model.layers[0].attrs)

    elmo.from_bytes(srsly.msgpack_dumps(change(files)))

    assert elmo.model.layers[0].attrs == settings


def test_pipelines_with_digests_load(nlp, tmp_path):
    """Version 0.2.0 wrote a file with digests beside the others."""
    elmo = nlp.get_pipe("elmo")
    elmo.to_disk(tmp_path)
    (tmp_path / "digests.json").write_text("{}")
    elmo.from_disk(tmp_path)
    elmo.from_bytes(srsly.msgpack_dumps({**srsly.msgpack_loads(elmo.to_bytes()), "digests": {}}))


def test_senses_of_another_bilm_are_refused(nlp):
    other = make_nlp(store_layers=True, width=4, cell_width=3, lang="xx")
    other.add_pipe("elmo_senses").model = nlp.get_pipe("elmo_senses").get_model()

    with pytest.raises(ValueError, match="EL117.*3 layers of width 4"):
        other("the river bank")
