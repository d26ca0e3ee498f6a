"""What an index is made of: files of text, or the sentences that `embed` has written."""

from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Protocol

if TYPE_CHECKING:
    from ..bulk.vector_folder import VectorFolder
    from ..search.search_index import SearchIndex
    from ..search.sentence_encoder import Averages


class Sources(Protocol):
    """paths (List[Path]): of the sources."""

    paths: List[Path]

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


def find_sources(text: str, folder: Path, lang: str) -> Sources:
    """text (str): file, folder or glob. folder (Path): of the index. lang (str): of the tokenizer.
    RETURNS (Sources): of the index. RAISES (ValueError): EL080 or EL081 for the path; as
    `VectorFolder` for one of vectors."""
    from ..bulk.vector_folder import VectorFolder, is_vector_folder

    if is_vector_folder(Path(text)):
        return VectorSources(VectorFolder(Path(text)))
    return TextSources(text, folder, lang)


class TextSources:
    """Files of text. text (str), folder (Path), lang (str): see `find_sources`."""

    def __init__(self, text: str, folder: Path, lang: str) -> None:
        from ..text.corpus import TOKENIZER, cutter_maker
        from ..text.texts import TextSource

        files = TextSource(text, seed=0).files
        # The index may lie among the texts.
        self.paths = [path for path in files if folder.resolve() != path.resolve().parent]
        self._make_cutter = cutter_maker(lang, TOKENIZER)

    def get_origin(self, path: Path) -> str:
        """See `Sources`."""
        from ..util.digests import digest_file

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


class VectorSources:
    """Shards of sentences. The vectors of layer 0 are taken: in it, a word has one vector in
    whatever text. The others are computed again, since an index reads each sentence alone.

    vectors (VectorFolder): the shards.
    """

    def __init__(self, vectors: "VectorFolder") -> None:
        self.vectors = vectors
        self._shards = {shard.path: shard for shard in vectors.shards if shard.n_rows}
        self.paths = list(self._shards)

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
