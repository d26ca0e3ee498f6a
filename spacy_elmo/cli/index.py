"""`python -m spacy elmo index`: make or extend an index for semantic search."""

from pathlib import Path
from typing import Any, Callable, List

import typer
from wasabi import msg

from .common import exit_on_error
from .outputs import writing


def index(
    text: str = typer.Argument(..., help="Text: a file, folder or glob (.txt, .jsonl, .spacy)"),
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
    from ..text.corpus import TOKENIZER, cutter_maker
    from ..text.texts import TextSource

    with exit_on_error(), writing(folder):
        files = TextSource(text, seed=0).files
        # The index may lie among the texts.
        files = [path for path in files if folder.resolve() != path.resolve().parent]
        opened = SearchIndex.create(
            folder,
            load_embedder(weights or None),
            layer=layer,
            weighting=weighting,
            backend=backend,
            lang=lang,
            weights=weights,
        )
        _add(opened, files, cutter_maker(lang, TOKENIZER))
        if not opened.meta.parts:
            raise ValueError(Errors.EL094.format(path=text))
        n_sources = len(opened.meta.parts)
        msg.good(f"{folder} has {opened.meta.n_sentences:,} sentences of {n_sources:,} sources")


def _add(index: Any, files: List[Path], make_cutter: Callable[[], Any]) -> None:
    """Add what is new or has changed."""
    from itertools import chain

    from tqdm import tqdm

    from ..text.corpus import read_sequences
    from ..util.digests import digest_file

    origins = {path: digest_file(path) for path in files}
    changed = [path for path in files if not index.has(str(path), origins[path])]
    if len(changed) > 1:
        texts = (read_sequences(str(path), make_cutter) for path in changed)
        index.prepare(chain.from_iterable(texts))
    for path in files:
        if index.has(str(path), origins[path]):
            msg.info(f"{path.name} is there already")
            continue
        sequences = read_sequences(str(path), make_cutter)
        sentences = list(tqdm(sequences, unit=" sentences", desc=path.name))
        if not sentences:
            index.remove(str(path))
            msg.warn(f"{path.name} has no text")
            continue
        index.add(str(path), sentences, origin=origins[path])
        msg.good(f"{path.name}: {len(sentences):,} sentences")
