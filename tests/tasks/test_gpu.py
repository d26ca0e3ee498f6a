"""Components of tasks on a GPU: they learn there, and what they learned is read on a processor."""

import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import prefer_gpu, require_cpu

from spacy_elmo.tasks.entailment.elmo_entailment import ElmoEntailment
from spacy_elmo.tasks.entailment.readers import PAIR_NAMES
from spacy_elmo.tasks.qa.elmo_qa import ElmoQA
from spacy_elmo.tasks.qa.network import PAIR_NAMES as QA_NAMES

from ..support.toy_tasks import LISTENER, MODELS, make_gold, make_task, read_output

MIXED = "elmo_coref with a mix"
NAMES = [*MODELS, MIXED]


@pytest.mark.gpu
# Of how Thinc gives arrays to torch and puts weights back into an LSTM, and of torch itself.
@pytest.mark.filterwarnings(
    "ignore:This function is deprecated", "ignore:RNN module weights", "ignore:Sparse invariant"
)
@pytest.mark.parametrize("name", NAMES)
def test_a_task_learns_on_a_gpu_and_is_read_on_a_processor(name, tmp_path, monkeypatch):
    # Else its LSTMs multiply in 10 bits.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    assert prefer_gpu()
    try:
        nlp = learn(name)
        outputs = run(nlp, name)
        nlp.to_disk(tmp_path)
    finally:
        require_cpu()
    assert outputs == run(spacy.load(tmp_path), name)


def learn(name):
    """RETURNS: A pipeline that was trained."""
    if name == MIXED:
        listener = {**LISTENER, "output": "mix"}
        return make_task("elmo_coref", n_updates=60, tok2vec=listener)
    return make_task(name, n_updates=60)


def run(nlp, name):
    """Predictions for docs with nothing but words."""
    for pipe in (ElmoEntailment, ElmoQA):
        pipe.register_extensions()
    docs = [copy_words(doc) for doc in make_gold(nlp, name.split()[0], 6, seed=1)]
    docs = list(nlp.pipe(docs))
    chains = [
        sorted((key, s.start, s.end) for key in doc.spans for s in doc.spans[key]) for doc in docs
    ]
    return [*zip(read_output(docs), chains)]


def copy_words(doc):
    """RETURNS: The words of a doc, and the two texts of a pair."""
    copied = Doc(doc.vocab, words=[t.text for t in doc], spaces=[bool(t.whitespace_) for t in doc])
    for name in (*PAIR_NAMES, *QA_NAMES):
        if name in doc.spans:
            copied.spans[name] = [copied[s.start : s.end] for s in doc.spans[name]]
    return copied
