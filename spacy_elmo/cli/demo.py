"""`python -m spacy elmo demo`: one word in several sentences, side by side."""

from pathlib import Path
from typing import List, Optional

import typer
from wasabi import msg, table

from .util import exit_on_error

_SENTENCES = """\
He went to the bank to get money .
She opened an account at the bank .
He borrowed money from the bank .
He sat by the bank of the river .
They walked along the bank of the stream .
The village stands on the south bank of the river ."""


def demo(
    weights: Optional[Path] = typer.Argument(
        None, help="Folder with weights; the bundled English ones if left out"
    ),
    word: str = typer.Option("bank", help="The word to look at"),
    texts: Optional[Path] = typer.Option(None, help="File with a sentence in each line"),
    output: Path = typer.Option(Path("elmo.png"), help="Picture to write", dir_okay=False),
) -> None:
    """Show that a word's vector depends on its sentence: run a pipeline with the
    component elmo over sentences, and compare the word in each with each."""
    import spacy

    from ..figures import plot_similarities
    from ..loaders import pipe_config
    from ..similarity import compare_word

    with exit_on_error():
        nlp = spacy.blank("en")
        shape = pipe_config(weights) if weights else {}
        nlp.add_pipe("elmo", config={**shape, "store_layers": True})
        if weights:
            nlp.get_pipe("elmo").load(weights)  # type: ignore[attr-defined]
        lines = (texts.read_text("utf-8") if texts else _SENTENCES).splitlines()
        docs = list(nlp.pipe(line for line in lines if line.strip()))
        cosines = compare_word(docs, word)
        plot_similarities(cosines, [doc.text for doc in docs], word, output)
    msg.divider(f"Cosine of '{word}' in the top layer")
    print(_format(cosines, [doc.text for doc in docs]))
    msg.good(f"Wrote {output}")


def _format(cosines: "List[List[float]]", texts: List[str]) -> str:
    rows = [
        [f"{i + 1}", text, *(f"{value:.2f}" for value in row)]
        for i, (text, row) in enumerate(zip(texts, cosines))
    ]
    header = ["", "sentence", *(f"{i + 1}" for i in range(len(texts)))]
    return table(rows, header=header, divider=True, max_col=80)
