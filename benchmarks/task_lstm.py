"""Training steps of the tasks' LSTMs: sequences padded in groups against packed ones.

Prints milliseconds, forward and back, in turns: the medians, and their ratio.
"""

import time
from statistics import median

import numpy as np
import torch
import typer
from torch import nn

from spacy_elmo.tasks.shared.sequence_lstm import pack_sequences, pad_sequences, run_lstm

# Width of the input and of the output, sequences: as in the configs of projects/table1.
SHAPES = {
    "roles": (128, 128, 60),
    "roles, a batch of 1,000 words": (128, 128, 200),
    "entailment": (200, 100, 32),
    "questions": (200, 100, 16),
    "entities": (600, 100, 40),
}
LONGEST = 120


def main(turns: int = 15, threads: int = 1) -> None:
    """Print a line for each shape."""
    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)
    for name, (nI, nO, n_sequences) in SHAPES.items():
        torch.manual_seed(0)
        lstm = nn.LSTM(nI, nO)
        times: dict[str, list[float]] = {"packed": [], "padded": []}
        for _ in range(turns):
            # Sentences: some 27 tokens in the mean, a few long ones.
            lengths = np.clip(rng.gamma(3, 9, n_sequences).astype(int), 2, LONGEST).tolist()
            X = torch.randn(sum(lengths), nI, requires_grad=True)
            for way, make_order in ("packed", pack_sequences), ("padded", pad_sequences):
                start = time.perf_counter()
                order = make_order(lengths, X.device)
                run_lstm(lstm, X, order, backward=False).sum().backward()
                times[way].append(1000 * (time.perf_counter() - start))
        packed, padded = (median(times[way]) for way in ("packed", "padded"))
        ratio = padded / packed
        print(f"{name}: packed {packed:.1f} ms, padded {padded:.1f} ms, ratio {ratio:.2f}")


if __name__ == "__main__":
    typer.run(main)
