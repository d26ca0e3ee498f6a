"""`python -m spacy elmo embed`: vectors of large amounts of text."""

import os
import time
from contextlib import closing
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

import typer

from ..utils import count_things
from .common import exit_on_error
from .console import Console
from .option_conflicts import list_idle_of_embed, require_no_conflicts
from .options import QUIET

if TYPE_CHECKING:
    from ..bulk.embed_job import Engine, JobProgress

# Seconds between two lines where there is no terminal.
_INTERVAL = 30.0
# What a finished job says that it has.
_COUNTED = ("record", "row", "token")


class EngineName(str, Enum):
    local = "local"
    ray = "ray"


def embed(
    ctx: typer.Context,
    text: str = typer.Argument(
        ..., help="Text: a file, folder or glob (.txt, .jsonl, .parquet, .spacy), or - for stdin"
    ),
    output: Path = typer.Argument(..., help="Folder to write", file_okay=False),
    pipeline: str = typer.Option(
        "", help="Folder or package of a pipeline with an elmo", show_default="none"
    ),
    weights: str = typer.Option(
        "",
        help="Without a pipeline: folder of a biLM, or a model's name",
        show_default="the bundled model",
    ),
    lang: str = typer.Option(
        "",
        help="Without a pipeline: language code of the tokenizer",
        show_default="that of the weights",
    ),
    component: str = typer.Option(
        "", help="Name of the elmo in the pipeline", show_default="the only one"
    ),
    unit: str = typer.Option("sentences", help="What gets a vector: tokens, sentences, documents"),
    layers: str = typer.Option("mix", help="mix, and numbers from 0, the word layer; with commas"),
    dtype: str = typer.Option("float16", help="float16 or float32"),
    format: str = typer.Option("parquet", help="parquet, arrow or spacy"),
    text_key: str = typer.Option("text", help="Field or column of the text"),
    id_key: str = typer.Option("id", help="Field or column of the id, if there is one"),
    has_text: bool = typer.Option(True, "--text/--no-text", help="Write the texts, too"),
    input_format: str = typer.Option("txt", help="Of stdin: txt or jsonl"),
    shard_chars: int = typer.Option(1_000_000, min=1, help="Characters of text for a shard"),
    batch_chars: int = typer.Option(50_000, min=1, help="Characters embedded at a time"),
    n_process: int = typer.Option(1, min=1, help="Processes, or actors of the cluster"),
    resume: bool = typer.Option(False, "--resume", help="Resume a job that was stopped"),
    engine: EngineName = typer.Option(EngineName.local, help="local, or ray: on a cluster (extra)"),
    address: str = typer.Option(
        "", help="Of the Ray cluster", show_default="RAY_ADDRESS, or this machine"
    ),
    worker_cpus: float = typer.Option(1.0, min=0, help="Processors for each actor of the cluster"),
    gpu: bool = typer.Option(
        False, "--gpu", help="Compute on a GPU; of a cluster, one for each actor"
    ),
    quiet: bool = QUIET,
) -> None:
    """Write the vectors of a text to Parquet, Arrow or .spacy, in shards that are whole or not
    there. --resume resumes a job that was stopped or killed."""
    from ..bulk.bulk_settings import BulkSettings
    from ..bulk.embed_job import embed_files
    from ..errors import Warnings

    interrupted = Warnings.WL058.format(how=" with --resume")
    with exit_on_error(quiet, interrupted) as console:
        _require_choices(unit, dtype, format, input_format)
        require_no_conflicts(ctx, list_idle_of_embed(ctx.params))
        settings = BulkSettings(
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
        # Closed also by Ctrl-C at any moment: processes end then.
        with closing(steps):
            _show(steps, console)
        _report(output, console)


def _require_choices(unit: str, dtype: str, format: str, input_format: str) -> None:
    """RAISES (ValueError): EL017, which names the option."""
    from ..bulk.bulk_settings import DTYPES, FORMATS, UNITS
    from ..bulk.saved_stdin import STDIN_FORMATS
    from ..utils import require_known

    require_known("--unit", unit, UNITS)
    require_known("--dtype", dtype, DTYPES)
    require_known("--format", format, tuple(FORMATS))
    require_known("--input-format", input_format, STDIN_FORMATS)


def _make_engine(
    name: EngineName, n_process: int, address: str, worker_cpus: float, gpu: bool
) -> "Engine":
    """RETURNS (Engine): What computes the shards. RAISES (ValueError): EL241 without Ray."""
    if name is EngineName.local:
        from ..bulk.local_engine import run_local

        return partial(run_local, n_processes=n_process)
    from ..bulk.ray_engine import require_ray, run_ray

    require_ray()
    return partial(
        run_ray,
        n_workers=n_process,
        address=address or os.environ.get("RAY_ADDRESS"),
        n_cpus=worker_cpus,
        n_gpus=float(gpu),
    )


def _show(steps: "Iterator[JobProgress]", console: Console) -> None:
    """Draw a bar of the bytes that were read, with the time left; lines where there is no
    terminal."""
    bar: Any = None
    start = last = 0.0
    for progress in steps:
        if bar is None:
            total = {"total": progress.total, "initial": progress.n_bytes}
            bar = console.track(**total, unit="bytes", unit_scale=True)
            start = last = time.perf_counter()
            continue
        seconds = time.perf_counter() - start
        rate = f"{progress.n_tokens / max(seconds, 1e-9):,.0f} tokens/s"
        rate += f", {progress.n_rejects:,} set aside" if progress.n_rejects else ""
        bar.set_postfix_str(rate, refresh=False)
        bar.update(progress.n_bytes - bar.n)
        if bar.disable and time.perf_counter() - last > _INTERVAL:
            last = time.perf_counter()
            console.tell(f"{progress.n_bytes / max(1, progress.total):.1%}, {rate}")
    if bar is not None:
        bar.close()


def _report(output: Path, console: Console) -> None:
    from ..bulk.job_files import read_manifest
    from ..bulk.journal import REJECTS, read_first_reject
    from ..errors import Warnings

    manifest = read_manifest(output)
    counts = ", ".join(count_things(manifest[f"n_{name}s"], name) for name in _COUNTED)
    shards = count_things(len(manifest["shards"]), "shard")
    if manifest["n_rejects"]:
        reason = read_first_reject(output)["reason"]
        path = output / REJECTS
        console.warn(Warnings.WL050.format(n=manifest["n_rejects"], path=path, reason=reason))
    console.finish(output, summary=f"{counts} in {shards}")
