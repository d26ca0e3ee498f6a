"""Docs -> log-probabilities of their tokens, and what they are predicted from."""

from dataclasses import dataclass
from typing import List

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..bilm.batch import N_BOUNDARIES, pack, plan_batches
from ..language_model.evaluation import Scorer
from ..language_model.readings import make_lm_batch
from ..layers.spans import SpanGetter, get_sequences


@dataclass
class DocScores:
    """Of one doc.

    log_probs (NDArray): nats, forward and backward, NaN for whitespace, shape (2, n_tokens).
    hidden (NDArray): what each token is predicted from, forward beside backward, zeros for
        whitespace, shape (n_tokens, width).
    nats (float): negative log-likelihood of the doc, mean of both directions.
    n_predictions (int): of each direction: words, and the end of each sequence.
    """

    log_probs: NDArray
    hidden: NDArray
    nats: float = 0.0
    n_predictions: int = 0


def score_docs(
    scorer: Scorer, docs: List[Doc], get_spans: SpanGetter, *, batch_tokens: int
) -> List[DocScores]:
    """Predict each token of docs in both directions.

    scorer (Scorer): the language model; its weights require no gradient.
    docs (List[Doc]): any docs.
    get_spans (SpanGetter): cuts them into sequences.
    batch_tokens (int): tokens per forward pass, at least 1.
    RETURNS (List[DocScores]): of each doc, with memory of its own.
    """
    width = scorer.model.bilm.config.width
    scores = [_make_empty(len(doc), width) for doc in docs]
    starts = np.cumsum([0, *[len(doc) for doc in docs]])
    sequences, rows = get_sequences(docs, get_spans)
    for members in plan_batches([len(words) for words in sequences], batch_tokens):
        for k, sequence_scores in zip(members, _score(scorer, [sequences[k] for k in members])):
            # Empty docs share their start with the next one.
            i = np.searchsorted(starts, rows[k][0], side="right") - 1
            places = rows[k] - starts[i]
            # Forward, the last prediction is the end; backward, it is the begin.
            scores[i].log_probs[:, places] = sequence_scores.log_probs[:, 1:-1]
            scores[i].hidden[places] = sequence_scores.hidden[1:-1]
            scores[i].nats -= float(np.nansum(sequence_scores.log_probs)) / 2
            scores[i].n_predictions += len(places) + 1
    return scores


def _make_empty(n_tokens: int, width: int) -> DocScores:
    log_probs = np.full((2, n_tokens), np.nan, dtype=np.float32)
    return DocScores(log_probs, np.zeros((n_tokens, width), dtype=np.float32))


@dataclass
class _Scores:
    """Of one sequence with its boundaries: log-probabilities, shape (2, length), NaN where
    a direction predicts nothing; what they were computed from, shape (length, width)."""

    log_probs: NDArray
    hidden: NDArray


def _score(scorer: Scorer, sequences: List[List[str]]) -> List[_Scores]:
    batch = make_lm_batch(sequences, scorer.vocabulary)
    outputs, _ = scorer.model.read(batch)
    lengths = np.array([len(words) + N_BOUNDARIES for words in sequences])
    packing = pack(lengths, read_last=False)
    width = scorer.model.bilm.config.direction_width
    n_rows = int(lengths.sum())
    log_probs = np.full((2, n_rows), np.nan)
    hidden = np.zeros((n_rows, 2 * width), dtype=np.float32)
    readings = (packing.forward + 1, batch.forward), (packing.backward - 1, batch.backward)
    for direction, (predicted, reading) in enumerate(readings):
        H = outputs[direction]
        log_probs[direction, predicted] = scorer.score(H, torch.from_numpy(reading.targets))
        hidden[predicted, direction * width : (direction + 1) * width] = H
    ends = np.cumsum(lengths)[:-1]
    parts = zip(np.split(log_probs, ends, axis=1), np.split(hidden, ends))
    return [_Scores(*part) for part in parts]
