"""Likelihood of the true word among its substitutes, with and without division by its frequency."""

from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
import typer
from common import print_table, read_lines

from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS

_N_ROWS = 200


def main(
    texts: list[Path] = typer.Argument(..., help="A sentence in each line"),
    n_tokens: int = typer.Option(500, help="Words of each text"),
) -> None:
    """Print the mean log-likelihood of a known word, in nats, over the words of all texts."""
    nlp = spacy.blank("en")
    component: Any = nlp.add_pipe("elmo_lm")
    model, vocabulary, _ = component.load()
    log_frequencies = torch.from_numpy(vocabulary.log_frequencies())
    sums, n = np.zeros(3), 0
    lines = [line for text in texts for line in read_lines(text, n_tokens)]
    for doc in nlp.pipe(lines):
        entry = doc._.elmo_lm
        known = np.flatnonzero(entry["is_known"])
        for rows in np.array_split(known, max(1, len(known) // _N_ROWS)):
            targets = torch.from_numpy(vocabulary.encode(doc[int(i)].text for i in rows))
            hidden = torch.from_numpy(np.array(entry["hidden"])[rows])  # (n_rows, width)
            with torch.no_grad():
                logits = model.softmax.log_probs(hidden.view(2 * len(rows), -1))
            left, right = logits.view(len(rows), 2, -1).unbind(1)  # (n_rows, n_words)
            for k, scores in enumerate((left, left + right, left + right - log_frequencies)):
                log_probs = torch.log_softmax(scores[:, len(SPECIAL_WORDS) :], dim=1)
                found = log_probs.gather(1, targets[:, None] - len(SPECIAL_WORDS))
                sums[k] += found.sum().item()
            n += len(rows)
    names = ("left alone", "left and right", "left and right, divided by the frequency")
    print_table([f"{n:,} words", "nats"], [[name, f"{s / n:.3f}"] for name, s in zip(names, sums)])


if __name__ == "__main__":
    typer.run(main)
