"""Components of tasks on a GPU: they learn there, and what they learned is read on a processor."""

import pytest
import spacy
import torch
from thinc.api import prefer_gpu, require_cpu

from ..acceptance.toys import assert_same
from ..support.toy_tasks import LISTENER, MODELS, make_examples, make_gold, make_task

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
    assert_same(run(spacy.load(tmp_path), name), outputs, atol=1e-3)


def run(nlp, name):
    """Predictions for docs with nothing but words, and the two texts of a pair."""
    examples = make_examples(nlp, make_gold(nlp, name, 6, seed=1))
    docs = list(nlp.pipe(eg.predicted for eg in examples))
    for doc in docs:
        doc.tensor = doc.tensor.get() if hasattr(doc.tensor, "get") else doc.tensor
    return docs
