"""`python -m spacy elmo index` and `search`: make and search an index of sentences."""

from functools import cache, partial
from glob import has_magic
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import typer

from ..utils import count_things, mark_word, show_path
from .common import exit_on_error, require_output, writing
from .options import INDEX_WEIGHTS, JSON, QUIET, WEIGHTS, WEIGHTS_LANG

if TYPE_CHECKING:
    from ..search.search_index import IndexMeta, Source

# Words to show around the one that is most like the query.
_N_AROUND = 15


class _Input(NamedTuple):
    """What is indexed: sources, whether one of the index is gone by now, the biLM and tokenizer of
    the index, and the hash of the biLM that made given vectors."""

    make_sources: "Callable[[IndexMeta], Iterator[Source]]"
    is_gone: Callable[[str], bool]
    weights: str
    lang: str
    tokenizer: Dict[str, Any]
    biLM: Optional[str] = None


def index(
    text: str = typer.Argument(
        ..., help="Text: a file, folder or glob (.txt, .jsonl, .spacy), or what `embed` has written"
    ),
    folder: Path = typer.Argument(..., help="Folder of the index", file_okay=False),
    weights: str = WEIGHTS,
    layer: int = typer.Option(0, help="Layer of the biLM; 0 is the word layer, -1 the top layer"),
    weighting: str = typer.Option(
        "whitened", help="mean; sif: rare words weigh more; whitened: directions count equally"
    ),
    backend: str = typer.Option("numpy", help="numpy, or faiss (needs the extra search)"),
    lang: str = WEIGHTS_LANG,
    quiet: bool = QUIET,
) -> None:
    """Index the sentences of a text. You can add texts later with the same command: unchanged
    files are skipped, and files that were deleted from TEXT leave the index."""
    from ..checkpoints.loaders import load_embedder
    from ..embed.output import is_job_folder
    from ..errors import Errors
    from ..search.search_index import SearchIndex

    with exit_on_error(quiet, "Interrupted. The index is unchanged.") as console, writing(folder):
        find = _find_vectors if is_job_folder(Path(text)) else _find_texts
        given = find(text, folder, weights, lang)
        opened = SearchIndex.create(
            folder,
            load_embedder(given.weights or None),
            layer=layer,
            weighting=weighting,
            backend=backend,
            lang=given.lang,
            weights=given.weights,
            tokenizer=given.tokenizer,
        )
        if given.biLM not in (None, opened.meta.biLM):
            console.warn(
                f"The vectors in '{text}' come from another biLM than the index, so only their "
                "words are used. To use the vectors, give their biLM with `--weights`."
            )
        gone = [part.source for part in opened.meta.parts if given.is_gone(part.source)]
        new: Dict[str, Source] = {}
        for source in given.make_sources(opened.meta):
            if source.origin is not None and opened.has(source.name, source.origin):
                console.inform(f"{Path(source.name).name} is already in the index")
            else:
                new.setdefault(source.name, source)
        if gone or new:
            # Texts replace what the index has by their name.
            with console.track(unit=" sentences") as bar:
                counts = opened.add_all(new.values(), remove=gone, on_encoded=bar.update)
            for name in gone:
                console.inform(f"{Path(name).name} no longer exists: removed from the index")
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


def _find_texts(text: str, folder: Path, weights: str, lang: str) -> _Input:
    """Find files of text. Those that no longer exist leave the index."""
    from ..embed.readers import is_hidden_or_written
    from ..files import digest_file
    from ..language_model.evaluation import find_tokenizer
    from ..search.search_index import Source, is_index_folder
    from ..text.corpus import cutter_maker, read_sequences
    from ..text.text_files import find_files

    is_excluded = partial(is_hidden_or_written, Path(text))
    # All texts of an index may be gone: then they have to leave it.
    files = find_files(text, is_excluded=is_excluded, may_be_none=is_index_folder(folder))
    # The index may lie among the texts.
    paths = [path for path in files if folder.resolve() != path.resolve().parent]
    names = {show_path(path.resolve()) for path in paths}
    # The folder, or what comes before the first wildcard.
    fixed = Path(*takewhile(lambda part: not has_magic(part), Path(text).parts))
    root = Path(show_path((Path(text) if Path(text).exists() else fixed).resolve()))
    lang, tokenizer = find_tokenizer(weights, lang)
    # One for all files: a tokenizer takes longer to make than a small file to read.
    make_cutter = cache(cutter_maker(lang, tokenizer))

    def is_gone(name: str) -> bool:
        return root in Path(name).parents and name not in names and not Path(name).exists()

    def read(path: Path) -> Iterator[List[str]]:
        # Opened when it is read: a process can have few open files.
        yield from read_sequences(str(path), make_cutter)

    def make_sources(meta: "IndexMeta") -> "Iterator[Source]":
        for path in paths:
            yield Source(show_path(path.resolve()), read(path), digest_file(path))

    return _Input(make_sources, is_gone, weights, lang, tokenizer)


