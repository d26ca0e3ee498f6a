"""Dropout on a CPU: torch's and Thinc's own against ours, which draws 16 bits for a number.

Prints milliseconds of process time, forward and back where there is a gradient, in turns: the
medians, and their ratio.
"""

import time
from collections.abc import Callable
from statistics import median

import torch
import torch.nn.functional as F
import typer
from thinc.api import NumpyOps

from spacy_elmo.layers.scalar_mix import draw_mask
from spacy_elmo.tasks.shared.dropout import drop

# What the best antecedents of mentions, contexts of questions and mixes of a batch are.
SHAPES = {"coreference": (256, 50, 200), "questions": (24, 250, 512), "a mix": (1000, 1536)}
RATE = 0.3


def main(turns: int = 15, threads: int = 1) -> None:
    """Print a line for each shape and library."""
    torch.set_num_threads(threads)
    ops = NumpyOps()
    for name, shape in SHAPES.items():
        X = torch.randn(shape, requires_grad=True)
        compare(f"torch, {name}", lambda: train(X, F.dropout), lambda: train(X, drop), turns)  # noqa: B023
    mix = SHAPES["a mix"]
    compare(
        "Thinc, a mix",
        lambda: ops.get_dropout_mask(mix, RATE),
        lambda: draw_mask(ops, mix, RATE),
        turns,
    )


def train(X: torch.Tensor, function: Callable[[torch.Tensor, float], torch.Tensor]) -> None:
    """Forward and back."""
    X.grad = None
    function(X, RATE).sum().backward()


def compare(
    name: str, theirs: Callable[[], object], ours: Callable[[], object], turns: int
) -> None:
    """Print a line."""
    times: dict[Callable[[], object], list[float]] = {theirs: [], ours: []}
    for turn in range(turns + 1):
        for function, found in times.items():
            start = time.process_time()
            function()
            # The first turn is a warm-up.
            found += [1000 * (time.process_time() - start)] if turn else []
    before, after = (median(found) for found in times.values())
    print(f"{name}: {before:.1f} ms, ours {after:.1f} ms, ratio {after / before:.2f}")


if __name__ == "__main__":
    typer.run(main)
