"""`SearchIndex`: sentences and their vectors in a folder, to which texts can be added.

index.json says which files are valid, and is replaced last. Each source is a part: the
words of its sentences (words-DIGEST.jsonl) and their vectors (vectors-DIGEST.npy, float32,
shape (n_sentences, width)). What SIF and whitening need is fitted on the first 20,000
sentences; while there are fewer, again each time that their number has doubled.

A writer holds a lock. A reader holds none: if a file is gone, a writer has replaced it, and
the reader looks into index.json again. The digests of all files but the
vectors are checked when a folder is opened, those of the vectors at the first search.
"""

from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Set,
    Tuple,
    TypeVar,
)

from numpy.typing import NDArray

from ..errors import Errors
from ..files import lock_folder
from ..inference.embedder import Embedder, require_words
from ..text.corpus import TOKENIZER
from ..utils import require_layer, require_least
from .backends import search_arrays
from .index_checks import make_meta, require_empty, require_same
from .index_contents import read_encoder, read_sentence
from .index_files import (
    META_FILE,
    check_content,
    damaged,
    get_path,
    map_npy,
    remove_others,
)
from .index_meta import IndexMeta, get_stamp, read_meta
from .index_versions import Source, Version, drop_source, fit, update_source
from .sentence_encoder import Averages, SentenceEncoder

Answer = TypeVar("Answer")


class Hit(NamedTuple):
    """score (float): cosine. source (str): of the sentence. number (int): of the sentence
    in it, from 1. words (List[str]): its words. nearest (int): place of the word that is
    most like the query."""

    score: float
    source: str
    number: int
    words: List[str]
    nearest: int


class _Held(NamedTuple):
    """version (Version): what was read or written last. stamp (Tuple[int, ...]): of its index.json,
    or of an earlier one."""

    version: Version
    stamp: Tuple[int, ...]


