"""Tiny pretraining runs."""

import json
import multiprocessing
import random
from functools import lru_cache

import safetensors.torch
import srsly
import torch

from spacy_elmo.pretraining.config import load_config, make_pretraining_config
from spacy_elmo.pretraining.run import pretrain
from spacy_elmo.text import corpus

from .helpers import SHAPE

SMALL = {
    "bilm": SHAPE,
    "corpus": {"max_tokens": 12, "buffer_tokens": 300, "size": 60, "min_count": 1},
    "training": {
        "max_steps": 12,
        "batch_tokens": 80,
        "learn_rate": 0.01,
        "warmup_steps": 3,
        "dropout": 0.2,
        "eval_frequency": 4,
        "save_frequency": 2,
        "log_frequency": 3,
        "softmax": {"kind": "sampled", "n_samples": 20},
    },
}
_make_tokenizer = corpus.make_tokenizer


def write_texts(folder):
    """A folder of text in which words depend on each other."""
    rng = random.Random(0)
    nouns, verbs = ["ham", "eggs", "cheese", "bread"], ["like", "eat", "want"]
    for name, n in (("train/a", 150), ("train/b", 60), ("dev/c", 20)):
        lines = []
        for _ in range(n):
            noun = rng.choice(nouns)
            lines.append(f"I {rng.choice(verbs)} {noun} . You {rng.choice(verbs)} {noun} !")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.txt").write_text("\n".join(lines))
    return folder


def change(section, **changes):
    """The settings of a section of tiny runs, with changes, as an argument for `train`."""
    return {section: {**SMALL[section], **changes}}


def write_config(folder, texts, **changes):
    """A config for a tiny run. Changes are blocks of sections to merge."""
    config = make_pretraining_config()
    config["paths"].update({"train": str(texts / "train"), "dev": str(texts / "dev")})
    for section, block in [*SMALL.items(), *changes.items()]:
        config[section].update(block)
    folder.mkdir(parents=True, exist_ok=True)
    config.to_disk(folder / "pretrain.cfg", interpolate=False)
    return folder / "pretrain.cfg"


@lru_cache
def _make_once(lang, block):
    return _make_tokenizer(lang, json.loads(block))


def share_tokenizer(lang, block):
    """Make a tokenizer once for all runs, which takes as long as a tiny run."""
    return _make_once(lang, json.dumps(block))


def run_in_forks(*works):
    """Run functions with their arguments at the same time, each in a fork of a process that never
    trained: torch's threads do not survive a fork."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "torch._dynamo"])
    processes = [context.Process(target=_run_alone, args=work) for work in works]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(works)


def _run_alone(function, *arguments):
    torch.set_num_threads(1)
    corpus.make_tokenizer = share_tokenizer
    function(*arguments)


def train(tmp_path, texts, output="run", *, resume=False, reports=None, stop_at=0, **changes):
    """Train, or resume if `resume`, until step number `stop_at` of this call, if given."""
    path = write_config(tmp_path, texts, **changes)
    steps = []

    def should_stop():
        steps.append(1)
        return len(steps) == stop_at

    return pretrain(
        load_config(path),
        tmp_path / output,
        resume=resume,
        on_report=lambda report, total: None if reports is None else reports.append(report),
        should_stop=should_stop,
    )


def read_state(run):
    """All tensors and the state of a run's last checkpoint."""
    last = max(run.glob("checkpoints/step-?????????"))
    tensors = {}
    for path in sorted(last.glob("*.safetensors")):
        for name, tensor in safetensors.torch.load_file(path).items():
            tensors[path.name, name] = tensor.numpy().tobytes()
    return tensors, srsly.read_json(last / "training.json")["state"]
