"""New versions of an index: their files are written before index.json names them."""

from collections import Counter
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray
from spacy.util import minibatch

from ..files import digest
from ..inference.embedder import require_words
from .index_contents import read_sentences, to_jsonl, write_encoder
from .index_files import to_npy, write_content
from .index_meta import IndexMeta, Part
from .sentence_encoder import Averages, SentenceEncoder, count_needed, fit_transform

_N_SENTENCES = 1024
# Transforms are fitted on so many sentences.
N_FITTED = 20_000


class Version(NamedTuple):
    """meta (IndexMeta): content of index.json. encoder (SentenceEncoder): encodes the sentences."""

    meta: IndexMeta
    encoder: SentenceEncoder


class Source(NamedTuple):
    """What is added to an index, see `SearchIndex.add`."""

    name: str
    sentences: Sequence[List[str]]
    origin: Optional[str] = None
    known: Optional[Averages] = None


def update_source(folder: Path, version: Version, source: Source) -> Tuple[Version, int]:
    """Write a source, unless it is there unchanged.

    folder (Path): of the index, locked.
    version (Version): before.
    source (Source): what to add: at least one sentence, at least one word in each.
    RETURNS (Tuple[Version, int]): with the source, and the sentences added.
    """
    content = to_jsonl(source.sentences)
    part = version.meta.find(source.name)
    if part is None or part.words != digest(content):
        return _put_source(folder, version, source, content), len(source.sentences)
    if part.origin != source.origin:
        others = drop_source(version, source.name).meta
        parts = (*others.parts, replace(part, origin=source.origin))
        version = version._replace(meta=replace(others, parts=parts))
    return version, 0


def _put_source(folder: Path, version: Version, source: Source, content: bytes) -> Version:
    """Write a source, which takes the place of one of the same name. The encoder is fitted
    first, if there is enough text by now.

    content (bytes): the sentences as they are stored. RETURNS (Version): with the source.
    """
    sentences = source.sentences
    version = drop_source(version, source.name)
    version = version._replace(encoder=replace(version.encoder, known=source.known or {}))
    if version.meta.n_sentences + len(sentences) >= _count_wanted(version):
        version = fit(folder, version, sentences)
    meta, encoder = version
    words = write_content(folder, "words", [content])
    vectors = next((part.vectors for part in meta.parts if part.words == words), None)
    if vectors is None:
        vectors = write_content(folder, "vectors", to_npy(_encode(encoder, sentences)))
    part = Part(source.name, source.origin, len(sentences), words, vectors)
    return Version(replace(meta, parts=(*meta.parts, part)), encoder)


def drop_source(version: Version, name: str) -> Version:
    """RETURNS (Version): without a source."""
    parts = tuple(part for part in version.meta.parts if part.source != name)
    return version._replace(meta=replace(version.meta, parts=parts))


def fit(folder: Path, version: Version, sentences: Iterable[List[str]]) -> Version:
    """Fit the encoder to what the index holds and to what will be added, if that is enough,
    or twice as much as it was fitted on; and encode the sentences of the index again.

    folder (Path): of the index, locked.
    version (Version): before.
    sentences (Iterable[List[str]]): to be added; not read if nothing is to be fitted.
    RETURNS (Version): the same if nothing was fitted.
    RAISES (ValueError): EL013 and EL119 for what is no list of words.
    """
    meta, encoder = version
    n_wanted = _count_wanted(version)
    if n_wanted > N_FITTED:
        return version
    rest = chain(_read_all(folder, meta), _read_words(sentences))
    first = list(islice(rest, N_FITTED))
    if len(first) < n_wanted:
        return version
    counts = None
    if meta.weighting == "sif":
        counts = dict(Counter(w.lower() for words in chain(first, rest) for w in words))
    encoder = replace(encoder, counts=counts, transform=None)
    averages = [encoder.average(part) for part in minibatch(first, _N_SENTENCES)]
    transform = fit_transform(np.concatenate(averages), meta.weighting)
    encoder = replace(encoder, transform=transform)
    return _encode_again(folder, Version(replace(meta, n_fitted=len(first)), encoder))


def _read_words(sentences: Iterable[List[str]]) -> Iterator[List[str]]:
    for i, words in enumerate(sentences):
        require_words([words], i)
        if words:
            yield list(words)


def _count_wanted(version: Version) -> float:
    """RETURNS (float): Sentences from which on the encoder is fitted (again)."""
    meta, encoder = version
    needed = count_needed(meta.weighting, encoder.embedder.bilm.config.width)
    if needed == 0 or meta.n_fitted >= N_FITTED:
        return float("inf")
    return min(N_FITTED, max(needed, 2 * meta.n_fitted))


def _read_all(folder: Path, meta: IndexMeta) -> Iterator[List[str]]:
    return chain.from_iterable(read_sentences(folder, part) for part in meta.parts)


def _encode_again(folder: Path, version: Version) -> Version:
    meta, encoder = version
    transform, counts = write_encoder(folder, encoder)
    vectors = {}
    for part in meta.parts:
        if part.words not in vectors:
            X = _encode(encoder, list(read_sentences(folder, part)))
            vectors[part.words] = write_content(folder, "vectors", to_npy(X))
    parts = tuple(replace(part, vectors=vectors[part.words]) for part in meta.parts)
    return Version(replace(meta, transform=transform, counts=counts, parts=parts), encoder)


def _encode(encoder: SentenceEncoder, sentences: Sequence[List[str]]) -> NDArray:
    """RETURNS (NDArray): float32, shape (n_sentences, width)."""
    X = np.empty((len(sentences), encoder.embedder.bilm.config.width), dtype="<f4")
    for start in range(0, len(sentences), _N_SENTENCES):
        X[start : start + _N_SENTENCES] = encoder.encode(sentences[start : start + _N_SENTENCES])
    return X
