"""`python -m spacy elmo index`: make or extend an index for semantic search."""

from functools import cache, partial
from glob import has_magic
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

import typer

from ..utils import count_things, show_path
from .common import QUIET, WEIGHTS, WEIGHTS_LANG, exit_on_error, writing

if TYPE_CHECKING:
    from ..search.search_index import IndexMeta, Source


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
    """Index the sentences of a text. Texts can be added later: unchanged ones are
    skipped, and those that were deleted from TEXT are removed."""
    from ..checkpoints.loaders import load_embedder
    from ..embed.output import is_job_folder
    from ..errors import Errors
    from ..search.search_index import SearchIndex

    with exit_on_error(quiet, "Interrupted. The index is unchanged.") as console, writing(folder):
        kind: Any = _Vectors if is_job_folder(Path(text)) else _Texts
        sources = kind(text, folder, weights, lang)
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
        if (
            kind is _Vectors
            and sources.vectors.manifest["pipeline"].get("biLM") != opened.meta.biLM
        ):
            console.warn(
                f"The vectors in '{text}' are of another biLM than the index: only their words are "
                "used. Give the biLM that they were made with by `--weights`."
            )
        gone = [part.source for part in opened.meta.parts if sources.is_gone(part.source)]
        new: Dict[str, Source] = {}
        for path in sources.paths:
            source = sources.make(path, opened.meta)
            if opened.has(source.name, source.origin):
                console.inform(f"{path.name} is there already")
            elif source.name not in new:
                new[source.name] = source
        if gone or new:
            # Texts replace what the index has by their name.
            with console.track(unit=" sentences") as bar:
                counts = opened.add_all(new.values(), remove=gone, on_encoded=bar.update)
            for name in gone:
                console.inform(f"{Path(name).name} is gone: removed")
            for name, n in zip(new, counts):
                if n:
                    console.inform(f"{Path(name).name}: {count_things(n, 'sentence')}")
                else:
                    console.warn(f"{Path(name).name} has no text")
        if not opened.meta.parts:
            raise ValueError(Errors.EL094.format(path=text))
        n_sources = count_things(len(opened.meta.parts), "source")
        summary = f"{count_things(opened.meta.n_sentences, 'sentence')} of {n_sources}"
        console.finish(folder, summary=summary)


class _Texts:
    """Files of text. text (str): file, folder or glob. folder (Path): of the index. weights (str),
    lang (str): of its biLM and the tokenizer; "" for the bundled one, and for that of the weights.
    """

    def __init__(self, text: str, folder: Path, weights: str, lang: str) -> None:
        from ..embed.readers import is_hidden_or_written
        from ..language_model.evaluation import find_tokenizer
        from ..search.search_index import is_index_folder
        from ..text.corpus import cutter_maker
        from ..text.text_files import find_files

        # All texts of an index may be gone: then they have to leave it.
        is_known = is_index_folder(folder)
        files = find_files(
            text, is_excluded=partial(is_hidden_or_written, Path(text)), may_be_none=is_known
        )
        # The index may lie among the texts.
        self.paths = [path for path in files if folder.resolve() != path.resolve().parent]
        self.weights, self.biLM = weights, ""
        self.lang, self.tokenizer = find_tokenizer(weights, lang)
        # One for all files: a tokenizer takes longer to make than a small file to read.
        self._make_cutter = cache(cutter_maker(self.lang, self.tokenizer))
        self._names = {show_path(path.resolve()) for path in self.paths}
        # The folder, or what comes before the first wildcard.
        root = Path(*takewhile(lambda part: not has_magic(part), Path(text).parts))
        self._root = Path(show_path((Path(text) if Path(text).exists() else root).resolve()))

    def is_gone(self, name: str) -> bool:
        """name (str): of a source in the index. RETURNS (bool): Whether it was a file of TEXT, and
        does not exist any more."""
        is_below = self._root in Path(name).parents
        return is_below and name not in self._names and not Path(name).exists()

    def make(self, path: Path, meta: "IndexMeta") -> "Source":
        """RETURNS (Source): Of a file."""
        from ..files import digest_file
        from ..search.search_index import Source
        from ..text.corpus import read_sequences

        def read() -> Iterator[List[str]]:
            # Opened when it is read: a process can have few open files.
            yield from read_sequences(str(path), self._make_cutter)

        return Source(show_path(path.resolve()), read(), digest_file(path))


class _Vectors:
    """Shards of sentences, written by `embed`. Of layer 0, the vectors are used: in it, a word has
    the same vector everywhere. The others are computed again, since an index encodes each sentence
    alone.

    text (str), folder (Path): of the shards and the index. weights (str), lang (str): of the index;
        "" for those of the shards.
    RAISES (ValueError): EL247 for another language.
    """

    def __init__(self, text: str, folder: Path, weights: str, lang: str) -> None:
        from ..embed.output import VectorFolder
        from ..errors import Errors
        from ..language_model.evaluation import find_tokenizer

        self.vectors = VectorFolder(Path(text))
        settings = self.vectors.manifest["settings"]
        names = ("pipeline", "component", "weights", "lang")
        made = {name: str(settings.get(name) or "") for name in names}
        own, known = made["weights"], made["lang"]
        if made["pipeline"]:
            folder = Path(made["pipeline"], made["component"])
            # A package may be anywhere.
            own, known = str(folder) if folder.is_dir() else "", lang
        # Given weights know their tokenizer, wherever the others are by now.
        self.lang, self.tokenizer = find_tokenizer(weights or made["pipeline"] or own, known)
        if lang not in ("", self.lang):
            problem = f"their language is '{self.lang}', not '{lang}'"
            raise ValueError(Errors.EL247.format(path=text, problem=problem))
        self.weights = weights or own
        self.biLM = str(self.vectors.manifest["pipeline"].get("biLM"))
        self._shards = {s["shard"]: s for s in self.vectors.shards if s["n_rows"]}
        self.paths = [Path(text, name) for name in self._shards]
        self._folder = Path(show_path(Path(text).resolve()))

    def is_gone(self, name: str) -> bool:
        """name (str): of a source in the index. RETURNS (bool): Whether it was a shard of the
        folder, and is not there any more."""
        return Path(name).parent == self._folder and Path(name).name not in self._shards

    def make(self, path: Path, meta: "IndexMeta") -> "Source":
        """RETURNS (Source): Of a shard."""
        from ..search.search_index import Source

        def read() -> Iterator[List[str]]:
            yield from self.vectors.read_words(path.name)

        averages: Optional[Any] = None
        if meta.layer == 0 and self.vectors.has(0, meta.biLM):
            averages = partial(self.vectors.read_vectors, path.name, 0)
        origin = self._shards[path.name]["digest"]
        return Source(show_path(path.resolve()), read(), origin, averages)
