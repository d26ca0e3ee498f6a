"""`python -m spacy elmo search`: sentences that are like a query."""

from pathlib import Path
from typing import Optional

import typer
from wasabi import color, msg

from .util import exit_on_error

# Words to show around the one that is most like the query.
_N_AROUND = 15


def search(
    folder: Path = typer.Argument(..., help="Folder of an index", file_okay=False),
    query: str = typer.Argument(..., help="A sentence, or some words"),
    n: int = typer.Option(10, "-n", min=1, help="Sentences to show"),
    json: Optional[Path] = typer.Option(None, help="JSON file to write", dir_okay=False),
) -> None:
    """Rank the sentences of an index by their likeness to a query."""
    from ..corpora.corpus import make_tokenizer
    from ..loaders import load_embedder
    from ..results import write_json
    from ..search.index import Hit, SearchIndex, read_meta

    def show(hit: Hit) -> str:
        start, end = max(0, hit.nearest - _N_AROUND), hit.nearest + _N_AROUND + 1
        words = [
            color(word, fg="green", bold=True) if i == hit.nearest else word
            for i, word in enumerate(hit.words)
        ]
        dots = ("… " if start else "", " …" if end < len(words) else "")
        return f"{dots[0]}{' '.join(words[start:end])}{dots[1]}"

    with exit_on_error():
        meta = read_meta(folder)
        index = SearchIndex.open(folder, load_embedder(meta["weights"] or None))
        tokenizer = make_tokenizer(meta["lang"], {"@tokenizers": "spacy.Tokenizer.v1"})
        hits = index.search([t.text for t in tokenizer(query) if not t.is_space], n)
    for hit in hits:
        print(f"{hit.score:.3f}  {show(hit)}\n       {hit.source}, sentence {hit.number:,}")
    if json is not None:
        write_json(json, [hit._asdict() for hit in hits])
        msg.good(f"Wrote {json}")
