"""`describe_corpus`: the text of a pretraining run, its words, and the time a run takes here."""

import time
from pathlib import Path
from typing import Any, Dict, Mapping

import numpy as np
import torch

from ..bilm.config import N_WORD_MARKERS
from ..language_model.objective import LanguageModel
from ..language_model.vocabulary import Vocabulary
from ..text.corpus import Corpus
from ..utils import read_peak_memory, show_name
from .config import RunConfig, make_shape
from .prepare import (
    choose_vocabulary,
    count_words,
    find_init,
    make_model,
    open_corpus,
    read_dev,
    read_vectors,
)
from .processes import Processes
from .stream import BatchStream
from .trainer import Trainer

# Steps that are timed, after one that is not.
_N_STEPS = 3


class Share(float):
    """A part of a whole, shown in percent."""


def describe_corpus(config: RunConfig, folder: Path) -> Dict[str, Any]:
    """Read the text of a run once, and try a few steps of it. Return figures by their names.
    Standard input is saved to `folder`. Warns and raises as a run that starts."""
    corpus = open_corpus(config, folder)
    read_dev(config)
    find_init(config)
    vectors = read_vectors(config)
    if config.corpus.vocabulary:
        choose_vocabulary(None, config.corpus)  # raises its errors before the text is counted
    counter = count_words(corpus)
    vocabulary = choose_vocabulary(counter, config.corpus)
    shape = make_shape(config.bilm, len(vocabulary), vectors)
    model = make_model(config.training, shape, vocabulary, vectors)
    rate = _time_steps(model, config, corpus, vocabulary)
    memory = read_peak_memory() / 1e6
    n_targets = counter.n_tokens + counter.n_sequences
    config.warn_of_length(n_targets)
    n_steps = config.count_steps(n_targets)
    n_total = n_targets * config.training.max_epochs
    if config.training.max_steps:
        n_total = n_steps * config.training.batch_tokens
    max_bytes = shape.max_chars - N_WORD_MARKERS
    n_long, n_known = counter.count_long(max_bytes), counter.count_known(vocabulary)
    quantiles = [find_quantile(counter.lengths, share) for share in (0.1, 0.5, 0.9, 1.0)]
    return {
        "files": sum(len(source.files) for source in corpus.sources.values()),
        "bytes, as stored": sum(source.n_bytes for source in corpus.sources.values()),
        "tokens": counter.n_tokens,
        "sequences": counter.n_sequences,
        "tokens of a sequence, 10 %, median, 90 %, most": ", ".join(map(str, quantiles)),
        "distinct words": len(counter.counts),
        f"tokens longer than {max_bytes} bytes": Share(n_long / counter.n_tokens),
        "words of the vocabulary": len(vocabulary),
        "tokens in the vocabulary": Share(n_known / counter.n_tokens),
        "unknown targets": Share((counter.n_tokens - n_known) / n_targets),
        "most frequent words": " ".join(show_name(word) for word in vocabulary.words[3:13]),
        "parameters, softmax included": sum(p.numel() for p in model.parameters()),
        "memory of one process after these steps, without the shuffled text, MB": memory,
        "tokens per second here": round(rate),
        "steps of the whole run": n_steps,
        "tokens of the whole run": round(n_total),
        "hours of the whole run, about": n_total / rate / 3600,
    }


def find_quantile(counts: Mapping[int, int], share: float) -> int:
    """Find the least value that at least a share of all values does not exceed, from the count of
    each value."""
    values = sorted(counts)
    n_seen = np.cumsum([counts[value] for value in values])
    return values[int(np.searchsorted(n_seen, share * n_seen[-1]))]


def _time_steps(
    model: LanguageModel, config: RunConfig, corpus: Corpus, vocabulary: Vocabulary
) -> float:
    """Measure predictions of a direction per second, in whole training steps."""
    settings, alone = config.training, Processes(0, 1, torch.device("cpu"))
    trainer = Trainer(model, vocabulary, settings, alone)
    # Enough text for the steps, not a whole buffer.
    buffer_tokens = settings.batch_tokens * (_N_STEPS + 1)
    stream = BatchStream(corpus.read, vocabulary, settings, alone, buffer_tokens=buffer_tokens)
    n_targets, started, states = 0, 0.0, None
    for i, step in enumerate(stream.steps(stream.start(corpus.start()))):
        if i == 1:
            started, n_targets = time.monotonic(), 0
        states = trainer.step(step, i, 0.0, states).states
        n_targets += step.n_targets
        if i == _N_STEPS:
            break
    seconds = time.monotonic() - started if started else 1.0
    return n_targets / max(seconds, 1e-9)
