"""`python -m spacy elmo evaluate`: the exact perplexity of a text."""

from pathlib import Path
from typing import Any, Dict, Optional

import typer
from wasabi import msg, table

from .common import exit_on_error, require_writable


def evaluate(
    checkpoint: Path = typer.Argument(
        ..., help="Folder with weights and softmax, or a model's name"
    ),
    text: str = typer.Argument(..., help="File, folder or glob"),
    vocab: Optional[Path] = typer.Option(
        None, help="Score with these words alone; the rest counts as <UNK>"
    ),
    cut: Optional[str] = typer.Option(
        None, help="Into sequences: sentences, lines or windows; default: as the run did"
    ),
    max_tokens: Optional[int] = typer.Option(None, min=2, help="Most tokens of a sequence"),
    stream: Optional[bool] = typer.Option(None, help="Carry the state across sequences"),
    limit: Optional[int] = typer.Option(
        None,
        min=0,
        help="Sequences to score, from all over the text, in a stream its first; 0: all",
    ),
    lang: Optional[str] = typer.Option(None, help="Tokenizer's language; default: as trained"),
    output: Optional[Path] = typer.Option(None, help="JSON file to write", dir_okay=False),
) -> None:
    """Measure how well a biLM predicts a text: exact perplexity, forward and backward
    apart, for each token and the end of each sequence."""
    from ..language_model.evaluation import evaluate_checkpoint
    from ..util.atomic import write_json

    with exit_on_error():
        require_writable(output)
        result = evaluate_checkpoint(
            checkpoint,
            text,
            vocab=vocab,
            cut=cut,
            max_tokens=max_tokens,
            stream=stream,
            limit=limit,
            lang=lang,
        )
        _print(result)
        if output is not None:
            write_json(output, result)
            msg.good(f"Wrote {output}")


def _print(result: Dict[str, Any]) -> None:
    rows = [(key.replace("_", " "), _format(value)) for key, value in result.items()]
    print(table(rows, divider=True, header=("exact perplexity", "")))


def _format(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
