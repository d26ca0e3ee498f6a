"""Components of tasks on a GPU: they learn there, and what they learned is read on a processor."""

import pytest
import spacy
import torch
from thinc.api import prefer_gpu, use_ops
from thinc.shims import pytorch

from spacy_elmo.tasks.shared.bilstm import bilstm

from ..support import toy_roles
from ..support.helpers import make_nlp
from ..support.toy_tasks import MODELS, make_gold, make_task, read_output

ROLES = "elmo_srl"


def test_the_network_lies_where_thinc_says(monkeypatch):
    monkeypatch.setattr(pytorch, "get_torch_default_device", lambda: torch.device("meta"))

    model = bilstm(8)
    model.set_dim("nI", 3)
    model.initialize()

    assert {p.device.type for p in model.shims[0]._model.parameters()} == {"meta"}


@pytest.mark.gpu
# Of how Thinc gives arrays to torch and puts weights back into an LSTM, and of torch itself.
@pytest.mark.filterwarnings(
    "ignore:This function is deprecated", "ignore:RNN module weights", "ignore:Sparse invariant"
)
@pytest.mark.parametrize("name", [*MODELS, ROLES])
def test_a_task_learns_on_a_gpu_and_is_read_on_a_processor(name, tmp_path, monkeypatch):
    # Else its LSTMs multiply in 10 bits.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    assert prefer_gpu()
    with use_ops("cupy"):
        nlp, outputs = learn(name)
        nlp.to_disk(tmp_path)
    with use_ops("numpy"):
        read = spacy.load(tmp_path)
        assert outputs == list(map(repr, run(read, name)))


def learn(name):
    """RETURNS: A pipeline that was trained, and what it says."""
    if name == ROLES:
        nlp = make_nlp()
        toy_roles.add_srl(nlp)
        toy_roles.train(nlp, toy_roles.make_examples(toy_roles.make_corpus(nlp.vocab)), 10)
    else:
        nlp = make_task(name, n_updates=10)
    return nlp, list(map(repr, run(nlp, name)))


def run(nlp, name):
    """RETURNS: What a pipeline says of some docs."""
    if name == ROLES:
        docs = [doc.copy() for doc in toy_roles.make_corpus(nlp.vocab)]
        return [toy_roles.read(doc) for doc in nlp.pipe(docs)]
    return read_output(list(nlp.pipe(make_gold(nlp, name, 6, seed=1))))
