"""`python -m spacy elmo demo`: compare one word in several sentences."""

from pathlib import Path
from typing import List, Optional

import typer

from .common import exit_on_error, require_output
from .options import MODEL, QUIET, optional

# Each is a row and a column of the picture.
_MOST_LINES = 50
_PIPELINE = "en_elmo_web"
_ANNOTATED = "Ann Smith left a bank in Oslo, and Google hired her."
_SENTENCES = """\
He went to the bank to get money.
She opened an account at the bank.
He borrowed money from the bank.
He sat by the bank of the river.
They walked along the bank of the stream.
The village stands on the south bank of the river."""


def demo(
    weights: Optional[Path] = MODEL,
    word: str = typer.Option("bank", help="The word to look at"),
    texts: Optional[str] = optional("File with a sentence in each line", "six with 'bank'"),
    pipeline: Optional[str] = optional(
        "Trained pipeline to show what it finds in a sentence", "en_elmo_web if it is installed"
    ),
    output: Path = typer.Option(Path("elmo.png"), help="Picture to write", dir_okay=False),
    dark: bool = typer.Option(False, "--dark", help="Draw light letters on a dark background"),
    quiet: bool = QUIET,
) -> None:
    """Show tags, trees and entities of a trained pipeline, and that a word's vector depends on its
    sentence: run the component elmo on sentences, and compare the word's vectors between all pairs
    of sentences."""
    from spacy.util import is_package

    from ..drawing import require_drawable
    from ..experiments.contexts import compare_word, is_centred
    from ..experiments.plots import plot_similarities
    from ..language_model.evaluation import find_tokenizer
    from ..pipeline.saving import load_pipeline, make_elmo_pipeline

    with exit_on_error(quiet) as console:
        require_output(output)
        require_drawable(output)
        lines = _SENTENCES.splitlines() if texts is None else _read_lines(texts)
        if pipeline is None and weights is None and is_package(_PIPELINE):
            pipeline = _PIPELINE
        if pipeline is not None:
            doc = load_pipeline(pipeline)(_ANNOTATED)
            console.show_title(f"What {pipeline} finds")
            console.show_table(
                [(t.text, t.tag_, t.lemma_, t.dep_, t.head.text, t.ent_type_) for t in doc],
                ("", "tag", "lemma", "relation", "to", "entity"),
            )
        path = str(weights or "")
        nlp = make_elmo_pipeline(path, *find_tokenizer(path), store_layers=True)
        docs = list(nlp.pipe(lines))
        cosines = compare_word(docs, word)
        centred = ", minus the mean of all sentences" if is_centred(len(docs)) else ""
        console.show_title(f"Cosine of '{word}' in the top layer{centred}")
        numbers = range(1, len(docs) + 1)
        rows = [
            (n, doc.text, *(f"{value:.2f}" for value in row))
            for n, doc, row in zip(numbers, docs, cosines)
        ]
        console.show_table(rows, ("", "sentence", *map(str, numbers)))
        plot_similarities(cosines, [doc.text for doc in docs], word, output, dark=dark)
        console.finish(output)


def _read_lines(path: str) -> List[str]:
    from ..text.corpus import TextSource

    lines = [line for line in TextSource(path, seed=0).read_texts() if line.strip()]
    if not lines:
        raise ValueError(f"'{path}' has no sentences. Give a file with one in each line.")
    if len(lines) > _MOST_LINES:
        raise ValueError(
            f"{len(lines)} sentences are too many for a picture. Give at most {_MOST_LINES}."
        )
    return lines
