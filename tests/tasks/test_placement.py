"""ELMo before the encoder that a task has of its own, behind it, or both (table 3)."""

import pytest
import spacy
from spacy.util import fix_random_seed

from spacy_elmo.tasks.shared.torch_layer import SizedModule

from ..support.helpers import SHAPE, make_nlp
from ..support.toy_roles import add_srl, make_doc
from ..support.toy_tasks import ESIM, HASHED, LISTENER, QA, make_examples, make_gold, train

MODELS = {
    "elmo_entailment": ESIM,
    "elmo_qa": QA,
}
WORDS_WIDTH = HASHED["width"]
# All layers of the listener side by side.
ELMO_WIDTH = SHAPE["width"] * (SHAPE["depth"] + 1)
PLACES = {
    "none": {},
    "input": {"input": LISTENER},
    "output": {"output": LISTENER},
    "both": {"input": LISTENER, "output": LISTENER},
}


def make_tok2vec(places):
    return {"@architectures": "spacy-elmo.ElmoTok2Vec.v2", "embed": HASHED, **PLACES[places]}


def find_body(nlp, name):
    models = (shim._model for node in nlp.get_pipe(name).model.walk() for shim in node.shims)
    (module,) = [module for module in models if isinstance(module, SizedModule)]
    return module.body


def count_widths(places):
    """Numbers of a token that the encoder reads, and those that go past it."""
    has = ["input" in PLACES[places], "output" in PLACES[places]]
    return WORDS_WIDTH + has[0] * ELMO_WIDTH, has[1] * ELMO_WIDTH


def assert_loads_same(nlp, name, docs, folder):
    nlp.to_disk(folder)
    loaded = spacy.load(folder)
    pair = [(each, list(each.pipe(doc.copy() for doc in docs))) for each in (nlp, loaded)]
    expected, found = (str(each.get_pipe(name).predict(own)) for each, own in pair)
    assert found == expected


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("places", PLACES)
def test_output_goes_past_the_encoder_of_pairs(name, places, tmp_path):
    fix_random_seed(0)
    nlp = make_nlp()
    nlp.add_pipe(name, config={"model": {**MODELS[name], "tok2vec": make_tok2vec(places)}})
    gold = make_gold(nlp, name)

    assert train(nlp, gold, 2)[name] > 0
    body = find_body(nlp, name)
    # What is read beside the vectors.
    n_more = body.match.embedding_dim
    widths = body.encode.lstm.layers[0].input_size - n_more, body.encode.skip_width
    assert widths == count_widths(places)
    assert_loads_same(nlp, name, [eg.predicted for eg in make_examples(nlp, gold)], tmp_path)


@pytest.mark.parametrize("places", PLACES)
def test_output_goes_past_the_lstm_of_roles(places, tmp_path):
    fix_random_seed(0)
    nlp = make_nlp()
    add_srl(nlp, make_tok2vec(places), width=12)
    gold = [make_doc(nlp.vocab, "Sam likes ham", {"V": (1, 2), "A0": (0, 1), "A1": (2, 3)})] * 3

    assert train(nlp, gold, 2)["elmo_srl"] > 0
    body = find_body(nlp, "elmo_srl")
    assert (body.project.in_features, body.skip_width) == count_widths(places)
    assert_loads_same(nlp, "elmo_srl", [nlp.make_doc("Sam likes ham")], tmp_path)
