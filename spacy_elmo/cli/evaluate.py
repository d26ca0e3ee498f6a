"""`python -m spacy elmo evaluate`: the exact perplexity of a text."""

from pathlib import Path
from typing import Optional

import typer

from .common import JSON, QUIET, exit_on_error, require_output


def evaluate(
    checkpoint: Path = typer.Argument(
        ..., help="Folder with weights and softmax, or a model's name"
    ),
    text: str = typer.Argument(..., help="File, folder or glob"),
    vocab: Optional[Path] = typer.Option(
        None,
        help="A vocab.txt, such as another model's: the words to score with; others are <UNK>",
        show_default="the words of the softmax",
    ),
    cut: Optional[str] = typer.Option(
        None,
        help="Into sequences: sentences, lines or windows",
        show_default="as in training",
    ),
    max_tokens: Optional[int] = typer.Option(
        None, min=2, help="Most tokens of a sequence", show_default="as in training"
    ),
    stream: Optional[bool] = typer.Option(
        None, help="Carry the state across sequences", show_default="as in training"
    ),
    limit: Optional[int] = typer.Option(
        None,
        min=0,
        help="Sequences to score, from all over the text, in a stream its first; 0: all",
        show_default="as in training",
    ),
    lang: Optional[str] = typer.Option(
        None, help="Language code of the tokenizer", show_default="as in training"
    ),
    output: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Measure how well a biLM predicts a text: exact perplexity, forward and backward
    apart, for each token and the end of each sequence."""
    from ..files import write_json
    from ..language_model.evaluation import evaluate_checkpoint

    with exit_on_error(quiet) as console:
        require_output(output)
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
        rows = [(key.replace("_", " "), _format(value)) for key, value in result.items()]
        console.show_table(rows, ("exact perplexity", ""))
        if output is not None:
            write_json(output, result)
        console.finish(output)


def _format(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
