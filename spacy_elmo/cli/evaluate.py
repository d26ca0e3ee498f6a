"""`python -m spacy elmo evaluate`: compute the exact perplexity of a text."""

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
    text: str = typer.Argument(..., help="Text: a file, folder or glob"),
    vocab: Optional[Path] = optional(
        "vocab.txt with the words to score, such as another model's; others count as <UNK>",
        "the words of the softmax",
    ),
    cut: Optional[str] = optional("Cut the text into sentences, lines or windows", _TRAINED),
    max_tokens: Optional[int] = optional("Most tokens of a sequence", _TRAINED, min=2),
    stream: Optional[bool] = optional("Carry the LSTM state across sequences", _TRAINED),
    limit: Optional[int] = optional(
        "Sequences to score, from all over the text (--stream: the first); 0: all", _TRAINED, min=0
    ),
    lang: Optional[str] = optional("Language code of the tokenizer", _TRAINED),
    output: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Measure how well a biLM predicts a text: its exact perplexity over the tokens and the
    ends of sequences, separately forward and backward."""
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
