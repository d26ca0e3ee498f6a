"""`python -m spacy elmo search`: sentences that are like a query."""

from pathlib import Path
from typing import Optional

import typer

from .common import JSON, QUIET, exit_on_error, require_output, writing

# Words to show around the one that is most like the query.
_N_AROUND = 15


def search(
    folder: Path = typer.Argument(..., help="Folder of an index", file_okay=False),
    query: str = typer.Argument(..., help="A sentence, or some words"),
    weights: str = typer.Option(
        "",
        help="Folder of the biLM that the index was made with",
        show_default="where it was then",
    ),
    n: int = typer.Option(10, "--n", "-n", min=1, help="Sentences to show"),
    json: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Rank the sentences of an index by their likeness to a query."""
    from ..files import write_json
    from ..search.search_index import open_index
    from ..text.cutting import split_words
    from ..text.languages import make_tokenizer
    from ..utils import mark_word

    with exit_on_error(quiet) as console:
        require_output(json)
        index = open_index(folder, weights)
        tokenizer = make_tokenizer(index.meta.lang, index.meta.tokenizer)
        hits = index.search(split_words(tokenizer, query), n)
        for hit in hits:
            snippet = mark_word(hit.words, hit.nearest, console.mark, n_around=_N_AROUND)
            place = f"{hit.source}, sentence {hit.number:,}"
            console.show(f"{hit.score:.3f}  {snippet}\n       {place}")
        if json is not None:
            with writing(json):
                write_json(json, [hit._asdict() for hit in hits])
        console.finish(json)
