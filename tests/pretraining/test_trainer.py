"""One step of one process."""

import math

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.language_model.objective import LanguageModel
from spacy_elmo.language_model.readings import make_lm_batch
from spacy_elmo.language_model.softmax import make_softmax
from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, UNK_WORD, Vocabulary
from spacy_elmo.pretraining.config import TrainingSettings
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.stream import Step
from spacy_elmo.pretraining.trainer import Trainer

from ..support.helpers import SHAPE

VOCABULARY = Vocabulary([*SPECIAL_WORDS, "ham", "eggs"])


def make_trainer(kind="full"):
    torch.manual_seed(0)
    bilm = BiLM(BiLMConfig(**SHAPE))
    settings = {"cutoffs": [4]} if kind == "adaptive" else {}
    softmax = make_softmax(kind, bilm.config.direction_width, len(VOCABULARY), **settings)
    model = LanguageModel(bilm, softmax)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    idle = make_lm_batch([[UNK_WORD]], VOCABULARY)
    processes = Processes(0, 1, torch.device("cpu"))
    return Trainer(model, optimizer, TrainingSettings(), processes, idle)


def make_step(*sequences):
    batches = [make_lm_batch(sequences, VOCABULARY)] if sequences else []
    return Step(batches, 10, False, {})


@pytest.mark.parametrize("number", [math.inf, math.nan, 3e38])
@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_a_process_without_sequences_adds_nothing(kind, number):
    trainer = make_trainer(kind)
    # As a row of a table that only its batch reads may be.
    with torch.no_grad():
        trainer.model.bilm.char_cnn.embedding.weight.fill_(number)
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}

    losses, norm, _ = trainer.step(make_step(), 0, 0.1, None)

    assert (losses, norm) == ([0.0], 0.0)
    for name, weight in trainer.model.named_parameters():
        assert torch.equal(weight.nan_to_num(), before[name].nan_to_num()), name


def test_a_process_with_sequences_changes_every_weight():
    trainer = make_trainer()
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}

    losses, norm, _ = trainer.step(make_step(["ham", "eggs"], ["eggs"]), 0, 0.1, None)

    assert losses[0] > 0 and norm > 0
    for name, weight in trainer.model.named_parameters():
        assert not torch.equal(weight, before[name]), name


def test_a_step_without_a_finite_gradient_changes_nothing():
    trainer = make_trainer()
    with torch.no_grad():
        trainer.model.bilm.char_cnn.embedding.weight[6] = math.nan
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}

    _, norm, state = trainer.step(make_step(["ham", "\x06"]), 0, 0.1, None)

    assert not math.isfinite(norm) and state is None
    for name, weight in trainer.model.named_parameters():
        assert torch.equal(weight.nan_to_num(), before[name].nan_to_num()), name
