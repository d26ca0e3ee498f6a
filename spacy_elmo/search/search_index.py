"""`SearchIndex`: sentences and their vectors in a folder, to which texts can be added.

The folder is written beside the old one and renamed. `sentences.jsonl` has a list of words in each
line, `offsets.bin` the byte at which each begins (int64), `vectors.bin` their vectors (float32,
shape (n_sentences, width)), `transform.bin` and `counts.json` what SIF and whitening were fitted
to: the first 20,000 sentences; while there are fewer, again each time that their number doubles.
"""

import json
import re
from array import array
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray
from spacy.util import minibatch

from ..checkpoints.formats import CheckpointFiles, find_name
from ..checkpoints.loaders import load_embedder
from ..errors import Errors
from ..files import atomic_folder, find_folder, read_json_object, require_no_others
from ..inference.embedder import Embedder, require_words
from ..text.languages import TOKENIZER, is_tokenizer_block
from ..utils import require_known, require_layer, require_least
from .sentence_encoder import (
    BACKENDS,
    WEIGHTINGS,
    SentenceEncoder,
    Transform,
    count_needed,
    fit_transform,
    require_backend,
    search_vectors,
)

_META, _SENTENCES, _OFFSETS = "index.json", "sentences.jsonl", "offsets.bin"
_VECTORS, _TRANSFORM, _COUNTS = "vectors.bin", "transform.bin", "counts.json"
_FILES = {_META, _SENTENCES, _OFFSETS, _VECTORS, _TRANSFORM, _COUNTS}
_VERSION = 4
_LANG = re.compile("[A-Za-z][A-Za-z0-9_-]*")
# Sentences that are encoded at a time, and those that transforms are fitted to.
_N_SENTENCES = 1024
_N_FITTED = 20_000


class Hit(NamedTuple):
    """score (float): cosine. source (str): of the sentence. number (int): of the sentence
    in it, from 1. words (List[str]): its words. nearest (int): place of the word that is
    most similar to the query."""

    score: float
    source: str
    number: int
    words: List[str]
    nearest: int


class Source(NamedTuple):
    """A text to add, and the digest of its file. `averages`, if given, reads the means of the
    words' vectors by the embedder and layer of the index, shape (n_sentences, width)."""

    name: str
    sentences: Iterable[List[str]]
    origin: Optional[str] = None
    averages: Optional[Callable[[], NDArray]] = None


@dataclass(frozen=True)
class Part:
    """A source in the index: its name, the digest of its file, and the number of its sentences."""

    source: str
    origin: Optional[str]
    n_sentences: int


@dataclass(frozen=True)
class IndexMeta:
    """How an index was made, and what it contains: folder and hash of the biLM's weights, and the
    number of sentences that the encoder was fitted to; 0 if there are too few."""

    layer: int
    weighting: str
    backend: str
    lang: str
    tokenizer: Dict[str, Any]
    weights: str
    biLM: str
    n_fitted: int = 0
    parts: Tuple[Part, ...] = ()

    @property
    def n_sentences(self) -> int:
        return sum(part.n_sentences for part in self.parts)

    def list_rows(self) -> Iterator[Tuple[Part, int, int]]:
        """Sources, and the rows where each begins and ends."""
        start = 0
        for part in self.parts:
            yield part, start, start + part.n_sentences
            start += part.n_sentences


class _Content(NamedTuple):
    """The files of an index, mapped. `text` has the bytes of sentences.jsonl, `offsets` the shape
    (n_sentences + 1,), `vectors` (n_sentences, width)."""

    folder: Path
    meta: IndexMeta
    encoder: SentenceEncoder
    text: NDArray
    offsets: NDArray
    vectors: NDArray

    def read(self, start: int, end: int) -> Iterator[List[str]]:
        """Read words of sentences."""
        for row in range(start, end):
            line = bytes(self.text[self.offsets[row] : self.offsets[row + 1]])
            try:
                words = json.loads(line.decode("utf-8", "surrogatepass"))
                require_words([words])
            except (ValueError, RecursionError) as err:
                raise _damaged(self.folder, f"{_SENTENCES}, line {row + 1}: {err}") from err
            yield words


