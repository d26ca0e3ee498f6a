"""Components of tasks on a GPU: they learn there, and what they learned is read on a processor."""

import pytest
import spacy
import torch
from thinc.api import prefer_gpu, require_cpu

from spacy_elmo.tasks.entailment.elmo_entailment import ElmoEntailment
from spacy_elmo.tasks.qa.elmo_qa import ElmoQA

from ..support.toy_tasks import (
    LISTENER,
    MODELS,
    make_examples,
    make_gold,
    make_task,
    read_output,
)

MIXED = {"tok2vec": {**LISTENER, "output": "mix"}}


@pytest.mark.gpu
# Of how Thinc gives arrays to torch and puts weights back into an LSTM, and of torch itself.
@pytest.mark.filterwarnings(
    "ignore:This function is deprecated", "ignore:RNN module weights", "ignore:Sparse invariant"
)
@pytest.mark.parametrize("name, model", [*((name, {}) for name in MODELS), ("elmo_coref", MIXED)])
def test_a_task_learns_on_a_gpu_and_is_read_on_a_processor(name, model, tmp_path, monkeypatch):
    # Else its LSTMs multiply in 10 bits.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    assert prefer_gpu()
    try:
        nlp = make_task(name, n_updates=60, **model)
        outputs = run(nlp, name)
        nlp.to_disk(tmp_path)
    finally:
        require_cpu()
    assert outputs == run(spacy.load(tmp_path), name)


def run(nlp, name):
    """Predictions for docs with nothing but words, and the two texts of a pair."""
    for pipe in (ElmoEntailment, ElmoQA):
        pipe.register_extensions()
    examples = make_examples(nlp, make_gold(nlp, name, 6, seed=1))
    docs = list(nlp.pipe(eg.predicted for eg in examples))
    chains = [
        sorted((key, s.start, s.end) for key in doc.spans for s in doc.spans[key]) for doc in docs
    ]
    return [*zip(read_output(docs), chains)]
