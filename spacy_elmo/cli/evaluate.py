"""`python -m spacy elmo evaluate`: the exact perplexity of a text."""

from pathlib import Path
from typing import Optional

import typer

from .common import exit_on_error, require_output
from .options import JSON, QUIET, optional

_TRAINED = "as in training"


def evaluate(
    checkpoint: Path = typer.Argument(
        ..., help="Folder with weights and softmax, or a model's name"
    ),
    text: str = typer.Argument(..., help="File, folder or glob"),
    vocab: Optional[Path] = optional(
        "A vocab.txt, such as another model's: the words to score with; others are <UNK>",
        "the words of the softmax",
    ),
    cut: Optional[str] = optional("Into sequences: sentences, lines or windows", _TRAINED),
    max_tokens: Optional[int] = optional("Most tokens of a sequence", _TRAINED, min=2),
    stream: Optional[bool] = optional("Carry the state across sequences", _TRAINED),
    limit: Optional[int] = optional(
        "Sequences to score, from all over the text, in a stream its first; 0: all", _TRAINED, min=0
    ),
    lang: Optional[str] = optional("Language code of the tokenizer", _TRAINED),
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
        rows = [
            (key.replace("_", " "), f"{value:.3f}" if isinstance(value, float) else value)
            for key, value in result.items()
        ]
        console.show_table(rows, ("exact perplexity", ""))
        if output is not None:
            write_json(output, result)
        console.finish(output)
