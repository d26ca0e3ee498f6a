"""`python -m spacy elmo index`: make or extend an index for semantic search."""

from pathlib import Path
from typing import List

import typer
from wasabi import msg

from .util import exit_on_error


def index(
    text: str = typer.Argument(..., help="Text: a file, folder or glob (.txt, .jsonl, .spacy)"),
    folder: Path = typer.Argument(..., help="Folder of the index", file_okay=False),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
    layer: int = typer.Option(0, help="Layer of the biLM; 0 is the word layer, -1 the top"),
    weighting: str = typer.Option(
        "whitened", help="mean; sif: rare words weigh more; whitened: directions weigh the same"
    ),
    backend: str = typer.Option("numpy", help="numpy, or faiss (an extra)"),
    lang: str = typer.Option("en", help="Language of the tokenizer"),
) -> None:
    """Index the sentences of a text. Texts can be added later; those that are there and
    have not changed are passed over."""
    from tqdm import tqdm

    from ..corpora.corpus import TOKENIZER, cutter_maker, read_sequences
    from ..corpora.texts import TextSource
    from ..loaders import load_embedder
    from ..search.index import SearchIndex

    with exit_on_error():
        opened = SearchIndex.create(
            folder,
            load_embedder(weights or None),
            layer=layer,
            weighting=weighting,
            backend=backend,
            lang=lang,
            weights=weights,
        )
        make_cutter = cutter_maker(lang, TOKENIZER)
        opened.prepare(read_sequences(text, make_cutter))
        for source in TextSource(text, seed=0).files:
            sentences: List[List[str]] = list(
                tqdm(read_sequences(str(source), make_cutter), unit=" sentences", desc=source.name)
            )
            if not sentences:
                opened.remove(str(source))
                msg.warn(f"{source.name} has no text")
                continue
            n_added = opened.add(str(source), sentences)
            if n_added:
                msg.good(f"{source.name}: {n_added:,} sentences")
            else:
                msg.info(f"{source.name} is there already")
    n_sentences = sum(part["n_sentences"] for part in opened.meta["parts"])
    msg.good(f"{folder} has {n_sentences:,} sentences of {len(opened.meta['parts']):,} sources")
