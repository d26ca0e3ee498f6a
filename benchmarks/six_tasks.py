"""The six tasks of the paper's table 1 behind one `elmo`, against six pipelines of one task each.

Each component is trained for some updates on its own data (`projects/table1/convert.py` and
`projects/tasks/convert.py` write it), then all read the same docs: questions and contexts of
SQuAD, which are premises and hypotheses, too, so that each component has work to do.
"""

import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import spacy
import torch
import typer
from common import compare_medians, describe_machine, print_table
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_model_from_config
from table1_tasks import PROJECT, TASKS
from thinc.api import NumpyOps, fix_random_seed, set_current_ops

from spacy_elmo.experiments.runs import load_base
from spacy_elmo.experiments.variant_configs import make_variant
from spacy_elmo.experiments.variants import choose_variants

# Folders of data, of which each task has one. The `elmo` of the last, which keeps question and
# context apart, is the one of all.
SIX = ("wnut17", "polarity", "propbank", "ontogum", "snli", "squad")


def train(task: str, corpora: Path, updates: int) -> Language:
    """RETURNS (Language): `elmo` and a component after some updates."""
    component, name = TASKS[task]
    with_elmo = choose_variants("vectors", 2)[1]
    config = make_variant(with_elmo, component, base=load_base(str(PROJECT / name)))
    if component == "elmo_srl":
        # Its data has them; other text has not.
        config["components"][component]["predicates"] = "predicted"
    config["paths"].update({s: str(corpora / task / f"{s}.spacy") for s in ("train", "dev")})
    fix_random_seed(0)
    nlp = load_model_from_config(config, auto_fill=True)
    filled = nlp.config.interpolate()
    training = {key: filled["training"][key] for key in ("batcher", "optimizer")}
    made = spacy.registry.resolve({"corpus": filled["corpora"]["train"], **training})
    examples = list(made["corpus"](nlp))
    nlp.initialize(lambda: examples, sgd=made["optimizer"])
    for i, batch in enumerate(made["batcher"](examples)):
        if i == updates:
            break
        nlp.update(batch, sgd=made["optimizer"], losses={})
    return nlp


def join(pipelines: dict[str, Language], folder: Path) -> Language:
    """folder (Path): for what is saved on the way: a component that is taken from a pipeline stays
    a part of it. RETURNS (Language): one `elmo`, and behind it the components of all."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", source=copy.deepcopy(pipelines["elmo_qa"]))
    for component, source in pipelines.items():
        nlp.add_pipe(component, source=copy.deepcopy(source))
    nlp.to_disk(folder)
    return spacy.load(folder)


def read_docs(pipeline: Language, n_docs: int) -> Iterator[Doc]:
    """YIELDS (Doc): of the dev corpus of a pipeline, with pairs for both components that want
    one."""
    corpus = spacy.registry.resolve({"dev": pipeline.config.interpolate()["corpora"]["dev"]})["dev"]
    for _, eg in zip(range(n_docs), corpus(pipeline)):
        doc = eg.predicted
        doc.spans["premise"], doc.spans["hypothesis"] = doc.spans["context"], doc.spans["question"]
        yield doc


def run(nlp: Language, docs: list[Doc], batch_size: int) -> list[Doc]:
    """RETURNS (list[Doc]): copies of docs, annotated."""
    return list(nlp.pipe([doc.copy() for doc in docs], batch_size=batch_size))


def main(
    corpora: Path = typer.Argument(..., help="Folder with the data of all tasks"),
    updates: int = typer.Option(30, help="Of each component"),
    n_docs: int = typer.Option(40),
    batch_size: int = typer.Option(16),
    threads: int = typer.Option(2),
    turns: int = typer.Option(5),
) -> None:
    """Print a table."""
    torch.set_num_threads(threads)
    # Models keep what they are made with.
    set_current_ops(NumpyOps(use_blis=False))
    print(describe_machine())
    pipelines = {}
    for task in SIX:
        component, _ = TASKS[task]
        pipelines[component] = train(task, corpora, updates)
        print(f"{component}: {updates} updates", flush=True)
    with TemporaryDirectory() as folder:
        six = join(pipelines, Path(folder))
        alone = spacy.load(folder, exclude=list(pipelines))
    docs = list(read_docs(pipelines["elmo_qa"], n_docs))
    named = {"elmo alone": alone, **pipelines, "all six behind one elmo": six}
    ways = {name: partial(run, nlp, docs, batch_size) for name, nlp in named.items()}
    seconds = compare_medians(ways, turns)
    seconds["six pipelines, one after the other"] = sum(seconds[name] for name in pipelines)
    n_tokens = sum(map(len, docs))
    print(f"{n_docs} docs, {n_tokens:,} tokens, {batch_size} at a time, medians of {turns}")
    rows = [
        [name, f"{n_tokens / s:,.0f}", f"{1000 * s / n_docs:.1f}"] for name, s in seconds.items()
    ]
    print_table(["pipeline", "tokens/s", "ms a doc"], rows)


if __name__ == "__main__":
    typer.run(main)
