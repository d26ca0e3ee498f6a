"""`SearchIndex`: sentences and their vectors in a folder, to which texts can be added.

`index.json` says what is valid; it is written last, beside its place and then there. Each
source is a part: PART.npy (float32, shape (n_sentences, width)) and PART.jsonl (the words
of each sentence). `words.json` and `transform.npz` are what SIF and whitening need; both
are of the text that came first, so that what is added later is comparable.
"""

from collections import Counter
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple

import numpy as np
import srsly
from spacy.util import minibatch

from ..bilm.embedder import Embedder
from ..errors import Errors
from ..util.atomic import write_file, write_json
from ..util.checks import require_known, require_layer
from .backends import BACKENDS, search_arrays, search_faiss, write_faiss
from .encoder import WEIGHTINGS, SentenceEncoder, Transform, fit_transform

_META = "index.json"
_N_SENTENCES = 1024
# Transforms are fitted on so many sentences of the first text.
_N_FITTED = 20_000


class Hit(NamedTuple):
    """score (float): cosine. source (str): of the sentence. number (int): of the sentence
    in it, from 1. words (List[str]): its words. nearest (int): place of the word that is
    most like the query."""

    score: float
    source: str
    number: int
    words: List[str]
    nearest: int


class SearchIndex:
    """An index that is open for adding and searching.

    folder (Path): where it lies.
    encoder (SentenceEncoder): makes its vectors.
    meta (Dict[str, Any]): what index.json says.
    """

    def __init__(self, folder: Path, encoder: SentenceEncoder, meta: Dict[str, Any]) -> None:
        self.folder = folder
        self.encoder = encoder
        self.meta = meta

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
    ) -> "SearchIndex":
        """Open an index, or make an empty one.

        folder (Path): where.
        embedder (Embedder): makes the vectors.
        layer (int): of the biLM.
        weighting (str): one of `WEIGHTINGS`.
        backend (str): one of `BACKENDS`.
        lang (str), weights (str): noted, for who searches.
        RAISES (ValueError): EL044 if the folder has an index of another kind, EL017 for a
            layer, weighting or backend that does not exist.
        """
        n_layers = embedder.bilm.config.n_layers
        require_layer(layer, n_layers)
        require_known("weighting", weighting, WEIGHTINGS)
        require_known("backend", backend, BACKENDS)
        meta = {
            "layer": layer % n_layers,
            "weighting": weighting,
            "backend": backend,
            "lang": lang,
            "weights": weights,
            "biLM": embedder.hash_weights().hex(),
        }
        if not (folder / _META).exists():
            folder.mkdir(parents=True, exist_ok=True)
            return cls(folder, SentenceEncoder(embedder, layer), {**meta, "parts": []})
        index = cls.open(folder, embedder)
        for key, value in meta.items():
            if index.meta[key] != value:
                error = Errors.EL044
                before = index.meta[key]
                raise ValueError(error.format(path=folder, key=key, before=before, now=value))
        return index

    @classmethod
    def open(cls, folder: Path, embedder: Embedder) -> "SearchIndex":
        """folder (Path): of an index. embedder (Embedder): the one that it was made with.
        RETURNS (SearchIndex): open. RAISES (ValueError): EL043 if there is none, EL044 for
        another embedder."""
        meta = read_meta(folder)
        key = embedder.hash_weights().hex()
        if key != meta["biLM"]:
            error = Errors.EL044
            raise ValueError(error.format(path=folder, key="biLM", before=meta["biLM"], now=key))
        encoder = SentenceEncoder(embedder, meta["layer"])
        if meta["weighting"] == "sif":
            encoder.counts = srsly.read_json(folder / "words.json")
        if meta["weighting"] != "mean":
            with np.load(folder / "transform.npz", allow_pickle=False) as arrays:
                encoder.transform = Transform(arrays["centre"], arrays["matrix"])
        return cls(folder, encoder, meta)

    def add(self, source: str, sentences: Iterable[List[str]]) -> int:
        """Add a source, or what it has become: sentences of it that were there go.

        source (str): what to call it.
        sentences (Iterable[List[str]]): words of each; empty ones are left out.
        RETURNS (int): sentences added; 0 if the source is there unchanged.
        RAISES (ValueError): EL094 if there is no sentence, EL045 without faiss.
        """
        found = [list(words) for words in sentences if words]
        if not found:
            raise ValueError(Errors.EL094.format(path=source))
        content = "\n".join(srsly.json_dumps(words) for words in found).encode("utf-8")
        digest = blake2b(content, digest_size=16).hexdigest()
        known = {part["source"]: part["name"] for part in self.meta["parts"]}
        if known.get(source) == digest:
            return 0
        self.prepare(found)
        vectors = [self.encoder.encode(part) for part in minibatch(found, _N_SENTENCES)]
        np.save(self.folder / f"{digest}.npy", np.concatenate(vectors), allow_pickle=False)
        write_file(self.folder / f"{digest}.jsonl", content)
        part = {"source": source, "name": digest, "n_sentences": len(found)}
        self._write([*(p for p in self.meta["parts"] if p["source"] != source), part])
        return len(found)

    def remove(self, source: str) -> None:
        """source (str): whose sentences go, if it is there."""
        parts = [part for part in self.meta["parts"] if part["source"] != source]
        if len(parts) < len(self.meta["parts"]):
            self._write(parts)

    def _write(self, parts: List[Dict[str, Any]]) -> None:
        """Make other parts valid, and then remove what nobody reads any more."""
        before, self.meta = self.meta, {**self.meta, "parts": parts}
        try:
            if self.meta["backend"] == "faiss" and parts:
                write_faiss(self.folder / _name_faiss(self.meta), _load(self.folder, self.meta))
            write_json(self.folder / _META, self.meta)
        except BaseException:
            self.meta = before
            raise
        names = {part["name"] for part in parts}
        for part in before["parts"]:
            if part["name"] not in names:
                (self.folder / f"{part['name']}.npy").unlink(missing_ok=True)
                (self.folder / f"{part['name']}.jsonl").unlink(missing_ok=True)
        if _name_faiss(before) != _name_faiss(self.meta):
            (self.folder / _name_faiss(before)).unlink(missing_ok=True)

    def prepare(self, sentences: Iterable[List[str]]) -> None:
        """Count words, and fit what makes averages comparable, where that is needed and
        was not done: on the first text alone, so that what is added later compares.

        sentences (Iterable[List[str]]): words of each, read once.
        RAISES (ValueError): EL094 if there is no word.
        """
        encoder, weighting = self.encoder, self.meta["weighting"]
        if weighting == "mean" or encoder.transform is not None:
            return
        rest = iter(sentences)
        first = [list(words) for words in islice(rest, _N_FITTED)]
        if not any(first):
            raise ValueError(Errors.EL094.format(path="the corpus"))
        if weighting == "sif":
            encoder.counts = dict(Counter(w.lower() for words in chain(first, rest) for w in words))
            write_json(self.folder / "words.json", encoder.counts)
        parts = [encoder.average(part) for part in minibatch(first, _N_SENTENCES)]
        encoder.transform = fit_transform(np.concatenate(parts), weighting)
        np.savez(self.folder / "transform.npz", **encoder.transform._asdict())

    def search(self, words: List[str], n: int = 10) -> List[Hit]:
        """Rank the sentences by their cosine with a query.

        words (List[str]): of the query.
        n (int): how many.
        RETURNS (List[Hit]): the best first.
        RAISES (ValueError): EL046 for a query without words, EL045 without faiss.
        """
        if not words:
            raise ValueError(Errors.EL046)
        query = self.encoder.encode([words])[0]
        if not self.meta["parts"]:
            found = []
        elif self.meta["backend"] == "faiss":
            found = search_faiss(self.folder / _name_faiss(self.meta), query, n)
        else:
            found = search_arrays(_load(self.folder, self.meta), query, n)
        return [self._make_hit(row, score, query) for row, score in found]

    def _make_hit(self, row: int, score: float, query: Any) -> Hit:
        for part in self.meta["parts"]:
            if row < part["n_sentences"]:
                break
            row -= part["n_sentences"]
        with (self.folder / f"{part['name']}.jsonl").open("rb") as lines:
            # The lines before it are passed over, not parsed.
            words = srsly.json_loads(next(islice(lines, row, None)))
        return Hit(score, part["source"], row + 1, words, self.encoder.find_token(words, query))


def read_meta(folder: Path) -> Dict[str, Any]:
    """folder (Path): of an index. RETURNS (Dict[str, Any]): what index.json says. RAISES
    (ValueError): EL043 if there is none."""
    if not (folder / _META).is_file():
        raise ValueError(Errors.EL043.format(path=folder))
    return srsly.read_json(folder / _META)


def _name_faiss(meta: Dict[str, Any]) -> str:
    """Of the file with the vectors of exactly these parts, in this order."""
    names = " ".join(part["name"] for part in meta["parts"])
    return f"{blake2b(names.encode(), digest_size=16).hexdigest()}.faiss"


def _load(folder: Path, meta: Dict[str, Any]) -> List[Any]:
    paths = [folder / f"{part['name']}.npy" for part in meta["parts"]]
    return [np.load(path, mmap_mode="r", allow_pickle=False) for path in paths]