class SearchIndex:
    """An index that is open for searching, by any number of threads, and for adding, by one.

    folder (Path): of the index.
    embedder (Embedder): makes its vectors.
    meta (IndexMeta): of the index, or of the one to be written.
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
        encoder = SentenceEncoder(embedder, meta.layer)
        empty = np.zeros((0, embedder.bilm.config.width), dtype="<f4")
        text, offsets = np.zeros(0, "u1"), np.zeros(1, "<i8")
        self._content = _Content(folder, meta, encoder, text, offsets, empty)

    @property
    def meta(self) -> IndexMeta:
        """How the index was made, and its content when it was last read or written."""
        return self._content.meta

    @property
    def encoder(self) -> SentenceEncoder:
        """Encodes its sentences."""
        return self._content.encoder

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
        """Make an index, or open an existing one.

        folder (Path): for the index; new, empty, or that of an index of the same kind.
        embedder (Embedder): makes its vectors.
        layer (int): of the biLM; 0 is the word layer, -1 the top one.
        weighting (str): one of `WEIGHTINGS`.
        backend (str): one of `BACKENDS`.
        lang (str): noted, for queries.
        weights (str): folder of the biLM, noted; "" for the bundled one.
        tokenizer (Optional[Dict[str, Any]]): block of a tokenizer, noted; None for spaCy's rules.
        RETURNS (SearchIndex): the index, which is written by the first `add`.
        RAISES (ValueError): EL065 if the folder has an index of another kind, EL140 if it is
            damaged, EL141 if the folder has other files, EL012 for a layer, weighting, backend or
            language that is not possible, EL038 if there is no faiss.
        """
        n_layers = embedder.bilm.config.n_layers
        require_layer(layer, n_layers)
        require_known("weighting", weighting, WEIGHTINGS)
        require_known("backend", backend, BACKENDS)
        require_backend(backend)
        if not _LANG.fullmatch(lang):
            expected = "letters, digits, - and _, such as en"
            raise ValueError(Errors.EL012.format(key="lang", value=lang, expected=expected))
        # A name stays one: where its package lies may change.
        path = weights if not weights or find_name(weights) else str(Path(weights).resolve())
        block = TOKENIZER if tokenizer is None else tokenizer
        identity = embedder.hash_weights().hex()
        meta = IndexMeta(layer % n_layers, weighting, backend, lang, block, path, identity)
        if (find_folder(folder) / _META).exists():
            index = cls.open(folder, embedder)
            _require_same(folder, index.meta, meta)
            return index
        require_no_others(folder, _FILES)
        return cls(folder, embedder, meta)

    @classmethod
    def open(cls, folder: Path, embedder: Embedder) -> "SearchIndex":
        """folder (Path): of an index. embedder (Embedder): the one that it was made with.
        RETURNS (SearchIndex): open. RAISES (ValueError): EL043 without an index, EL065
        for another embedder, EL140 if it is damaged."""
        index = cls(folder, embedder, _read_meta(folder))
        index._content = _load(folder, embedder)
        return index

    def has(self, source: str, origin: str) -> bool:
        """source (str): its name. origin (str): digest of its file. RETURNS (bool): Whether it is
        in the index, unchanged."""
        return any((p.source, p.origin) == (source, origin) for p in self.meta.parts)

    def add(
        self, source: str, sentences: Iterable[List[str]], *, origin: Optional[str] = None
    ) -> int:
        """Add a source, or replace it.

        source (str): its name.
        sentences (Iterable[List[str]]): words of each; empty ones are left out.
        origin (Optional[str]): digest of its file, see `has`.
        RETURNS (int): sentences added.
        RAISES (ValueError): EL094 if there is no sentence, EL013 for one that is a string, EL143 if
            another process writes to the index, EL140 if the index is damaged.
        RAISES (OSError): if it cannot be written; it is unchanged then.
        """
        known = list(sentences)
        require_words(known)
        if not any(known):
            raise ValueError(Errors.EL094.format(path=source))
        return self.add_all([Source(source, known, origin)])[0]

    def add_all(
        self,
        sources: Iterable[Source],
        *,
        remove: Iterable[str] = (),
        on_encoded: Callable[[int], Any] = lambda n: None,
    ) -> List[int]:
        """As `add`, several sources: the folder is written once, so this takes much less time.

        sources (Iterable[Source]): what to add; of two of one name, the second.
        remove (Iterable[str]): names of sources to remove.
        on_encoded (Callable[[int], Any]): is called with numbers of sentences as they are encoded.
        RETURNS (List[int]): for each the sentences added; a source without sentences is left out.
        RAISES: as `add`; none is added then.
        """
        added = list(sources)
        last = {source.name: source for source in added}
        gone = {*last, *remove}
        require_no_others(self.folder, _FILES)
        with atomic_folder(self.folder) as temporary:
            old = self._content
            if (self.folder / _META).exists():
                # Another process may have written to it since it was opened.
                old = _load(self.folder, self.encoder.embedder)
                _require_same(self.folder, old.meta, self.meta)
            kept = [
                (Source(part.source, old.read(start, end), part.origin), old.vectors[start:end])
                for part, start, end in old.meta.list_rows()
                if part.source not in gone
            ]
            written = [*kept, *((source, None) for source in last.values())]
            counts = _write(temporary, old, written, on_encoded)
        self._content = _load(self.folder, self.encoder.embedder)
        return [counts[source.name] if last[source.name] is source else 0 for source in added]

    def remove(self, source: str) -> None:
        """source (str): name of a source to remove, if it exists. RAISES: as `add`."""
        if any(part.source == source for part in self.meta.parts):
            self.add_all([], remove=[source])

    def search(self, words: List[str], n: int = 10) -> List[Hit]:
        """Rank the sentences by their cosine with a query.

        words (List[str]): of the query.
        n (int): how many to find.
        RETURNS (List[Hit]): the best first.
        RAISES (ValueError): for a query without words, EL012 for n < 1, EL038 without faiss, EL140
            if the index is damaged.
        """
        require_least("n", n, 1)
        if not words:
            raise ValueError("The query has no words. Give some text.")
        content = self._content
        meta, encoder = content.meta, content.encoder
        query = encoder.encode([words])[0]
        hits = []
        for row, score in search_vectors(content.vectors, query, n, backend=meta.backend):
            part, start, _ = next(rows for rows in meta.list_rows() if row < rows[2])
            (sentence,) = content.read(row, row + 1)
            nearest = encoder.find_token(sentence, query)
            hits.append(Hit(score, part.source, row - start + 1, sentence, nearest))
        return hits


def open_index(
    folder: Path, weights: str = "", *, embedder: Optional[Embedder] = None
) -> SearchIndex:
    """Open an index, and load its biLM: by default from where it was when the index was made. A
    given embedder is used instead, if it has the same weights."""
    meta = _read_meta(folder)
    if embedder is not None and embedder.hash_weights().hex() == meta.biLM:
        return SearchIndex.open(folder, embedder)
    if not weights and meta.weights and not CheckpointFiles.of(meta.weights).folder.is_dir():
        raise ValueError(
            f"The index in '{folder}' was made with the weights in '{meta.weights}', which is not "
            "a folder here. Give the folder with `--weights`."
        )
    return SearchIndex.open(folder, load_embedder(weights or meta.weights or None))


def is_index_folder(folder: Path) -> bool:
    """Whether a folder is that of an index."""
    return all((folder / name).is_file() for name in (_META, _VECTORS))


# ---- writing


def _write(
    folder: Path,
    old: _Content,
    sources: Iterable[Tuple[Source, Optional[NDArray]]],
    on_encoded: Callable[[int], Any],
) -> Dict[str, int]:
    """Write an index: the sources, with the vectors of those that it had before. Returns the
    number of sentences of each."""
    counts: Dict[str, int] = {}
    offsets = array("q", [0])
    parts: List[Part] = []
    known: List[Tuple[Optional[NDArray], Optional[Callable[[], NDArray]]]] = []
    with (folder / _SENTENCES).open("wb") as file:
        for source, vectors in sources:
            n_before = len(offsets)
            for i, words in enumerate(source.sentences):
                require_words([words], i)
                if words:
                    line = json.dumps(list(words), ensure_ascii=False) + "\n"
                    file.write(line.encode("utf-8", "surrogatepass"))
                    offsets.append(file.tell())
            counts[source.name] = len(offsets) - n_before
            if counts[source.name]:
                parts.append(Part(source.name, source.origin, counts[source.name]))
                known.append((vectors, source.averages))
    np.array(offsets, "<i8").tofile(folder / _OFFSETS)
    text = _map(folder / _SENTENCES, "u1", (offsets[-1],))
    meta = replace(old.meta, parts=tuple(parts))
    new = _Content(folder, meta, old.encoder, text, np.array(offsets), old.vectors)
    encoder = old.encoder
    # Fitted to few sentences, it is fitted again when their number has doubled.
    needed = count_needed(meta.weighting, old.vectors.shape[1])
    wanted = min(_N_FITTED, max(needed, 2 * meta.n_fitted))
    is_fitted = needed > 0 and meta.n_fitted < _N_FITTED and wanted <= meta.n_sentences
    if is_fitted:
        encoder = _fit(new, [averages for _, averages in known])
        meta = replace(meta, n_fitted=min(_N_FITTED, meta.n_sentences))
    with (folder / _VECTORS).open("wb") as file:
        for (_, start, end), (vectors, averages) in zip(meta.list_rows(), known):
            if vectors is not None and not is_fitted:
                vectors.tofile(file)
                continue
            for X in _average(encoder, new, start, end, averages):
                encoder.finish(X).astype("<f4").tofile(file)
                on_encoded(len(X))
    if encoder.transform is not None:
        centre, matrix = encoder.transform
        np.concatenate([centre[None], matrix]).astype("<f8").tofile(folder / _TRANSFORM)
    if encoder.counts is not None:
        content = json.dumps(encoder.counts, ensure_ascii=False)
        (folder / _COUNTS).write_bytes(content.encode("utf-8", "surrogatepass"))
    (folder / _META).write_text(json.dumps({"version": _VERSION, **asdict(meta)}), "utf-8")
    return counts


def _fit(new: _Content, averages: List[Optional[Callable[[], NDArray]]]) -> SentenceEncoder:
    """Fit to the first sentences; counts of words are those of all."""
    encoder = replace(new.encoder, counts=None, transform=None)
    if new.meta.weighting == "sif":
        sentences = new.read(0, new.meta.n_sentences)
        counts = Counter(word.lower() for words in sentences for word in words)
        encoder = replace(encoder, counts=dict(counts))
    rows: List[NDArray] = []
    n_left = _N_FITTED
    for (_, start, end), known in zip(new.meta.list_rows(), averages):
        rows += _average(encoder, new, start, min(end, start + n_left), known)
        n_left -= min(end - start, n_left)
    return replace(encoder, transform=fit_transform(np.concatenate(rows), new.meta.weighting))


def _average(
    encoder: SentenceEncoder,
    content: _Content,
    start: int,
    end: int,
    known: Optional[Callable[[], NDArray]],
) -> Iterator[NDArray]:
    """Averages of sentences, some at a time, shape (n, width)."""
    # Known averages have equal weights.
    if known is not None and encoder.counts is None and end > start:
        yield known()[: end - start]
        return
    for sentences in minibatch(content.read(start, end), _N_SENTENCES):
        yield encoder.average(sentences)


# ---- reading: an index may come from anywhere, so its content is checked


def _read_meta(folder: Path) -> IndexMeta:
    path = find_folder(folder) / _META
    if not path.exists():
        raise ValueError(Errors.EL043.format(path=folder))
    try:
        content = read_json_object(path)
    except ValueError as err:
        raise _damaged(folder, err) from err
    if content.pop("version", None) != _VERSION:
        raise _damaged(folder, "it is of another version of spacy-elmo")
    try:
        parts = tuple(Part(**part) for part in content.pop("parts"))
        meta = IndexMeta(**content, parts=parts)
    except (TypeError, KeyError) as err:
        raise _damaged(folder, f"{_META}: {err}") from err
    strings = (meta.lang, meta.weights, meta.biLM, *(part.source for part in meta.parts))
    counts = (meta.layer, meta.n_fitted, *(part.n_sentences for part in meta.parts))
    is_valid = (
        all(isinstance(value, str) for value in strings)
        and all(type(count) is int and 0 <= count < 1 << 48 for count in counts)
        and meta.weighting in WEIGHTINGS
        and meta.backend in BACKENDS
        and _LANG.fullmatch(meta.lang)
        and is_tokenizer_block(meta.tokenizer)
    )
    if not is_valid:
        raise _damaged(folder, f"{_META} has other values than an index")
    return meta


def _load(folder: Path, embedder: Embedder) -> _Content:
    meta = _read_meta(folder)
    path = find_folder(folder)
    _require_same(folder, meta, replace(meta, biLM=embedder.hash_weights().hex()))
    require_layer(meta.layer, embedder.bilm.config.n_layers)
    n, width = meta.n_sentences, embedder.bilm.config.width
    try:
        vectors = _map(path / _VECTORS, "<f4", (n, width))
        offsets = _map(path / _OFFSETS, "<i8", (n + 1,))
        text = _map(path / _SENTENCES, "u1", (int(offsets[-1]),))
        if offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise ValueError(f"{_OFFSETS} is not in order")
        transform = counts = None
        if (path / _TRANSFORM).exists():
            X = np.array(_map(path / _TRANSFORM, "<f8", (1 + width, width)))
            if not np.isfinite(X).all():
                raise ValueError(f"{_TRANSFORM} has numbers that are not finite")
            transform = Transform(X[0], X[1:])
        if (path / _COUNTS).exists():
            counts = read_json_object(path / _COUNTS)
            if not all(type(count) is int and count > 0 for count in counts.values()):
                raise ValueError(f"{_COUNTS} has other values than counts of words")
    except (ValueError, FileNotFoundError) as err:
        raise _damaged(folder, err) from err
    encoder = SentenceEncoder(embedder, meta.layer, counts, transform)
    return _Content(folder, meta, encoder, text, offsets, vectors)


def _map(path: Path, dtype: str, shape: Tuple[int, ...]) -> NDArray:
    """Map a file, if it has the size of this shape."""
    size, expected = path.stat().st_size, int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size != expected:
        raise ValueError(f"{path.name} has {size} bytes, expected {expected}")
    return np.memmap(path, dtype, "r", shape=shape) if size else np.zeros(shape, dtype)


def _require_same(folder: Path, stored: IndexMeta, wanted: IndexMeta) -> None:
    """Check that the vectors of two indexes can be compared."""
    for key in ("biLM", "layer", "weighting", "backend", "lang", "tokenizer"):
        before, now = getattr(stored, key), getattr(wanted, key)
        if before != now:
            raise ValueError(Errors.EL065.format(path=folder, key=key, before=before, now=now))


def _damaged(folder: Path, problem: object) -> ValueError:
    return ValueError(Errors.EL140.format(path=folder, problem=problem))
