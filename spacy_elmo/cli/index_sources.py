"""What an index is made of: files of text, or the sentences that `embed` has written."""

import os
from functools import cache, partial
from glob import has_magic
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Protocol

from ..utils import show_path

if TYPE_CHECKING:
    from ..bulk.vector_folder import VectorFolder
    from ..search.search_index import SearchIndex
    from ..search.sentence_encoder import Averages


class Sources(Protocol):
    """paths (List[Path]): of the sources. weights (str): of the biLM. lang (str), tokenizer
    (Dict[str, Any]): what cuts sources and queries, see `make_tokenizer`."""

    paths: List[Path]
    weights: str
    lang: str
    tokenizer: Dict[str, Any]

    def is_gone(self, name: str) -> bool:
        """name (str): of a source in the index. RETURNS (bool): Whether it was one of these."""

    def find_misfit(self, index: "SearchIndex") -> Optional[str]:
        """index (SearchIndex): that they are for. RETURNS (Optional[str]): What is to be told, if
        anything."""

    def get_origin(self, path: Path) -> str:
        """path (Path): of a source. RETURNS (str): digest of its content."""

    def read(self, path: Path) -> Iterator[List[str]]:
        """path (Path): of a source. YIELDS (List[str]): words of each sentence."""

    def read_known(
        self, path: Path, sentences: List[List[str]], index: "SearchIndex"
    ) -> "Optional[Averages]":
        """path (Path): of a source. sentences (List[List[str]]): its. index (SearchIndex): that
        they are for. RETURNS (Optional[Averages]): means of their vectors, if there are any."""

    def prepare(self, index: "SearchIndex", paths: List[Path]) -> None:
        """index (SearchIndex): to fit. paths (List[Path]): of the sources that it will get."""


def find_sources(text: str, folder: Path, weights: str, lang: str) -> Sources:
    """text (str): file, folder or glob. folder (Path): of the index. weights (str): of its biLM.
    lang (str): of the tokenizer, "" for that of the weights. RETURNS (Sources): of the index.
    RAISES (ValueError): EL080 or EL081 for the path; as `VectorSources` for vectors."""
    from ..bulk.job_files import is_job_folder
    from ..bulk.vector_folder import VectorFolder

    if is_job_folder(Path(text)):
        return VectorSources(VectorFolder(Path(text)), weights, lang)
    return TextSources(text, folder, weights, lang)


class TextSources:
    """Files of text. text (str), folder (Path), weights (str), lang (str): see `find_sources`."""

    def __init__(self, text: str, folder: Path, weights: str, lang: str) -> None:
        from ..bulk.bulk_inputs import is_hidden_or_written
        from ..language_model.evaluation import find_tokenizer
        from ..search.index_files import is_index_folder
        from ..text.corpus import cutter_maker
        from ..text.texts import find_texts

        # All texts of an index may be gone: then they have to leave it.
        is_known = is_index_folder(folder)
        files = find_texts(text, partial(is_hidden_or_written, Path(text)), may_be_none=is_known)
        # The index may lie among the texts.
        self.paths = [path for path in files if folder.resolve() != path.resolve().parent]
        self.weights = weights
        self.lang, self.tokenizer = find_tokenizer(weights, lang)
        # One for all files: a tokenizer takes longer to make than a small file to read.
        self._make_cutter = cache(cutter_maker(self.lang, self.tokenizer))
        self._names = {show_path(path.resolve()) for path in self.paths}
        self._folders = {Path(show_path(folder)) for folder in _find_folders(text)}

    def is_gone(self, name: str) -> bool:
        """See `Sources`."""
        # What is shown of a name that is not UTF-8 is no path.
        if name in self._names or self._folders.isdisjoint(Path(name).parents):
            return False
        return not Path(name).exists()

    def find_misfit(self, index: "SearchIndex") -> Optional[str]:
        """See `Sources`."""
        return None

    def get_origin(self, path: Path) -> str:
        """See `Sources`."""
        from ..files import digest_file

        return digest_file(path)

    def read(self, path: Path) -> Iterator[List[str]]:
        """See `Sources`."""
        from ..text.corpus import read_sequences

        return read_sequences(str(path), self._make_cutter)

    def read_known(
        self, path: Path, sentences: List[List[str]], index: "SearchIndex"
    ) -> "Optional[Averages]":
        """See `Sources`."""
        return None

    def prepare(self, index: "SearchIndex", paths: List[Path]) -> None:
        """See `Sources`."""
        index.prepare(chain.from_iterable(self.read(path) for path in paths))


