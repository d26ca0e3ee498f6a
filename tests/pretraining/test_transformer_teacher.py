"""A transformer as teacher: a tiny one of random weights."""

import json
import sys

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.language_model.objective import LanguageModel
from spacy_elmo.language_model.readings import make_lm_batch
from spacy_elmo.language_model.softmax import Softmax
from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from spacy_elmo.pretraining.teachers import Lesson, TeacherContext, make_teachers
from spacy_elmo.pretraining.transformer_teacher import align_tokens, load_encoder

from ..support.helpers import SHAPE
from ..support.runs import change, read_state, train
from ..support.toy_bert import write_bert

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "i", "like", "egg", "##s", "ham", ".", "you", "!"]
VOCABULARY = Vocabulary([*SPECIAL_WORDS, "I", "like", "eggs", "ham", "."])
SENTENCES = [["I", "like", "eggs", "."], ["ham"], ["eggs", "like", "ham"]]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A folder with a BERT of two layers and its tokenizer."""
    settings = {"hidden_size": 6, "num_hidden_layers": 2, "max_position_embeddings": 16}
    return write_bert(tmp_path_factory.mktemp("bert"), PIECES, **settings)


def make_teacher(bert, state_steps=0, **settings):
    torch.manual_seed(0)
    context = TeacherContext(BiLMConfig(**SHAPE), VOCABULARY, 12, state_steps)
    block = {"kind": "transformer", "path": str(bert), **settings}
    return make_teachers({"context": block}, context)["context"]


def make_lesson(sentences, dtype=torch.float32):
    """Layers of random numbers, for a biLM of the depth of `SHAPE`."""
    torch.manual_seed(1)
    batch = make_lm_batch(sentences, VOCABULARY)
    layers = [
        torch.randn(batch.n_targets, SHAPE["width"] // 2, dtype=dtype, requires_grad=True)
        for _ in range(2 * SHAPE["depth"])
    ]
    return Lesson(batch, torch.zeros(0), layers[: SHAPE["depth"]], layers[SHAPE["depth"] :])


def test_a_words_vector_is_the_mean_of_its_pieces(bert):
    encoder = load_encoder(str(bert), 1)
    model = transformers.BertModel.from_pretrained(bert).eval()
    ids = torch.tensor([[PIECES.index(p) for p in ("[CLS]", "i", "like", "egg", "##s", "[SEP]")]])

    vectors, known = encoder.read([["ham"], ["I", "like", "eggs"]], CPU)

    with torch.no_grad():
        hidden = model(ids, output_hidden_states=True).hidden_states[1][0]
    assert known.tolist() == [0, 1, 2, 3]
    expected = torch.stack([hidden[1], hidden[2], hidden[3:5].mean(dim=0)])
    torch.testing.assert_close(vectors[1:], expected)


def test_words_without_a_piece_or_not_read_as_a_whole_are_left_out(bert):
    encoder = load_encoder(str(bert), 1)
    # 14 places: the fourteenth word's first piece is the last that fits; "ham" and "hams" go on.
    sentences = [
        ["ham"] * 13 + ["eggs"],
        ["ham"] * 12 + ["eggs"],
        ["I", "hammer", "\u200b", "like"],
    ]

    _, known = encoder.read(sentences, CPU)

    assert known.tolist() == [*range(13), *range(14, 27), 27, 30]


def write_roberta(folder):
    """Write a folder with a RoBERTa of two layers and 16 places, of which two are no places."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = {piece: i for i, piece in enumerate([*names, *letters])}
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    files = str(folder / "vocab.json"), str(folder / "merges.txt")
    transformers.RobertaTokenizerFast(*files).save_pretrained(folder)
    sizes = {"hidden_size": 6, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.RobertaConfig(
        vocab_size=len(vocabulary), num_hidden_layers=2, max_position_embeddings=16, **sizes
    )
    transformers.RobertaModel(config).save_pretrained(folder)


def test_a_roberta_reads_words_with_a_space_before_each(tmp_path):
    write_roberta(tmp_path / "roberta")
    encoder = load_encoder(str(tmp_path / "roberta"), 1)

    _, known = encoder.read([["a"] * 20], CPU)

    # Of 16 places two are before the first; of those left, two are the transformer's own, and
    # a word has two pieces.
    assert encoder.n_places == 14 and known.tolist() == list(range(6))


def test_tokens_are_found_in_both_readings():
    batch = make_lm_batch(SENTENCES, VOCABULARY)
    words = np.array(batch.words)

    sequences, forward, backward = align_tokens(batch, np.array([0, 2]))

    assert sequences == SENTENCES[:2]
    for rows, reading in ((forward, batch.forward), (backward, batch.backward)):
        assert words[reading.inputs[rows]].tolist() == [*sequences[0], *sequences[1]]


def test_gradients_are_those_of_finite_differences(bert):
    teacher = make_teacher(bert, share=1.0, student_layer=2).double()
    lesson = make_lesson(SENTENCES, torch.float64)

    def loss(forward, backward):
        layers = [lesson.forward[0], forward], [lesson.backward[0], backward]
        return teacher.loss(Lesson(lesson.batch, lesson.vectors, *layers))

    assert torch.autograd.gradcheck(loss, (lesson.forward[1], lesson.backward[1]))


def test_a_share_of_the_sequences_has_the_loss_of_all_of_them_on_average(bert):
    every, some = (make_teacher(bert, share=share) for share in (1.0, 0.5))
    lesson = make_lesson(SENTENCES)

    losses = [float(some.loss(lesson).detach()) for _ in range(300)]

    assert np.mean(losses) == pytest.approx(float(every.loss(lesson).detach()), rel=0.15)
    assert min(losses) == 0  # none of them drawn


def test_the_loss_does_not_depend_on_how_a_batch_is_divided(bert):
    teacher = make_teacher(bert, share=1.0)
    torch.manual_seed(0)
    config = BiLMConfig(**SHAPE)
    softmax = Softmax(config.direction_width, len(VOCABULARY))
    model = LanguageModel(BiLM(config), softmax, teachers={"context": teacher})

    def loss(sentences):
        return float(model(make_lm_batch(sentences, VOCABULARY))[0][1].detach())

    assert sum(loss([s]) for s in SENTENCES) == pytest.approx(loss(SENTENCES), rel=1e-4)


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, texts, bert):
    teachers = {"context": {"kind": "transformer", "path": str(bert), "share": 0.5}}
    changes = change("training", teachers=teachers)
    reports = []
    train(tmp_path, texts, "straight", reports=reports, **changes)
    for stop_at in (5, 0):
        train(tmp_path, texts, "stopped", resume=True, stop_at=stop_at, **changes)

    assert read_state(tmp_path / "stopped") == read_state(tmp_path / "straight")
    assert reports[-1].teachers["context"] < reports[0].teachers["context"]
    meta = (tmp_path / "straight" / "model-last" / "meta.json").read_text()
    assert str(bert) not in meta and '"layer":2' in meta.replace(" ", "")


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"layer": 3}, "EL181.*layer = 3.*at most 2"),
        ({"layer": 1.5}, "EL181.*layer = 1.5.*whole"),
        ({"student_layer": 3}, "EL181.*student_layer = 3.*at most 2"),
        ({"share": 0}, "EL181.*share = 0"),
        ({"weight": -1.0}, "EL181.*weight = -1.0"),
        ({"path": "nowhere"}, "EL184.*no such folder"),
        ({"state_steps": 5}, "EL181.*state_steps = 0, not 5"),
    ],
)
def test_wrong_settings_are_refused(bert, settings, message):
    with pytest.raises(ValueError, match=message):
        make_teacher(bert, **settings)


def test_a_transformer_of_another_language_is_warned_of(bert):
    words = ["나는", "책을", "읽는다"]
    context = TeacherContext(BiLMConfig(**SHAPE), Vocabulary([*SPECIAL_WORDS, *words, "I"]), 12, 0)
    block = {"context": {"kind": "transformer", "path": str(bert)}}
    with pytest.warns(UserWarning, match="WL068.*knows 1 of the 4 most frequent words"):
        teacher = make_teachers(block, context)["context"]
    batch = make_lm_batch([words], context.vocabulary)
    sides = [[torch.randn(3, SHAPE["width"] // 2)] * SHAPE["depth"] for _ in range(2)]
    assert teacher.loss(Lesson(batch, torch.zeros(0), *sides)) == 0


def test_without_the_package_the_extra_is_named(bert, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ValueError, match=r"EL038.*spacy-elmo\[teachers\]"):
        make_teacher(bert)