def _find_vectors(text: str, folder: Path, weights: str, lang: str) -> _Input:
    """Find shards of sentences, written by `embed`. Of layer 0, the vectors are used: in it, a word
    has the same vector everywhere. The others are computed again, since an index encodes each
    sentence alone."""
    from ..embed.output import VectorFolder
    from ..errors import Errors
    from ..language_model.evaluation import find_tokenizer
    from ..search.search_index import Source

    vectors = VectorFolder(Path(text))
    settings = vectors.manifest["settings"]
    names = ("pipeline", "component", "weights", "lang")
    pipeline, component, own, known = (str(settings.get(name) or "") for name in names)
    if pipeline:
        path = Path(pipeline, component)
        # A package may be anywhere.
        own, known = str(path) if path.is_dir() else "", lang
    # Given weights know their tokenizer, wherever the others are by now.
    found, tokenizer = find_tokenizer(weights or pipeline or own, known)
    if lang not in ("", found):
        problem = f"their language is '{found}', not '{lang}'"
        raise ValueError(Errors.EL247.format(path=text, problem=problem))
    digests = {shard["shard"]: shard["digest"] for shard in vectors.shards if shard["n_rows"]}
    root = Path(show_path(Path(text).resolve()))

    def is_gone(name: str) -> bool:
        return Path(name).parent == root and Path(name).name not in digests

    def read(shard: str) -> Iterator[List[str]]:
        yield from vectors.read_words(shard)

    def make_sources(meta: "IndexMeta") -> "Iterator[Source]":
        has_vectors = meta.layer == 0 and vectors.has(0, meta.biLM)
        for shard, digest in digests.items():
            averages = partial(vectors.read_vectors, shard, 0) if has_vectors else None
            yield Source(show_path(Path(text, shard).resolve()), read(shard), digest, averages)

    biLM = str(vectors.manifest["pipeline"].get("biLM"))
    return _Input(make_sources, is_gone, weights or own, found, tokenizer, biLM)


def search(
    folder: Path = typer.Argument(..., help="Folder of an index", file_okay=False),
    query: str = typer.Argument(..., help="A sentence, or some words"),
    weights: str = INDEX_WEIGHTS,
    n: int = typer.Option(10, "--n", "-n", min=1, help="Sentences to show"),
    json: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Rank the sentences of an index by their similarity to a query."""
    from ..files import write_json
    from ..search.search_index import open_index
    from ..text.cutting import split_words
    from ..text.languages import make_tokenizer

    with exit_on_error(quiet) as console:
        require_output(json)
        opened = open_index(folder, weights)
        tokenizer = make_tokenizer(opened.meta.lang, opened.meta.tokenizer)
        hits = opened.search(split_words(tokenizer, query), n)
        found = {hit.source for hit in hits}
        parts = [part for part in opened.meta.parts if part.source in found]
        known = {part.source: _read_places(part.source, part.origin) for part in parts}
        places = [
            known[hit.source][hit.number - 1]
            if known[hit.source]
            else f"{hit.source}, sentence {hit.number:,}"
            for hit in hits
        ]
        for hit, place in zip(hits, places):
            snippet = mark_word(hit.words, hit.nearest, console.mark, n_around=_N_AROUND)
            console.show(f"{hit.score:.3f}  {snippet}\n       {place}")
        console.inform("Cosine with the query; the word that is most similar to it is marked")
        if json is not None:
            rows = [{**hit._asdict(), "place": place} for hit, place in zip(hits, places)]
            with writing(json):
                write_json(json, rows)
        console.finish(json)


def _read_places(source: str, origin: Optional[str]) -> List[str]:
    """Of a shard that `embed` wrote, where each sentence is in the files that it was made of; []
    for other sources, and if the shard has changed."""
    from ..embed.output import VectorFolder, is_job_folder

    shard = Path(source)
    if is_job_folder(shard.parent) and shard.is_file():
        vectors = VectorFolder(shard.parent)
        if any((s["shard"], s["digest"]) == (shard.name, origin) for s in vectors.shards):
            return vectors.read_places(shard.name)
    return []