def _find_folders(text: str) -> List[Path]:
    """text (str): file, folder or glob. RETURNS (List[Path]): below which its files are: the
    folder and those that are linked from there, or what comes before the first wildcard."""
    if not Path(text).exists():
        # Not searched for links: a glob may begin at the root of a disk.
        return [Path(*takewhile(lambda part: not has_magic(part), Path(text).parts)).resolve()]
    linked = [
        Path(folder, name).resolve()
        for folder, names, _ in os.walk(text)
        for name in names
        if Path(folder, name).is_symlink()
    ]
    return [Path(text).resolve(), *linked]


class VectorSources:
    """Shards of sentences. The vectors of layer 0 are taken: in it, a word has one vector in
    whatever text. The others are computed again, since an index reads each sentence alone.

    vectors (VectorFolder): the shards.
    weights (str), lang (str): as in `find_sources`; "" for those that the shards were made with,
        unless that was a pipeline, whose tokenizer is its own.
    RAISES (ValueError): EL309 for another language.
    """

    def __init__(self, vectors: "VectorFolder", weights: str, lang: str) -> None:
        from ..errors import Errors
        from ..language_model.evaluation import find_tokenizer

        self.vectors = vectors
        settings = vectors.manifest["settings"]
        names = ("pipeline", "component", "weights", "lang")
        made = {name: str(settings.get(name) or "") for name in names}
        own, known = made["weights"], made["lang"]
        if made["pipeline"]:
            folder = Path(made["pipeline"], made["component"])
            # A package may be anywhere.
            own, known = str(folder) if folder.is_dir() else "", lang
        # Those that are given know how they cut, wherever the others are by now.
        reads = weights or made["pipeline"] or own
        self.lang, self.tokenizer = find_tokenizer(reads, known)
        if lang not in ("", self.lang):
            raise ValueError(Errors.EL309.format(path=vectors.folder, lang=self.lang, given=lang))
        self.weights = weights or own
        self._shards = {shard.path: shard for shard in vectors.shards if shard.n_rows}
        self.paths = list(self._shards)
        self._folder = Path(show_path(vectors.folder.resolve()))
        self._names = {show_path(path.resolve()) for path in self.paths}

    def is_gone(self, name: str) -> bool:
        """See `Sources`."""
        return name not in self._names and Path(name).parent == self._folder

    def find_misfit(self, index: "SearchIndex") -> Optional[str]:
        """See `Sources`."""
        from ..errors import Warnings

        if self.vectors.manifest["pipeline"].get("biLM") == index.meta.biLM:
            return None
        return Warnings.WL063.format(path=self.vectors.folder)

    def get_origin(self, path: Path) -> str:
        """See `Sources`. RAISES (ValueError): EL254 if the shard is damaged."""
        return self.vectors.check(self._shards[path])

    def read(self, path: Path) -> Iterator[List[str]]:
        """See `Sources`."""
        return iter(self.vectors.read_words(self._shards[path]))

    def read_known(
        self, path: Path, sentences: List[List[str]], index: "SearchIndex"
    ) -> "Optional[Averages]":
        """See `Sources`."""
        layer, weights = index.meta.layer, index.meta.biLM
        if layer != 0 or not self.vectors.has(layer, weights):
            return None
        X = self.vectors.read_vectors(self._shards[path], layer)
        return {tuple(words): x for words, x in zip(sentences, X)}

    def prepare(self, index: "SearchIndex", paths: List[Path]) -> None:
        """See `Sources`."""
        from ..search.index_versions import N_FITTED

        known: Dict = {}
        n_left = N_FITTED
        for path in paths:
            if n_left <= 0:
                break
            sentences = list(islice(self.read(path), n_left))
            known.update(self.read_known(path, sentences, index) or {})
            n_left -= len(sentences)
        index.prepare(chain.from_iterable(self.read(path) for path in paths), known=known)
