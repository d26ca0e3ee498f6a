"""`python -m spacy elmo debug-corpus`: what a run would be trained on."""

import tempfile
from pathlib import Path

import typer

from .common import QUIET, exit_on_error, read_pretraining_config, set_log_level


def debug_corpus(
    ctx: typer.Context,
    config: Path = typer.Argument(..., help="Config, see `init-config --pretraining`"),
    quiet: bool = QUIET,
) -> None:
    """Show what pretraining would read: tokens, lengths, what the vocabulary covers, and
    what memory and time it would take here. Settings can be overridden as in `pretrain`."""
    from ..pretraining.config import RunConfig
    from ..pretraining.corpus_report import describe_corpus

    set_log_level(quiet)
    with exit_on_error(quiet) as console, tempfile.TemporaryDirectory() as folder:
        settings = RunConfig.check(read_pretraining_config(config, ctx.args))
        figures = describe_corpus(settings, Path(folder))
        rows = [(name, _format(value)) for name, value in figures.items()]
        console.show_table(rows, ("what", ""))
        console.finish()


def _format(value: object) -> str:
    from ..pretraining.corpus_report import Share

    if isinstance(value, Share):
        return f"{value:.2%}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
