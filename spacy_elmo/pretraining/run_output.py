"""What a run writes: models and checkpoints, each with its meta.json."""

from dataclasses import asdict
from importlib.metadata import version
from typing import Any, Dict, Optional

from torch import Tensor

from ..checkpoints.formats import SoftmaxWeights
from ..checkpoints.native import write_native
from ..files import write_digests
from ..language_model.loading import collect_softmax
from ..language_model.perplexity import Perplexity
from ..language_model.softmax import split_softmax
from .prepare import PretrainingRun


def save_checkpoint(run: PretrainingRun, state: Dict[str, Any], tensors: Dict[str, Tensor]) -> None:
    """Write a checkpoint, in the first process; the others wait.

    run (PretrainingRun): with the weights.
    state (Dict[str, Any]): progress, in JSON's types, with "step" and "n_tokens".
    tensors (Dict[str, Tensor]): from `Trainer.get_tensors`.
    """
    if run.processes.is_first:
        meta = describe_run(run, state["n_tokens"])
        run.folder.save(run.model.bilm, _pack_softmax(run), state, tensors, meta)
    run.processes.wait()  # none is ahead of a checkpoint


def save_model(
    run: PretrainingRun, name: str, n_tokens: int, dev: Optional[Perplexity] = None
) -> None:
    """Write a model, in the first process.

    run (PretrainingRun): with the weights.
    name (str): of the folder in the run's.
    n_tokens (int): predictions of one direction that it was trained on.
    dev (Optional[Perplexity]): of the held-out text.
    """
    if run.processes.is_first:
        write_native(
            run.model.bilm,
            run.output / name,
            softmax=_pack_softmax(run),
            meta=describe_run(run, n_tokens, dev),
            write_more=write_digests,
        )


def describe_run(
    run: PretrainingRun, n_tokens: int, dev: Optional[Perplexity] = None
) -> Dict[str, Any]:
    """run (PretrainingRun): the run. n_tokens, dev: as for `save_model`. RETURNS (Dict[str,
    Any]): for meta.json."""
    config = run.config
    meta: Dict[str, Any] = {
        "lang": config.nlp["lang"],
        "tokenizer": config.nlp.get("tokenizer") or {},
        "spacy_elmo_version": version("spacy-elmo"),
        "n_tokens_trained": n_tokens,
        "n_tokens_trained_before": run.n_tokens_before,
        "n_tokens_of_text": run.counts.get("n_tokens"),
        "training": {**asdict(config.training), "teachers": config.teachers},
        # What `evaluate` takes by default.
        "evaluation": {
            "cut": config.corpus.cut,
            "max_tokens": config.corpus.max_tokens,
            "limit": config.training.eval_sequences,
            "stream": config.training.state_steps > 0,
        },
    }
    return meta if dev is None else {**meta, "dev_perplexity": _describe_perplexity(dev)}


def _describe_perplexity(dev: Perplexity) -> Dict[str, Any]:
    forward, backward, mean = dev.perplexities
    return {
        "kind": "exact",
        "forward": forward,
        "backward": backward,
        "geometric_mean": mean,
        "n_sequences": dev.n_sequences,
        "n_predictions": dev.n_targets,
    }


def _pack_softmax(run: PretrainingRun) -> SoftmaxWeights:
    kind, arguments = split_softmax(run.config.training.softmax)
    return collect_softmax(run.model.softmax, kind, arguments, run.vocabulary.words)
