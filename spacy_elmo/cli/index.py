"""`python -m spacy elmo index`: make or extend an index for semantic search."""

from pathlib import Path
from typing import TYPE_CHECKING, Dict, List

import typer

from ..utils import count_things, show_path
from .common import exit_on_error
from .console import Console
from .options import QUIET, WEIGHTS, WEIGHTS_LANG
from .outputs import writing

if TYPE_CHECKING:
    from ..search.index_versions import Source
    from ..search.search_index import SearchIndex
    from .index_sources import Sources

# Of a batch, at least.
_N_SENTENCES = 1024


def index(
    text: str = typer.Argument(
        ..., help="Text: a file, folder or glob (.txt, .jsonl, .spacy), or what `embed` has written"
    ),
    folder: Path = typer.Argument(..., help="Folder of the index", file_okay=False),
    weights: str = WEIGHTS,
    layer: int = typer.Option(0, help="Layer of the biLM; 0 is the word layer, -1 the top"),
    weighting: str = typer.Option(
        "whitened", help="mean; sif: rare words weigh more; whitened: directions weigh the same"
    ),
    backend: str = typer.Option("numpy", help="numpy, or faiss (an extra)"),
    lang: str = WEIGHTS_LANG,
    quiet: bool = QUIET,
) -> None:
    """Index the sentences of a text. Texts can be added later; those that are there and
    have not changed are passed over, and those that TEXT had and has no more are removed."""
    from ..checkpoints.loaders import load_embedder
    from ..errors import Errors, Warnings
    from ..search.search_index import SearchIndex
    from .index_sources import find_sources

    interrupted = Warnings.WL058.format(how="")
    with exit_on_error(quiet, interrupted) as console, writing(folder):
        sources = find_sources(text, folder, weights, lang)
        opened = SearchIndex.create(
            folder,
            load_embedder(sources.weights or None),
            layer=layer,
            weighting=weighting,
            backend=backend,
            lang=sources.lang,
            weights=sources.weights,
            tokenizer=sources.tokenizer,
        )
        if misfit := sources.find_misfit(opened):
            console.warn(misfit)
        _remove(opened, sources, console)
        _add(opened, sources, console)
        if not opened.meta.parts:
            raise ValueError(Errors.EL094.format(path=text))
        n_sources = count_things(len(opened.meta.parts), "source")
        summary = f"{count_things(opened.meta.n_sentences, 'sentence')} of {n_sources}"
        console.finish(folder, summary=summary)


def _remove(index: "SearchIndex", sources: "Sources", console: Console) -> None:
    """Remove what is gone."""
    for name in [part.source for part in index.meta.parts if sources.is_gone(part.source)]:
        index.remove(name)
        console.inform(f"{Path(name).name} is gone: removed")


def _add(index: "SearchIndex", sources: "Sources", console: Console) -> None:
    """Add what is new or has changed. A file is the same by whatever path."""
    from ..search.index_versions import Source

    origins = {path: sources.get_origin(path) for path in sources.paths}
    names = {path: show_path(path.resolve()) for path in sources.paths}
    changed = [path for path in sources.paths if not index.has(names[path], origins[path])]
    if len(changed) > 1:
        sources.prepare(index, changed)
    batch = _Batch(index, console)
    try:
        for path in sources.paths:
            if names[path] in batch.sources or index.has(names[path], origins[path]):
                console.inform(f"{path.name} is there already")
                continue
            sentences = list(console.track(sources.read(path), unit="sentences", desc=path.name))
            if not sentences:
                index.remove(names[path])
                console.warn(f"{path.name} has no text")
                continue
            known = sources.read_known(path, sentences, index)
            batch.put(path.name, Source(names[path], sentences, origins[path], known))
    finally:
        # Where no words are counted beforehand (`sources.prepare`), a file that cannot be read does
        # not undo those before it.
        batch.write()


class _Batch:
    """Sources that are written together: index.json names all, so that each time it is written
    takes longer."""

    def __init__(self, index: "SearchIndex", console: Console) -> None:
        self.index, self.console = index, console
        self.sources: Dict[str, Source] = {}
        self.lines: List[str] = []
        self.n_sentences = 0

    def put(self, shown: str, source: "Source") -> None:
        """shown (str): its name for a person. source (Source): to add."""
        self.sources[source.name] = source
        self.lines.append(f"{shown}: {count_things(len(source.sentences), 'sentence')}")
        self.n_sentences += len(source.sentences)
        if self.n_sentences >= _N_SENTENCES:
            self.write()

    def write(self) -> None:
        """RAISES: as `SearchIndex.add_all`."""
        sources, lines = self.sources, self.lines
        self.sources, self.lines, self.n_sentences = {}, [], 0
        if sources:
            self.index.add_all(sources.values())
        for line in lines:
            self.console.inform(line)