class SearchIndex:
    """An index that is open for adding and searching, by any number of threads.

    folder (Path): where it lies.
    embedder (Embedder): makes its vectors.
    meta (IndexMeta): content of index.json, or of the one to be written.
    EXAMPLE:
        >>> from spacy_elmo import load_embedder
        >>> index = SearchIndex.create(
        ...     Path("index"),
        ...     load_embedder(),
        ...     layer=1,
        ...     weighting="mean",
        ...     backend="numpy",
        ...     lang="en",
        ... )
        >>> index.add("proverbs", [["Time", "flies", "."], ["Rome", "was", "not", "built", "."]])
        2
        >>> index.search(["Time", "flies", "."], n=1)[0].words
        ['Time', 'flies', '.']
    """

    def __init__(self, folder: Path, embedder: Embedder, meta: IndexMeta) -> None:
        self.folder = folder
        # Replaced as a whole, so that a search uses one version from start to end, and no writer
        # takes what a reader has read before for what is there now.
        self._held = _Held(Version(meta, SentenceEncoder(embedder, meta.layer)), ())
        self._hash = embedder.hash_weights().hex()
        self._is_stored = False
        # Names of files whose digests were checked.
        self._checked: Set[str] = set()

    @property
    def meta(self) -> IndexMeta:
        """RETURNS (IndexMeta): Content of index.json when it was last read."""
        return self._held.version.meta

    @property
    def encoder(self) -> SentenceEncoder:
        """RETURNS (SentenceEncoder): Encodes its sentences."""
        return self._held.version.encoder

    @classmethod
    def create(
        cls,
        folder: Path,
        embedder: Embedder,
        *,
        layer: int,
        weighting: str,
        backend: str,
        lang: str,
        weights: str = "",
        tokenizer: Optional[Dict[str, Any]] = None,
    ) -> "SearchIndex":
        """Open an index, or make an empty one.

        folder (Path): where.
        embedder (Embedder): makes the vectors.
        layer (int): of the biLM.
        weighting (str): one of `WEIGHTINGS`.
        backend (str): one of `BACKENDS`.
        lang (str): noted, for who searches.
        weights (str): folder of the biLM, noted; "" for the bundled one.
        tokenizer (Optional[Dict[str, Any]]): block of a tokenizer, noted; None for spaCy's rules.
        RAISES (ValueError): EL044 if the folder has an index of another kind, EL140 if it is
            damaged, EL141 if the folder has other things, EL017 for a layer, weighting,
            backend or language that is not possible, EL045 if there is no faiss.
        RAISES (OSError): if the folder cannot be made.
        """
        block = TOKENIZER if tokenizer is None else tokenizer
        meta = make_meta(embedder, layer, weighting, backend, lang, block, weights)
        if (folder / META_FILE).exists():
            index = cls.open(folder, embedder)
            require_same(folder, index.meta, meta)
            return index
        require_empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder, embedder, meta)

    @classmethod
    def open(cls, folder: Path, embedder: Embedder) -> "SearchIndex":
        """folder (Path): of an index. embedder (Embedder): the one that it was made with.
        RETURNS (SearchIndex): open. RAISES (ValueError): EL043 if there is none, EL044 for
        another embedder, EL140 if it is damaged."""
        index = cls(folder, embedder, read_meta(folder))
        index._held = index._read(lambda _: index._load())
        return index

    def has(self, source: str, origin: str) -> bool:
        """source (str): what it is called. origin (str): digest of its file. RETURNS (bool):
        Whether it is there, unchanged."""
        part = self.meta.find(source)
        return part is not None and part.origin == origin

    def add(
        self,
        source: str,
        sentences: Iterable[List[str]],
        *,
        origin: Optional[str] = None,
        known: Optional[Averages] = None,
    ) -> int:
        """Add a source, or replace it if its sentences have changed.

        source (str): what to call it.
        sentences (Iterable[List[str]]): words of each; empty ones are left out.
        origin (Optional[str]): digest of the file that they are of, see `has`.
        known (Optional[Averages]): means of the vectors of sentences, by this embedder and layer,
            each sentence read alone.
        RETURNS (int): sentences added; 0 if the source is there unchanged.
        RAISES (ValueError): EL094 if there is no sentence, EL013 for one that is a string, EL140 if
            the index is damaged.
        RAISES (OSError): if it cannot be written; it is unchanged then.
        """
        return self.add_all([Source(source, list(sentences), origin, known)])[0]

    def add_all(self, sources: Iterable[Source]) -> List[int]:
        """As `add`, several sources with one index.json: many small ones take much less time.

        sources (Iterable[Source]): what to add; of two of one name, the second.
        RETURNS (List[int]): for each the sentences added.
        RAISES: as `add`; none is added then.
        """
        cleared = [_leave_out_empty(source) for source in sources]
        counts: List[int] = []
        with self._writing() as before:
            version = before
            for source in cleared:
                version, n = update_source(self.folder, version, source)
                counts.append(n)
            if version.meta != before.meta:
                self._commit(version)
        return counts

    def remove(self, source: str) -> None:
        """source (str): whose sentences go, if it is there. RAISES: as `add`."""
        with self._writing() as version:
            if version.meta.find(source) is not None:
                self._commit(drop_source(version, source))

    def prepare(self, sentences: Iterable[List[str]], *, known: Optional[Averages] = None) -> None:
        """Fit the encoder to texts that are about to be added one by one, so that it need
        not be fitted several times.

        sentences (Iterable[List[str]]): words of each, read once, or not at all if there is
            nothing to fit.
        known (Optional[Averages]): see `add`.
        RAISES: as `add`.
        """
        with self._writing(known) as version:
            fitted = fit(self.folder, version, sentences)
            if fitted is not version:
                self._commit(fitted)

    def search(self, words: List[str], n: int = 10) -> List[Hit]:
        """Rank the sentences by their cosine with a query.

        words (List[str]): of the query.
        n (int): how many.
        RETURNS (List[Hit]): the best first.
        RAISES (ValueError): EL046 for a query without words, EL012 for no sentence, EL045 without
            faiss, EL140 if the index is damaged.
        """
        require_least("n", n, 1)
        if not words:
            raise ValueError(Errors.EL046)
        return self._read(lambda version: self._search(version, words, n))

    def _search(self, version: Version, words: List[str], n: int) -> List[Hit]:
        meta, encoder = version
        query = encoder.encode([words])[0]
        nearest_rows = search_arrays(self._map_vectors(version), query, n, backend=meta.backend)
        hits = []
        for row, score in nearest_rows:
            part, row = meta.find_row(row)
            sentence = read_sentence(self.folder, part, row)
            nearest = encoder.find_token(sentence, query)
            hits.append(Hit(score, part.source, row + 1, sentence, nearest))
        return hits

    def _map_vectors(self, version: Version) -> Iterator[NDArray]:
        # One after the other: a system lets a process have some hundred files open.
        width = version.encoder.embedder.bilm.config.width
        for part in version.meta.parts:
            self._check("vectors", part.vectors)
            path = get_path(self.folder, "vectors", part.vectors)
            yield map_npy(path, "<f4", part.n_sentences, width)

    def _read(self, work: Callable[[Version], Answer]) -> Answer:
        """Read files; once more if they are gone because a writer has replaced them."""
        stamp = None
        while True:
            try:
                if stamp is not None:
                    self._held = self._load()
                return work(self._held.version)
            except FileNotFoundError as err:
                previous, stamp = stamp, get_stamp(self.folder)
                if stamp == previous:
                    raise damaged(self.folder, f"a file is gone ({err})") from err

    def _load(self) -> _Held:
        """Read index.json, check all files but the vectors, and read what the encoder was
        fitted to."""
        stamp = get_stamp(self.folder)
        loaded, encoder = self._held.version
        meta = read_meta(self.folder)
        require_same(self.folder, meta, replace(meta, biLM=self._hash))
        require_layer(meta.layer, encoder.embedder.bilm.config.n_layers)
        for kind, content in meta.list_contents():
            if kind != "vectors":
                self._check(kind, content)
        has_changed = (loaded.transform, loaded.counts) != (meta.transform, meta.counts)
        if has_changed or not self._is_stored:
            encoder = read_encoder(self.folder, meta, encoder)
        self._is_stored = True
        return _Held(Version(meta, encoder), stamp)

    def _check(self, kind: str, content: str) -> None:
        name = get_path(self.folder, kind, content).name
        if name not in self._checked:
            check_content(self.folder, kind, content)
            self._checked.add(name)

    @contextmanager
    def _writing(self, known: Optional[Averages] = None) -> Iterator[Version]:
        """Lock the index for writing. YIELDS (Version): the current one, which knows averages."""
        with lock_folder(self.folder, wait=True):
            held = self._held
            if get_stamp(self.folder) != held.stamp:
                held = self._load()
                require_same(self.folder, held.version.meta, self.meta)
                self._held = held
            version = held.version
            try:
                yield version._replace(encoder=replace(version.encoder, known=known or {}))
            except BaseException:
                self._clean_up()
                raise

    def _commit(self, version: Version) -> None:
        version.meta.write(self.folder)
        forgetful = replace(version.encoder, known={})
        self._held = _Held(version._replace(encoder=forgetful), get_stamp(self.folder))
        self._is_stored = True
        remove_others(self.folder, version.meta.list_names())

    def _clean_up(self) -> None:
        # As index.json is now: it may have been replaced before the failure.
        with suppress(ValueError, OSError):
            has_meta = (self.folder / META_FILE).exists()
            names = read_meta(self.folder).list_names() if has_meta else set()
            remove_others(self.folder, names)


def _leave_out_empty(source: Source) -> Source:
    """RAISES (ValueError): EL094 if there is no other sentence, EL013 and EL119 for what is no
    list of words."""
    require_words(source.sentences)
    sentences = [list(words) for words in source.sentences if words]
    if not sentences:
        raise ValueError(Errors.EL094.format(path=source.name))
    return source._replace(sentences=sentences)
