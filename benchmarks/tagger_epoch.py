"""Training with a frozen biLM: seconds of an epoch of a tagger, with spaCy's plain tok2vec,
with ELMo, and with ELMo and its activation cache; and what Thinc's default matrix products
(BLIS) cost against NumPy's.
"""

import time
from pathlib import Path
from statistics import median

import spacy
import typer
from common import describe_machine, print_table
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config, minibatch
from thinc.api import NumpyOps, set_current_ops

from spacy_elmo.pipeline.presets import make_config

CACHE = {"@misc": "spacy-elmo.ActivationCache.v1"}


def make_pipeline(
    preset: str, examples: list[Example], *, cached: bool = False, blis: bool = True
) -> Language:
    """RETURNS (Language): a tagger behind ELMo; with spaCy's default tok2vec for "plain"."""
    fix_random_seed(0)
    # Models keep what they are made with.
    set_current_ops(NumpyOps(use_blis=blis))
    if preset == "plain":
        nlp = spacy.blank("en")
        nlp.add_pipe("tok2vec")
        listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96}
        tagger = {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}
        nlp.add_pipe("tagger", config={"model": tagger})
    else:
        config = make_config(preset, ["tagger"])
        if cached:
            config["initialize"]["components"] = {"elmo": {"activation_cache": CACHE}}
        nlp = load_model_from_config(config, auto_fill=True)
    nlp.initialize(lambda: examples)
    return nlp


def run_epoch(nlp: Language, examples: list[Example], batch_size: int) -> float:
    """RETURNS (float): seconds of a pass over the examples, in batches of a size."""
    optimizer = nlp._optimizer
    started = time.perf_counter()
    for batch in minibatch(examples, batch_size):
        fresh = [Example(eg.x.copy(), eg.y) for eg in batch]
        nlp.update(fresh, sgd=optimizer, losses={})
    return time.perf_counter() - started


def main(
    corpus: Path = typer.Argument(..., help="A .spacy file with tags"),
    tokens: int = typer.Option(40_000),
    batch_size: int = typer.Option(64, help="Docs in a batch"),
    epochs: int = typer.Option(4, help="Counted, after the first"),
) -> None:
    """Print a table."""
    print(describe_machine())
    examples, n_tokens = [], 0
    blank = spacy.blank("en")
    for doc in DocBin().from_disk(corpus).get_docs(blank.vocab):
        if n_tokens >= tokens:
            break
        n_tokens += len(doc)
        examples.append(Example(blank.make_doc(doc.text), doc))
    kinds = {
        "plain tok2vec": ("plain", {}),
        "plain tok2vec, NumPy's products": ("plain", {"blis": False}),
        "ELMo alone": ("task_mix", {}),
        "ELMo alone, cached": ("task_mix", {"cached": True}),
        "ELMo and word features": ("word_features", {}),
        "ELMo and word features, cached": ("word_features", {"cached": True}),
        "the same, NumPy's products": ("word_features", {"cached": True, "blis": False}),
        "ELMo and word features, fine-tuned": ("fine_tune", {}),
    }
    pipelines = {
        name: make_pipeline(preset, examples, **options)
        for name, (preset, options) in kinds.items()
    }
    first = {name: run_epoch(nlp, examples, batch_size) for name, nlp in pipelines.items()}
    later: dict[str, list[float]] = {name: [] for name in pipelines}
    for _ in range(epochs):
        for name, nlp in pipelines.items():
            later[name].append(run_epoch(nlp, examples, batch_size))
    seconds = {name: median(found) for name, found in later.items()}
    print(f"{n_tokens} tokens in {len(examples)} docs")
    print_table(
        ["tagger", "first epoch, s", "later epochs, s", "times plain"],
        [
            [name, f"{first[name]:.1f}", f"{s:.1f}", f"{s / seconds['plain tok2vec']:.2f}"]
            for name, s in seconds.items()
        ],
    )


if __name__ == "__main__":
    typer.run(main)
