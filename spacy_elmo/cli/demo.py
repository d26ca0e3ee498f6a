"""`python -m spacy elmo demo`: one word in several sentences, side by side."""

from pathlib import Path
from typing import List, Optional, Tuple

import typer

from .common import QUIET, exit_on_error, require_output

# Each is a row and a column of the picture.
_MOST_LINES = 50
_SENTENCES = """\
He went to the bank to get money.
She opened an account at the bank.
He borrowed money from the bank.
He sat by the bank of the river.
They walked along the bank of the stream.
The village stands on the south bank of the river."""


def demo(
    weights: Optional[Path] = typer.Argument(
        None, help="Folder with weights, or a model's name", show_default="the bundled model"
    ),
    word: str = typer.Option("bank", help="The word to look at"),
    texts: Optional[str] = typer.Option(
        None, help="File with a sentence in each line", show_default="six about banks"
    ),
    output: Path = typer.Option(Path("elmo.png"), help="Picture to write", dir_okay=False),
    dark: bool = typer.Option(False, "--dark", help="Draw light letters on a dark ground"),
    quiet: bool = QUIET,
) -> None:
    """Show that a word's vector depends on its sentence: run a pipeline with the
    component elmo over sentences, and compare the word in each with each."""
    from ..checkpoints.loaders import pipe_config
    from ..drawing import require_drawable
    from ..experiments.contexts import compare_word
    from ..experiments.plots import plot_similarities
    from ..language_model.evaluation import find_tokenizer
    from ..pipeline.saving import make_blank

    with exit_on_error(quiet) as console:
        require_output(output)
        require_drawable(output)
        lines = _SENTENCES.splitlines() if texts is None else _read_lines(texts)
        nlp = make_blank(*find_tokenizer(str(weights or "")))
        shape = pipe_config(weights) if weights else {}
        nlp.add_pipe("elmo", config={**shape, "store_layers": True})
        if weights:
            nlp.get_pipe("elmo").load(weights)  # type: ignore[attr-defined]
        docs = list(nlp.pipe(lines))
        cosines = compare_word(docs, word)
        console.show_title(f"Cosine of '{word}' in the top layer")
        console.show_table(*_tabulate(cosines, [doc.text for doc in docs]))
        plot_similarities(cosines, [doc.text for doc in docs], word, output, dark=dark)
        console.finish(output)


def _read_lines(path: str) -> List[str]:
    from ..text.corpus import TextSource

    lines = [line for line in TextSource(path, seed=0).read_texts() if line.strip()]
    if not lines:
        raise ValueError(f"'{path}' has no sentences. Give a file with one in each line.")
    if len(lines) > _MOST_LINES:
        raise ValueError(
            f"{len(lines)} sentences are too many for a picture: at most {_MOST_LINES}."
        )
    return lines


def _tabulate(cosines: "List[List[float]]", texts: List[str]) -> Tuple[List[List[str]], List[str]]:
    """RETURNS (Tuple[List[List[str]], List[str]]): Rows and header of the table."""
    rows = [
        [f"{i + 1}", text, *(f"{value:.2f}" for value in row)]
        for i, (text, row) in enumerate(zip(texts, cosines))
    ]
    return rows, ["", "sentence", *(f"{i + 1}" for i in range(len(texts)))]
