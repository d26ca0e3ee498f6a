"""`python -m spacy elmo index`: make or extend an index for semantic search."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from wasabi import msg

from .common import exit_on_error
from .outputs import writing

if TYPE_CHECKING:
    from ..search.search_index import SearchIndex
    from .index_sources import Sources


def index(
    text: str = typer.Argument(
        ..., help="Text: a file, folder or glob (.txt, .jsonl, .spacy), or what `embed` has written"
    ),
    folder: Path = typer.Argument(..., help="Folder of the index", file_okay=False),
    weights: str = typer.Option(
        "", help="Folder of a biLM, or its name; the bundled one if left out"
    ),
    layer: int = typer.Option(0, help="Layer of the biLM; 0 is the word layer, -1 the top"),
    weighting: str = typer.Option(
        "whitened", help="mean; sif: rare words weigh more; whitened: directions weigh the same"
    ),
    backend: str = typer.Option("numpy", help="numpy, or faiss (an extra)"),
    lang: str = typer.Option("en", help="Language of the tokenizer"),
) -> None:
    """Index the sentences of a text. Texts can be added later; those that are there and
    have not changed are passed over."""
    from ..checkpoints.loaders import load_embedder
    from ..errors import Errors
    from ..search.search_index import SearchIndex
    from .index_sources import find_sources

    with exit_on_error(), writing(folder):
        sources = find_sources(text, folder, lang)
        opened = SearchIndex.create(
            folder,
            load_embedder(weights or None),
            layer=layer,
            weighting=weighting,
            backend=backend,
            lang=lang,
            weights=weights,
        )
        _add(opened, sources)
        if not opened.meta.parts:
            raise ValueError(Errors.EL094.format(path=text))
        n_sources = len(opened.meta.parts)
        msg.good(f"{folder} has {opened.meta.n_sentences:,} sentences of {n_sources:,} sources")


def _add(index: "SearchIndex", sources: "Sources") -> None:
    """Add what is new or has changed."""
    from tqdm import tqdm

    origins = {path: sources.get_origin(path) for path in sources.paths}
    changed = [path for path in sources.paths if not index.has(str(path), origins[path])]
    if len(changed) > 1:
        sources.prepare(index, changed)
    for path in sources.paths:
        if index.has(str(path), origins[path]):
            msg.info(f"{path.name} is there already")
            continue
        sentences = list(tqdm(sources.read(path), unit=" sentences", desc=path.name))
        if not sentences:
            index.remove(str(path))
            msg.warn(f"{path.name} has no text")
            continue
        known = sources.read_known(path, sentences, index)
        index.add(str(path), sentences, origin=origins[path], known=known)
        msg.good(f"{path.name}: {len(sentences):,} sentences")
