"""Teachers: what they teach, whom they leave alone, and that a run with them goes on exactly."""

import catalogue
import numpy as np
import pytest
import safetensors.torch
import spacy
import srsly
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.language_model.objective import LanguageModel
from spacy_elmo.language_model.readings import make_lm_batch
from spacy_elmo.language_model.softmax import Softmax
from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from spacy_elmo.pretraining.teachers import (
    Lesson,
    Teacher,
    TeacherContext,
    make_teachers,
    read_vector_table,
)
from spacy_elmo.registry import teachers as registered

from ..support.helpers import SHAPE
from ..support.runs import SMALL, train

WORDS = ["ham", "eggs", "like", "bread"]
VOCABULARY = Vocabulary([*SPECIAL_WORDS, *WORDS])
SENTENCES = [["I", "like", "eggs"], ["eggs", "eggs"], ["ham", "and", "eggs", "like", "ham"]]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A pipeline in which "I", "and" and "zero" have no vector."""
    nlp = spacy.blank("en")
    rng = np.random.default_rng(0)
    for word in WORDS:
        nlp.vocab.set_vector(word, rng.normal(size=5).astype("float32"))
    nlp.vocab.set_vector("zero", np.zeros(5, dtype="float32"))
    folder = tmp_path_factory.mktemp("vectors")
    nlp.to_disk(folder)
    return folder


def make_teacher(vectors, **settings):
    torch.manual_seed(0)
    context = TeacherContext(BiLMConfig(**SHAPE), VOCABULARY, batch_tokens=12)
    block = {"kind": "static_vectors", "path": str(vectors), **settings}
    return make_teachers({"words": block}, context)["words"]


def make_model(teacher=None):
    torch.manual_seed(0)
    config = BiLMConfig(**SHAPE)
    softmax = Softmax(config.direction_width, len(VOCABULARY))
    return LanguageModel(BiLM(config), softmax, teachers={"words": teacher} if teacher else None)


def make_lesson(sentences, vectors=None):
    batch = make_lm_batch(sentences, VOCABULARY)
    if vectors is None:
        vectors = torch.randn(len(batch.words), SHAPE["width"] // 2)
    return Lesson(batch, vectors, [], [])


def test_the_table_has_the_words_with_a_vector_centred_and_of_length_one(vectors):
    table = read_vector_table(str(vectors))

    assert sorted(table.find([*WORDS, "zero", "I", ""]).tolist()) == [-1, -1, -1, 0, 1, 2, 3]
    found = table.get(table.find(WORDS))
    raw = np.stack([spacy.load(vectors).vocab[word].vector for word in WORDS])
    expected = raw - raw.mean(axis=0)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert table.hash() == read_vector_table(str(vectors / "vocab")).hash()


def test_gradients_are_those_of_finite_differences(vectors):
    teacher = make_teacher(vectors).double()
    batch = make_lm_batch(SENTENCES, VOCABULARY)
    X = torch.randn(len(batch.words), 4, dtype=torch.float64, requires_grad=True)

    def loss(X, weight, bias):
        parameters = {"head.weight": weight, "head.bias": bias}
        return torch.func.functional_call(
            _Loss(teacher), {f"teacher.{k}": v for k, v in parameters.items()}, (batch, X)
        )

    head = [p.detach().clone().requires_grad_() for p in teacher.parameters()]
    assert torch.autograd.gradcheck(loss, (X, *head))


class _Loss(torch.nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.teacher = teacher

    def forward(self, batch, X):
        return self.teacher.loss(Lesson(batch, X, [], []))


def test_words_outside_the_table_and_boundaries_are_left_alone(vectors):
    teacher = make_teacher(vectors)
    batch = make_lm_batch(SENTENCES, VOCABULARY)
    X = torch.randn(len(batch.words), 4, requires_grad=True)

    teacher.loss(Lesson(batch, X, [], [])).backward()

    is_taught = X.grad.abs().sum(dim=1) > 0
    expected = [word in WORDS for word in batch.words]
    assert is_taught.tolist() == expected and not all(expected)


def test_a_batch_without_a_known_word_still_has_gradients(vectors):
    teacher = make_teacher(vectors)

    loss = teacher.loss(make_lesson([["tofu"], ["and", "seitan"]]))
    loss.backward()

    assert float(loss.detach()) == 0
    assert all(weight.grad is not None for weight in teacher.parameters())


def test_it_does_not_matter_how_a_batch_is_shared_out(vectors):
    teacher = make_teacher(vectors)
    by_word = {}

    def loss(sentences):
        batch = make_lm_batch(sentences, VOCABULARY)
        rows = [by_word.setdefault(word, torch.randn(4)) for word in batch.words]
        return float(teacher.loss(Lesson(batch, torch.stack(rows), [], [])).detach())

    assert sum(loss([s]) for s in SENTENCES) == pytest.approx(loss(SENTENCES), rel=1e-5)


def test_each_distinct_word_of_a_step_weighs_about_the_same(vectors):
    words = [f"w{i}" for i in range(20_000)]
    nlp = spacy.blank("en")
    for word in (words[0], words[100], words[-1], "unknown"):
        nlp.vocab.set_vector(word, np.ones(3, dtype="float32") + len(word))
    context = TeacherContext(
        BiLMConfig(**SHAPE), Vocabulary([*SPECIAL_WORDS, *words]), batch_tokens=8192
    )
    folder = vectors.parent / "ranks"
    nlp.to_disk(folder)
    block = {"kind": "static_vectors", "path": str(folder)}
    teacher = make_teachers({"words": block}, context)["words"]
    shares = teacher.shares[teacher.table.find([words[0], words[100], words[-1], "unknown"])]

    # The first comes 830 times in 8,192 tokens, that of rank 100 eight times.
    assert shares[0] == pytest.approx(1 / 827, rel=0.01)
    assert shares[1] == pytest.approx(1 / 8.2, rel=0.01)
    assert 0.95 < shares[2] < shares[3] <= 1


def test_the_losses_are_the_language_models_and_the_teachers(vectors):
    teacher, double = make_teacher(vectors), make_teacher(vectors, weight=2.0)
    batch = make_lm_batch(SENTENCES, VOCABULARY)

    alone, taught, more = (make_model(t)(batch)[0].tolist() for t in (None, teacher, double))

    assert alone == taught[:1] == more[:1]
    assert more[1] == pytest.approx(2 * taught[1], rel=1e-5) and taught[1] > 0


def test_the_word_layer_learns_what_the_table_knows(tmp_path, texts, vectors):
    reports = []
    training = {**SMALL["training"], "max_steps": 60, "teachers": block(vectors)}
    train(tmp_path, texts, reports=reports, training=training)

    losses = [report.teachers["words"] for report in reports]
    assert losses[-1] < 0.5 * losses[0]


def block(vectors, **settings):
    return {"words": {"kind": "static_vectors", "path": str(vectors), **settings}}


@pytest.mark.parametrize("accumulate", [1, 2])
def test_stopping_and_going_on_with_a_teacher_changes_nothing(tmp_path, texts, vectors, accumulate):
    training = {**SMALL["training"], "accumulate": accumulate, "teachers": block(vectors)}
    train(tmp_path, texts, "straight", training=training)
    for stop_at in (5, 3, 0):
        train(tmp_path, texts, "stopped", resume=True, stop_at=stop_at, training=training)

    stopped, straight = (read_tensors(tmp_path / name) for name in ("stopped", "straight"))
    assert stopped == straight
    assert any(name.startswith("teachers.words.") for name in straight)


def read_tensors(run):
    last = sorted(run.glob("checkpoints/step-*"))[-1]
    return {
        name: tensor.numpy().tobytes()
        for path in sorted(last.glob("*.safetensors"))
        for name, tensor in safetensors.torch.load_file(path).items()
    }


def test_models_are_written_without_the_head_and_the_path(tmp_path, texts, vectors):
    train(tmp_path, texts, "taught", training={**SMALL["training"], "teachers": block(vectors)})
    train(tmp_path, texts, "plain")

    folders = [tmp_path / name / "model-last" for name in ("taught", "plain")]
    for name in ("model.safetensors", "softmax.safetensors"):
        ours, theirs = (safetensors.torch.load_file(folder / name) for folder in folders)
        assert {k: v.shape for k, v in ours.items()} == {k: v.shape for k, v in theirs.items()}
    text = (folders[0] / "meta.json").read_text()
    assert str(vectors) not in text and "static_vectors" in text


def test_going_on_without_a_teacher_or_with_another_one_is_refused(tmp_path, texts, vectors):
    training = {**SMALL["training"], "teachers": block(vectors)}
    train(tmp_path, texts, stop_at=3, training=training)
    for teachers in ({}, block(vectors, weight=2.0)):
        other = {**training, "teachers": teachers}
        with pytest.raises(ValueError, match="EL096"):
            train(tmp_path, texts, resume=True, training=other)


def test_a_run_from_before_there_were_teachers_goes_on(tmp_path, texts):
    train(tmp_path, texts, stop_at=3)
    (path,) = sorted((tmp_path / "run").glob("checkpoints/step-*/training.json"))[-1:]
    state = srsly.read_json(path)
    assert state["identity"].pop("teachers") == {}
    srsly.write_json(path, state)

    assert train(tmp_path, texts, resume=True).step == SMALL["training"]["max_steps"]


@pytest.mark.parametrize(
    "teachers, message",
    [
        ({"words": {"kind": "nobody"}}, "EL180.*words.*static_vectors"),
        ({"words": "static_vectors"}, "EL180"),
        ({"words": {"kind": ["static_vectors"]}}, "EL180"),
        ({"pop": {"kind": "static_vectors"}}, "EL180.*pop"),
        ({"training": {"kind": "static_vectors"}}, "EL180.*training"),
        ({"words": {"kind": "static_vectors", "wieght": 2}}, "EL181.*wieght"),
        ({"words": {"kind": "static_vectors", "weight": 0}}, "EL181.*weight = 0"),
        ({"words": {"kind": "static_vectors", "weight": "1"}}, "EL181.*weight = '1'"),
        ({"words": {"kind": "static_vectors"}}, "EL182.*no file"),
        ({"words": {"kind": "static_vectors", "path": None}}, "EL182.*no file"),
        ({"words": {"kind": "static_vectors", "path": "{empty}"}}, "EL182.*words: 0"),
        ({"words": {"kind": "static_vectors", "path": "{damaged}"}}, "EL182.*damaged"),
    ],
)
def test_wrong_teachers_are_refused_before_the_text_is_read(tmp_path, texts, teachers, message):
    spacy.blank("en").to_disk(tmp_path / "empty")
    spacy.blank("en").to_disk(tmp_path / "damaged")
    (tmp_path / "damaged" / "vocab" / "vectors").write_bytes(b"nothing of the kind")
    for settings in teachers.values():
        path = settings.get("path") if isinstance(settings, dict) else None
        if path:
            settings["path"] = str(tmp_path / path.strip("{}"))

    with pytest.raises(ValueError, match=message):
        train(tmp_path, texts, training={**SMALL["training"], "teachers": teachers})
    assert not (tmp_path / "run").exists()


def test_a_teacher_of_the_word_layer_is_refused_where_that_is_not_trained(vectors):
    context = TeacherContext(BiLMConfig(**SHAPE), VOCABULARY, 12, train_part="lstms")
    block = {"kind": "static_vectors", "path": str(vectors)}

    with pytest.raises(ValueError, match='EL181.*train_part = "lstms" leaves the word layer'):
        make_teachers({"words": block}, context)


@pytest.mark.parametrize(
    "key2row, data",
    [
        ({"": 0}, np.ones((1, 2))),
        ({1: "x"}, np.ones((1, 2))),
        ({1: 7}, np.ones((1, 2))),
        ({1: -1}, np.ones((1, 2))),
        ({-1: 0}, np.ones((1, 2))),
        ({1: None}, np.ones((1, 2))),
        ({1: 0}, np.full((1, 2), np.inf)),
        ({1: 0}, np.full((1, 2), np.nan)),
    ],
    ids=["word", "row", "outside", "below", "hash", "none", "infinite", "nan"],
)
def test_a_table_of_other_things_is_refused(tmp_path, key2row, data):
    nlp = spacy.blank("xx")
    nlp.vocab.set_vector("ham", np.ones(2, dtype="float32"))
    nlp.to_disk(tmp_path)
    (tmp_path / "vocab" / "key2row").write_bytes(srsly.msgpack_dumps(key2row))
    np.save(tmp_path / "vocab" / "vectors", data.astype("float32"))
    (tmp_path / "vocab" / "vectors.npy").replace(tmp_path / "vocab" / "vectors")

    with pytest.raises(ValueError, match="EL182"):
        read_vector_table(str(tmp_path))


class _Toy(Teacher):
    """Wants the top layers of both directions to be small."""

    def __init__(self, context, *, weight=1.0):
        super().__init__()
        self.weight = weight
        self.scale = torch.nn.Parameter(torch.ones(1))

    def loss(self, lesson):
        return self.weight * sum(
            (self.scale * side[-1]).pow(2).mean(dim=1).sum()
            for side in (lesson.forward, lesson.backward)
        )

    def describe(self):
        return {"weight": self.weight}


def test_others_can_add_a_teacher(tmp_path, texts):
    registered.register("toy", func=_Toy)
    try:
        reports = []
        teachers = {"a": {"kind": "toy", "weight": 10.0}, "b": {"kind": "toy", "weight": 30.0}}
        training = {**SMALL["training"], "teachers": teachers}
        train(tmp_path, texts, reports=reports, training=training)
    finally:
        catalogue._remove(("spacy_elmo", "teachers", "toy"))

    assert reports[0].teachers["b"] == pytest.approx(3 * reports[0].teachers["a"], rel=0.2)
    assert reports[-1].teachers["a"] < reports[0].teachers["a"]
