"""What a pretraining run would be trained on, before it is."""

import sys
import time
from pathlib import Path
from typing import Any, Dict

import numpy as np
import torch

from .bilm.model import BiLM
from .characters import count_truncated
from .pretraining.objective import LanguageModel
from .pretraining.softmax import make_softmax, split_softmax
from .pretraining.stream import BatchStream
from .run_parts import RunConfig, choose_vocabulary, count_words

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


class Share(float):
    """A part of a whole, shown in percent."""


# Steps that are timed, after one that is not.
_N_STEPS = 3


def describe_corpus(config: RunConfig, folder: Path) -> Dict[str, Any]:
    """Read the text of a run once, and try a few steps of it.

    config (RunConfig): the run.
    folder (Path): where the standard input is saved.
    RETURNS (Dict[str, Any]): figures by their names.
    RAISES (ValueError): as a run that starts.
    """
    corpus = config.open_corpus(folder)
    counter = count_words(corpus)
    vocabulary = choose_vocabulary(counter, config.corpus)
    words = [w for w in counter.counts]
    max_bytes = config.bilm["max_chars"] - 2
    long = [word for word in words if count_truncated([word], max_bytes + 2)]
    n_long = sum(counter.counts[word] for word in long)
    n_known = counter.count_known(vocabulary)
    spread = np.repeat(*(np.array(x) for x in zip(*sorted(counter.lengths.items()))))
    quantiles = np.quantile(spread, [0.1, 0.5, 0.9, 1.0]).astype(int).tolist()
    n_targets = counter.n_tokens + counter.n_sequences
    vectors = config.read_vectors()
    shape = config.make_shape(vocabulary, vectors)
    kind, arguments = split_softmax(config.training.softmax)
    model = LanguageModel(
        BiLM(shape), make_softmax(kind, shape.direction_width, len(vocabulary), **arguments)
    )
    n_parameters = sum(p.numel() for p in model.parameters())
    rate = _time_steps(model, config, corpus, vocabulary)
    epochs = config.training.max_epochs
    n_total = n_targets * epochs
    if config.training.max_steps:
        n_total = config.training.max_steps * config.training.batch_tokens
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
        "most frequent words": " ".join(vocabulary.words[3:13]),
        "parameters, softmax included": n_parameters,
        "memory of one process after these steps, MB": _measure_memory(),
        "tokens per second here": round(rate),
        "tokens of the whole run": round(n_total),
        "hours of the whole run, about": n_total / rate / 3600,
    }


def _measure_memory() -> float:
    """Most MB that this process has held; not a number where the system does not say."""
    if resource is None:
        return float("nan")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most / 1e3


def _time_steps(model: LanguageModel, config: RunConfig, corpus: Any, vocabulary: Any) -> float:
    """Predictions of a direction per second, forward and back."""
    t = config.training
    # Enough text for the steps, not a whole buffer.
    stream = BatchStream(
        corpus.read,
        vocabulary,
        batch_tokens=t.batch_tokens,
        buffer_tokens=t.batch_tokens * (_N_STEPS + 1),
        seed=t.seed,
        n_steps=t.state_steps,
    )
    n_targets, started = 0, 0.0
    for i, step in enumerate(stream.steps(stream.start(corpus.start()))):
        if i == 1:
            started, n_targets = time.monotonic(), 0
        with torch.autocast("cpu", torch.bfloat16, enabled=t.precision == "bf16"):
            for batch in step.batches:
                model(batch)[0].backward()
        n_targets += step.n_targets
        if i == _N_STEPS:
            break
    seconds = time.monotonic() - started if started else 1.0
    return n_targets / max(seconds, 1e-9)
