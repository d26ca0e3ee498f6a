"""Messages that components read: `from_bytes`, then one doc."""

from pathlib import Path
from typing import Any, Callable, List

import numpy as np
import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.files import DIGESTS_FILE
from spacy_elmo.pipeline.saving import SavedPipe
from spacy_elmo.senses.centroids import Sums
from spacy_elmo.senses.sense_model import SenseModel
from spacy_elmo.senses.wordnet import read_wordnet

from ..checkpoints.test_damage import make_folder
from ..support.helpers import make_nlp
from ..support.toy_roles import add_srl, make_corpus, make_examples
from ..support.toy_tasks import make_gold, make_task
from ..support.toy_wordnet import MONEY, RIVER, write_wordnet
from .target import Job

_WIDTH = 4


def _strip(message: bytes) -> bytes:
    """A message without digests, as an older version wrote it."""
    files = srsly.msgpack_loads(message)
    files.pop("digests", None)
    files.pop(DIGESTS_FILE, None)
    return srsly.msgpack_dumps(files)


def _read_with(nlp: Language, name: str, make_docs: Callable[[], List[Doc]]) -> Job:
    pipe: Any = nlp.get_pipe(name)
    # The vocabulary is read by spaCy itself.
    without = {"exclude": ["vocab"]} if isinstance(pipe, SavedPipe) else {}
    whole = _strip(pipe.to_bytes(**without))

    def run(data: bytes) -> object:
        # So that an input depends on none before it.
        pipe.from_bytes(whole, **without)
        pipe.from_bytes(data, **without)
        return [pipe(doc) for doc in make_docs()]

    return Job([whole], run)


def elmo(folder: Path) -> Job:
    nlp = make_nlp()
    return _read_with(nlp, "elmo", lambda: [nlp.make_doc("I like green eggs")])


def elmo_lm(folder: Path) -> Job:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("elmo_lm")
    pipe.from_disk(_as_component(folder))
    return _read_with(nlp, "elmo_lm", lambda: [nlp.make_doc("I like ham")])


def _as_component(folder: Path) -> Path:
    make_folder(folder / "language_model", "adaptive")
    return folder


def elmo_senses(folder: Path) -> Job:
    inventory = read_wordnet(write_wordnet(folder / "dict"))
    sums = Sums(1, _WIDTH)
    for i, key in enumerate((RIVER, MONEY, "bank|")):
        sums.add(key, np.eye(_WIDTH, dtype="float32")[None, i])
    pipe: Any = spacy.blank("en").add_pipe("elmo_senses")
    pipe.model = SenseModel(inventory, sums.make(0, 0.5))

    def run(data: bytes) -> object:
        model = pipe.from_bytes(data).get_model()
        model.require_layers(1, _WIDTH)
        keys = [model.choose(form, np.ones((1, _WIDTH))) for form in ("banks", "run", "ham")]
        return [model.get_gloss(key) for key in keys]

    # Those of version 0.1.0 are two parts, in no message.
    older = srsly.msgpack_dumps(srsly.msgpack_loads(pipe.model.to_bytes())[:2])
    return Job([_strip(pipe.to_bytes()), older], run)


def _task(name: str) -> Callable[[Path], Job]:
    def make(folder: Path) -> Job:
        nlp = make_task(name, n_updates=1, with_elmo=False)
        docs = [doc.to_bytes(exclude=["cats"]) for doc in make_gold(nlp, name, 2)]
        return _read_with(nlp, name, lambda: [Doc(nlp.vocab).from_bytes(doc) for doc in docs])

    return make


elmo_coref = _task("elmo_coref")
elmo_entailment = _task("elmo_entailment")
elmo_qa = _task("elmo_qa")


def elmo_srl(folder: Path) -> Job:
    nlp = spacy.blank("en")
    add_srl(nlp, width=8, depth=1)
    examples = make_examples(make_corpus(nlp.vocab, 4))
    nlp.initialize(lambda: examples)
    return _read_with(nlp, "elmo_srl", lambda: [nlp.make_doc("Ann eats ham .")])
