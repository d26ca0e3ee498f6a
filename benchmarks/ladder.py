"""A ladder of recipes: pretraining runs of equal processor time (on a GPU: of equal time by the
clock) that differ in one thing, each probed in the same way (`probe_biLM.py`).

A run gets so many steps as fit into the budget, so its learning rate has fallen to zero at
the end. The budget is processor time of one thread, which busy neighbours trouble less than
the clock. Short runs favour what learns fast: look at large differences, and mind that
text is never repeated. From nothing, minutes of a processor teach little: with --init, all runs
go on from the same weights. `ladder.json` has the variants of results/ladder.md.
"""

import shutil
import time
from pathlib import Path
from typing import Any

import srsly
import torch
import typer
from common import describe_machine, print_table, show_mean
from probe_biLM import ENTITIES
from thinc.api import Config

from spacy_elmo.checkpoints.loaders import load_embedder, read_config
from spacy_elmo.pretraining.config_files import load_config, make_pretraining_config
from spacy_elmo.pretraining.log import Report
from spacy_elmo.pretraining.run import pretrain
from spacy_elmo.utils import keep_memory

# Steps that show how fast a variant is; the first are not counted.
TRIAL_STEPS, FIRST_STEPS = 30, 10
BASE: dict[str, dict[str, Any]] = {
    "training": {
        "learn_rate": 0.003,
        # Short runs: more steps, and few in which the rate rises.
        "batch_tokens": 4096,
        "warmup_steps": 40,
        "decay_share": 0.5,
        "eval_frequency": 1_000_000,
        "save_frequency": 1_000_000,
    },
}


app = typer.Typer()


@app.command("run")
def train(
    variants: Path = typer.Argument(..., help="JSON: name -> section -> other settings"),
    name: str = typer.Argument(..., help="The variant to run"),
    text: Path = typer.Argument(..., help="Folder with text to train on"),
    vocabulary: Path = typer.Argument(..., help="File with the words to predict"),
    work: Path = typer.Argument(..., help="Folder for the runs"),
    init: str = typer.Option("", help="Weights that all runs go on from; new ones if left out"),
    vectors: str = typer.Option("", help="Pipeline with static vectors, for variants that have it"),
    word_vectors: str = typer.Option("", help="The same, of projects/pretrain/word_vectors.py"),
    transformer: str = typer.Option("", help="Folder with a transformer, likewise"),
    budget: float = typer.Option(600.0, help="Seconds of processor time; of a GPU, by the clock"),
    precision: str = typer.Option("fp32", help="fp32 or bf16, which some processors have"),
    device: str = typer.Option("cpu", help="cpu or cuda"),
    workers: int = typer.Option(0, help="Processes that cut text; a GPU needs some"),
) -> None:
    """Train a variant; write WORK/NAME/ladder.json."""
    torch.set_num_threads(1)
    keep_memory()
    variant = srsly.read_json(variants)[name]
    changes = {**variant, "corpus": {"n_workers": workers, **variant.get("corpus", {})}}
    paths = {"train": str(text), "vectors": vectors, "word_vectors": word_vectors}
    config = make_config(changes, {**paths, "transformer": transformer}, vocabulary, init)
    config["training"]["precision"] = precision
    rate = run(config, work / f"{name}.trial", TRIAL_STEPS, device)["rate"]
    shutil.rmtree(work / f"{name}.trial")
    # In fewer steps, there is no time to measure.
    steps = max(TRIAL_STEPS, int(budget * rate))
    folder = work / name
    found = run(config, folder, steps, device)
    machine = describe_machine() if device == "cpu" else torch.cuda.get_device_name()
    found.update(name=name, changes=variant, budget=budget, machine=machine)
    found["init"] = load_embedder(init).hash_weights().hex()[:16] if init else ""
    srsly.write_json(folder / "ladder.json", found)
    print(found, flush=True)


@app.command("table")
def tabulate(work: Path = typer.Argument(..., help="Folder with runs")) -> None:
    """Print a table of the runs that have a probe.json of `probe_biLM.py`."""
    probes = {path: srsly.read_json(path) for path in work.glob("*/probe.json")}
    known = {key for probe in probes.values() for key in probe}
    names = [key for task in ENTITIES for key in (task, f"{task}_vectors") if key in known]
    header = ["run", "million tokens", "perplexity", "XPOS by layer", *names, "operations"]
    rows = []
    for path, probe in probes.items():
        ladder = path.with_name("ladder.json")
        n_tokens = srsly.read_json(ladder)["n_tokens"] if ladder.exists() else 0
        row = [path.parent.name, f"{n_tokens / 1e6:.1f}", f"{probe['perplexity']:.1f}"]
        row.append(" ".join(f"{value:.2f}" for value in probe["xpos"]))
        row += [show_mean(probe[name]) if probe.get(name) else "-" for name in names]
        rows.append([*row, f"{probe['operations'] / 1e6:.1f} M"])
    print_table(header, sorted(rows, key=lambda row: float(row[2])))


def make_config(
    changes: dict[str, dict[str, Any]], paths: dict[str, str], vocabulary: Path, init: str
) -> Config:
    """RETURNS (Config): the base, with the changes of a variant."""
    if init:
        config = make_pretraining_config(shape=read_config(init), init=Path(init))
    else:
        config = make_pretraining_config()
    config["paths"].update({key: path or None for key, path in paths.items()})
    config["corpus"]["vocabulary"] = str(vocabulary)
    for section, values in [*BASE.items(), *changes.items()]:
        config[section].update(values)
    return config


def run(config: Config, folder: Path, steps: int, device: str) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): "rate", steps a second of the budget's time, "seconds" of it,
    "n_tokens" and the last "loss"."""
    config["training"].update(max_steps=steps, log_frequency=FIRST_STEPS)
    folder.mkdir(parents=True)
    config.to_disk(folder / "run.cfg", interpolate=False)
    times: list[tuple[int, float]] = []
    last: list[Report] = []
    clock = time.process_time if device == "cpu" else time.perf_counter

    def report(current: Report, total_steps: int) -> None:
        times.append((current.step, clock()))
        last[:] = [current]
        if current.step % 100 == 0:
            print(f"{current.step}/{total_steps} {current.loss:.3f}", flush=True)

    pretrain(load_config(folder / "run.cfg"), folder, device=device, on_report=report)
    (first_step, start), (last_step, end) = times[0], times[-1]
    rate = (last_step - first_step) / (end - start)
    return {
        "rate": rate,
        "seconds": steps / rate,
        "steps": steps,
        "n_tokens": last[0].n_tokens,
        "loss": last[0].loss,
    }


if __name__ == "__main__":
    app()
