"""`spacy pretrain` for the plain row, for a bounded time."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training.pretrain import pretrain
from spacy.util import load_model_from_config
from thinc.api import Config, NumpyOps, set_current_ops

# What spaCy calls the last weights.
WEIGHTS = "model-last.bin"
READER = "rivals.TimedTexts.v1"


def run_pretraining(plain: Config, text: Path, output: Path, minutes: float) -> None:
    """Pretrain a tok2vec from lines of words until the time is over, with spaCy's own loop.

    plain (Config): of a pipeline with a tagger, whose tok2vec is pretrained.
    text (Path): sentences, in a random order.
    output (Path): folder for spaCy's files; the weights are in `WEIGHTS`.
    minutes (float): processor time.
    """
    torch.set_num_threads(1)
    set_current_ops(NumpyOps(use_blis=False))
    spacy.registry.readers(READER, func=lambda: make_reader(text, minutes * 60))
    model = plain["components"]["tagger"]["model"]["tok2vec"]
    config = Config(plain)
    config["components"] = {"tok2vec": {"factory": "tok2vec", "model": model}}
    config["nlp"]["pipeline"] = ["tok2vec"]
    config["pretraining"] = make_pretraining_block()
    config["corpora"]["pretrain"] = {"@readers": READER}
    output.mkdir(parents=True, exist_ok=True)
    filled = load_model_from_config(config, auto_fill=True).config
    pretrain(filled.interpolate(), output, silent=False)


def make_reader(text: Path, seconds: float) -> Callable[[Language], Iterator[Doc]]:
    """RETURNS (Callable[[Language], Iterator[Doc]]): Reads docs until the time is over."""

    def read(nlp: Language) -> Iterator[Doc]:
        end = time.process_time() + seconds
        with text.open(encoding="utf-8") as lines:
            for line in lines:
                if time.process_time() > end:
                    return
                if words := line.split():
                    yield Doc(nlp.vocab, words=words)

    return read


def make_pretraining_block() -> dict[str, Any]:
    """RETURNS (dict[str, Any]): [pretraining]: characters of each word, one pass."""
    return {
        "component": "tok2vec",
        "layer": "",
        "max_epochs": 1,
        "dropout": 0.2,
        "n_save_every": None,
        "n_save_epoch": None,
        "corpus": "corpora.pretrain",
        "batcher": {
            "@batchers": "spacy.batch_by_words.v1",
            "size": 3000,
            "discard_oversize": False,
            "tolerance": 0.2,
        },
        "objective": {
            "@architectures": "spacy.PretrainCharacters.v1",
            "maxout_pieces": 3,
            "hidden_size": 300,
            "n_characters": 4,
        },
        "optimizer": {"@optimizers": "Adam.v1", "learn_rate": 0.001, "use_averages": True},
    }
