"""Teachers: their losses and gradients, and that a run with them resumes exactly."""

import catalogue
import numpy as np
import pytest
import safetensors.torch
import spacy
import srsly
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.language_model.readings import make_lm_batch
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
from ..support.runs import change, read_state, train

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


def make_teacher(vectors, vocabulary=VOCABULARY, batch_tokens=12, **settings):
    torch.manual_seed(0)
    context = TeacherContext(BiLMConfig(**SHAPE), vocabulary, batch_tokens)
    block = {"kind": "static_vectors", "path": str(vectors), **settings}
    return make_teachers({"words": block}, context)["words"]


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
        teacher.head.forward = lambda inputs: torch.nn.functional.linear(inputs, weight, bias)
        return teacher.loss(Lesson(batch, X, [], []))

    head = [p.detach().clone().requires_grad_() for p in teacher.parameters()]
    assert torch.autograd.gradcheck(loss, (X, *head))


@pytest.mark.parametrize("sentences", [SENTENCES, [["tofu"], ["and", "seitan"]]])
def test_words_outside_the_table_and_boundaries_are_left_alone(vectors, sentences):
    teacher = make_teacher(vectors)
    batch = make_lm_batch(sentences, VOCABULARY)
    X = torch.randn(len(batch.words), 4, requires_grad=True)

    teacher.loss(Lesson(batch, X, [], [])).backward()

    is_taught = X.grad.abs().sum(dim=1) > 0
    assert is_taught.tolist() == [word in WORDS for word in batch.words]
    assert all(weight.grad is not None for weight in teacher.parameters())


def test_the_loss_does_not_depend_on_how_a_batch_is_divided(vectors):
    teacher = make_teacher(vectors)
    by_word = {}

    def loss(sentences):
        batch = make_lm_batch(sentences, VOCABULARY)
        rows = [by_word.setdefault(word, torch.randn(4)) for word in batch.words]
        return float(teacher.loss(Lesson(batch, torch.stack(rows), [], [])).detach())

    assert sum(loss([s]) for s in SENTENCES) == pytest.approx(loss(SENTENCES), rel=1e-5)


def test_each_distinct_word_of_a_step_weighs_about_the_same(tmp_path):
    words = [f"w{i}" for i in range(20_000)]
    nlp = spacy.blank("en")
    for word in (words[0], words[100], words[-1], "unknown"):
        nlp.vocab.set_vector(word, np.ones(3, dtype="float32") + len(word))
    nlp.to_disk(tmp_path)
    teacher = make_teacher(tmp_path, Vocabulary([*SPECIAL_WORDS, *words]), batch_tokens=8192)
    shares = teacher.shares[teacher.table.find([words[0], words[100], words[-1], "unknown"])]

    # The first comes 830 times in 8,192 tokens, that of rank 100 eight times.
    assert shares[0] == pytest.approx(1 / 827, rel=0.01)
    assert shares[1] == pytest.approx(1 / 8.2, rel=0.01)
    assert 0.95 < shares[2] < shares[3] <= 1


def block(vectors, **settings):
    return {"words": {"kind": "static_vectors", "path": str(vectors), **settings}}


def test_a_resumed_run_with_a_teacher_equals_an_uninterrupted_one(tmp_path, texts, vectors):
    changes = change("training", max_steps=20, accumulate=2, teachers=block(vectors))
    reports = []
    train(tmp_path, texts, "straight", reports=reports, **changes)
    for stop_at in (5, 0):
        train(tmp_path, texts, "stopped", resume=True, stop_at=stop_at, **changes)

    assert reports[-1].teachers["words"] < reports[0].teachers["words"]
    straight = read_state(tmp_path / "straight")
    assert read_state(tmp_path / "stopped") == straight
    assert any(name.startswith("teachers.words.") for _, name in straight[0])
    # Models are written without the head and the path.
    folder = tmp_path / "stopped" / "model-last"
    for name in ("model.safetensors", "softmax.safetensors"):
        assert not any("teacher" in key for key in safetensors.torch.load_file(folder / name))
    text = (folder / "meta.json").read_text()
    assert str(vectors) not in text and "static_vectors" in text


def test_resuming_without_a_teacher_or_with_another_one_is_refused(tmp_path, texts, vectors):
    train(tmp_path, texts, stop_at=1, **change("training", teachers=block(vectors)))
    for teachers in ({}, block(vectors, weight=2.0)):
        with pytest.raises(ValueError, match="EL096"):
            train(tmp_path, texts, resume=True, **change("training", teachers=teachers))


@pytest.mark.parametrize(
    "teachers, message",
    [
        ({"words": {"kind": "nobody"}}, "EL181.*words.*static_vectors"),
        ({"words": "static_vectors"}, "EL181"),
        ({"pop": {"kind": "static_vectors"}}, "EL181.*pop"),
        ({"words": {"kind": "static_vectors", "wieght": 2}}, "EL181.*wieght"),
        ({"words": {"kind": "static_vectors", "weight": 0}}, "EL181.*weight = 0"),
        ({"words": {"kind": "static_vectors", "weight": "1"}}, "EL181.*weight = '1'"),
        ({"words": {"kind": "static_vectors"}}, "EL087.*no file"),
    ],
)
def test_wrong_teachers_are_refused_before_the_text_is_read(tmp_path, texts, teachers, message):
    with pytest.raises(ValueError, match=message):
        train(tmp_path, texts, **change("training", teachers=teachers))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "key2row, number",
    [({}, 1.0), ({"": 0}, 1.0), ({1: 7}, 1.0), ({1: -1}, 1.0), ({1: None}, 1.0), ({1: 0}, np.nan)],
)
def test_damaged_vectors_are_refused(tmp_path, key2row, number):
    nlp = spacy.blank("xx")
    nlp.vocab.set_vector("ham", np.ones(2, dtype="float32"))
    nlp.to_disk(tmp_path)
    (tmp_path / "vocab" / "key2row").write_bytes(srsly.msgpack_dumps(key2row))
    with (tmp_path / "vocab" / "vectors").open("wb") as file:
        np.save(file, np.full((1, 2), number, dtype="float32"))

    with pytest.raises(ValueError, match="EL087"):
        read_vector_table(str(tmp_path))


class SmallOutputs(Teacher):
    """A teacher of another package: the top layers should be small."""

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


def test_other_packages_can_add_a_teacher(tmp_path, texts, monkeypatch):
    monkeypatch.setitem(catalogue.REGISTRY, (*registered.namespace, "small"), SmallOutputs)
    reports = []
    teachers = {"a": {"kind": "small", "weight": 10.0}, "b": {"kind": "small", "weight": 30.0}}
    train(tmp_path, texts, reports=reports, **change("training", teachers=teachers))

    assert reports[0].teachers["b"] == pytest.approx(3 * reports[0].teachers["a"], rel=0.2)
    assert reports[-1].teachers["a"] < reports[0].teachers["a"]
