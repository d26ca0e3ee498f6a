"""`python -m spacy elmo embed`: write vectors of large amounts of text."""

import json
import os
import time
from contextlib import closing
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Iterator

import typer

from ..utils import count_things
from .common import Console, exit_on_error
from .options import QUIET, optional

if TYPE_CHECKING:
    from ..embed.job import Engine, JobProgress

# Seconds between two lines where there is no terminal.
_INTERVAL = 30.0


class EngineName(str, Enum):
    local = "local"
    ray = "ray"


def embed(
    text: str = typer.Argument(
        ..., help="Text: a file, folder or glob (.txt, .jsonl, .parquet, .spacy), or - for stdin"
    ),
    output: Path = typer.Argument(..., help="Folder to write", file_okay=False),
    pipeline: str = optional("Folder or package of a pipeline with the component elmo", default=""),
    weights: str = optional(
        "Without a pipeline: folder of a biLM, or a model's name", "the bundled model", default=""
    ),
    lang: str = optional(
        "Without a pipeline: language code of the tokenizer", "the weights' language", default=""
    ),
    component: str = optional("Name of the elmo in the pipeline", "the only one", default=""),
    unit: str = typer.Option("sentences", help="tokens, sentences or documents get a vector each"),
    layers: str = typer.Option("mix", help="mix, or layers from 0 (the words), or both, as mix,0"),
    dtype: str = typer.Option("float16", help="float16 or float32"),
    format: str = typer.Option("parquet", help="parquet, arrow or spacy"),
    text_key: str = typer.Option("text", help="Name of the field or column with the text"),
    id_key: str = typer.Option("id", help="Name of the field or column with the id, if any"),
    has_text: bool = typer.Option(True, "--text/--no-text", help="Also write the texts"),
    input_format: str = typer.Option("txt", help="Format of stdin: txt or jsonl"),
    shard_chars: int = typer.Option(1_000_000, min=1, help="Characters of text in a shard"),
    batch_chars: int = typer.Option(50_000, min=1, help="Characters of text in a batch"),
    n_process: int = typer.Option(1, min=1, help="Number of processes, or of actors with ray"),
    resume: bool = typer.Option(False, "--resume", help="Resume a job that was stopped"),
    engine: EngineName = typer.Option(EngineName.local, help="Where to run; ray: on a cluster"),
    address: str = optional("Ray cluster's address", "RAY_ADDRESS, or this machine", default=""),
    worker_cpus: float = typer.Option(1.0, min=0, help="Processors for each actor (with ray)"),
    gpu: bool = typer.Option(
        False, "--gpu", help="Compute on a GPU; with ray, on one GPU for each actor"
    ),
    quiet: bool = QUIET,
) -> None:
    """Write the vectors of a text to Parquet, Arrow or .spacy files (shards). A file exists only
    when it is complete; --resume continues a job that was stopped or killed."""
    from ..embed.job import embed_files
    from ..embed.pipeline import EmbedSettings

    interrupted = "Interrupted. Finished shards are kept: add `--resume` to continue."
    with exit_on_error(quiet, interrupted) as console:
        if pipeline and (weights or lang):
            raise typer.BadParameter("Omit --weights and --lang: the --pipeline has its own.")
        settings = EmbedSettings(
            pipeline=pipeline,
            weights=weights,
            lang=lang,
            component=component,
            unit=unit,
            layers=tuple(name.strip() for name in layers.split(",")),
            dtype=dtype,
            format=format,
            text_key=text_key,
            id_key=id_key,
            has_text=has_text,
            shard_chars=shard_chars,
            batch_chars=batch_chars,
        )
        steps = embed_files(
            text,
            output,
            settings,
            _make_engine(engine, n_process, address, worker_cpus, gpu),
            resume=resume,
            input_format=input_format,
            # Of a cluster, the nodes have the GPUs.
            gpu=gpu and engine is EngineName.local,
        )
        # Child processes end with it, also after Ctrl-C.
        with closing(steps):
            _show(steps, console)
        _report(output, console)


def _make_engine(
    name: EngineName, n_process: int, address: str, worker_cpus: float, gpu: bool
) -> "Engine":
    """What computes the shards."""
    from ..embed.job import run_local

    if name is EngineName.local:
        return partial(run_local, n_processes=n_process)
    from ..embed.ray_engine import require_ray, run_ray

    require_ray()
    return partial(
        run_ray,
        n_workers=n_process,
        address=address or os.environ.get("RAY_ADDRESS"),
        n_cpus=worker_cpus,
        n_gpus=float(gpu),
    )


def _show(steps: "Iterator[JobProgress]", console: Console) -> None:
    """Draw a bar of the bytes that were read; print lines where there is no terminal."""
    first = next(steps)
    start = last = time.perf_counter()
    with console.track(total=first.total or None, unit="B", unit_scale=True) as bar:
        for progress in steps:
            now = time.perf_counter()
            rate = f"{progress.n_tokens / (now - start):,.0f} tokens/s"
            rate += f", {progress.n_rejects:,} rejected" if progress.n_rejects else ""
            bar.set_postfix_str(rate, refresh=False)
            bar.update(progress.n_bytes - bar.n)
            if bar.disable and now - last > _INTERVAL:
                last = now
                console.tell(f"{progress.n_bytes:,} of {progress.total:,} bytes, {rate}")


def _report(output: Path, console: Console) -> None:
    from ..embed.output import REJECTS, read_manifest

    manifest = read_manifest(output)
    counts = [count_things(manifest[f"n_{name}s"], name) for name in ("record", "row", "token")]
    shards = count_things(len(manifest["shards"]), "shard")
    if manifest["n_rejects"]:
        path = output / REJECTS
        with path.open("rb") as lines:
            reason = json.loads(lines.readline())["reason"]
        console.warn(
            f"Rejected records: {manifest['n_rejects']}, with reasons in '{path}'. The first: "
            f"{reason}."
        )
    console.finish(output, summary=f"{', '.join(counts)} in {shards}")
