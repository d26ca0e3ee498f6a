"""`SenseModel`: an inventory and mean vectors of senses choose the sense of a word in a text."""

import math
from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Sequence, Tuple, Union

import numpy as np
import srsly
from numpy.typing import NDArray

from ..errors import Errors
from ..files import unpack
from ..utils import normalise
from .inventory import PARTS_OF_SPEECH, Inventory

Layer = Union[int, str]
AVERAGE = "average"
# On disk, too: as exact as the choice needs.
_DTYPE = "float16"
_SOURCE = "centroids of senses"
_MOST_SENSES = 2_000_000
# As they are written: inventory, centroids. Older files have a third part, which is not read.
_PARTS = [bytes, bytes]


def choose_layer(layers: NDArray, layer: Layer) -> NDArray:
    """A layer, or the average, of an array of shape (..., n_layers, width)."""
    return layers.mean(axis=-2) if layer == AVERAGE else layers[..., int(layer), :]


def no_sense_of(form: str) -> str:
    """What stands for a word where it has no sense, as "in" is mostly no inch."""
    return f"{form.lower()}|"


@dataclass
class Centroids:
    """Mean vectors of senses of one layer, float16 of length 1, shape (n_senses, width), and how
    often each was seen. `prior` is the weight of the logarithm of a count against the cosine.
    `rows` gives the row of a sense: a key, or `no_sense_of` a form."""

    layer: Layer
    prior: float
    vectors: NDArray
    counts: List[int]
    rows: Dict[str, int] = field(default_factory=dict)

    def choose(self, vector: NDArray, keys: Sequence[str]) -> str:
        """Choose the sense whose centroid is nearest (Peters et al. 2018, section 5.3) to a
        vector, shape (width,), of those that are possible; the first if none was seen in
        training."""
        seen = [key for key in keys if key in self.rows]
        if not seen:
            return keys[0]
        rows = [self.rows[key] for key in seen]
        cosines = self.vectors[rows].astype("float32") @ normalise(vector)
        counts = np.array([self.counts[row] for row in rows])
        return seen[int(np.argmax(cosines + self.prior * np.log(counts)))]

    def to_bytes(self) -> bytes:
        return srsly.msgpack_dumps(vars(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Centroids":
        content = unpack(data, _SOURCE, most_items=_MOST_SENSES)
        names = {each.name for each in fields(cls)}
        if not isinstance(content, dict) or set(content) != names or not _is_valid(**content):
            error = "they are something else"
            raise ValueError(Errors.EL116.format(source=_SOURCE, error=error))
        return cls(**content)


def _is_valid(layer: Any, prior: Any, vectors: Any, counts: Any, rows: Any) -> bool:
    """Whether each field of `Centroids` is as its docstring says."""
    is_matrix = isinstance(vectors, np.ndarray) and vectors.dtype == _DTYPE and vectors.ndim == 2
    if not is_matrix or not isinstance(counts, list) or not isinstance(rows, dict):
        return False
    norms = np.linalg.norm(vectors.astype("float32"), axis=1)
    return (
        bool(((np.abs(norms - 1) < 0.01) | (norms == 0)).all())
        and (layer == AVERAGE or (type(layer) is int and layer >= 0))
        and (type(prior) in (int, float) and 0 <= prior < math.inf)
        and len(counts) == len(vectors)
        and all(type(count) is int and count >= 1 for count in counts)
        and all(type(key) is str and type(row) is int for key, row in rows.items())
        and sorted(rows.values()) == list(range(len(vectors)))
    )


class Sums:
    """Sums of vectors by sense, from which centroids are made."""

    def __init__(self, n_layers: int, width: int) -> None:
        self.rows: Dict[str, int] = {}
        self.counts: List[int] = []
        self._layers = np.zeros((1024, n_layers, width))

    def add(self, sense: str, layers: NDArray) -> None:
        """Add the layers of a word, shape (n_layers, width)."""
        row = self.rows.setdefault(sense, len(self.rows))
        if row == len(self.counts):
            self.counts.append(0)
            if row == len(self._layers):
                self._layers = np.concatenate([self._layers, np.zeros_like(self._layers)])
        self.counts[row] += 1
        self._layers[row] += layers

    def make(self, layer: Layer, prior: float) -> Centroids:
        """Make centroids of all that was added so far."""
        means = choose_layer(self._layers[: len(self.rows)], layer)
        vectors = normalise(means).astype(_DTYPE)
        return Centroids(layer, prior, vectors, list(self.counts), dict(self.rows))


@dataclass
class SenseModel:
    """The possible senses and their mean vectors."""

    inventory: Inventory
    centroids: Centroids

    def choose(self, form: str, layers: NDArray, *, lemma: str = "", pos: str = "") -> str:
        """Choose the sense of a word from its layers, shape (n_layers, width), and, if they are
        known, its base form and part of speech ("-" for one without senses). RETURNS (str): a key
        of the inventory; "" if the word has no sense here."""
        senses: List[Tuple[str, int]] = []
        for kind in [pos] if pos else PARTS_OF_SPEECH:
            found = self.inventory.find(lemma, kind) if lemma else []
            senses += found or self.inventory.find_form(form, kind)
        if not pos:
            # Of several parts of speech, the most frequent sense first.
            senses.sort(key=lambda sense: -sense[1])
        keys = [key for key, _ in senses]
        if not keys:
            return ""
        if pos and not any(key in self.centroids.rows for key in keys):
            return keys[0]
        none = no_sense_of(form)
        chosen = self.centroids.choose(choose_layer(layers, self.centroids.layer), [*keys, none])
        return "" if chosen == none else chosen

    def require_layers(self, n_layers: int, width: int) -> None:
        """Check that the biLM that is read has the layer that the senses were trained on."""
        layer, expected = self.centroids.layer, self.centroids.vectors.shape[1]
        if width != expected or (layer != AVERAGE and int(layer) >= n_layers):
            raise ValueError(
                Errors.EL117.format(layer=layer, expected=expected, n_layers=n_layers, width=width)
            )

    def to_bytes(self) -> bytes:
        return srsly.msgpack_dumps([self.inventory.to_bytes(), self.centroids.to_bytes()])

    @classmethod
    def from_bytes(cls, data: bytes) -> "SenseModel":
        parts = unpack(data, "senses", most_items=3)
        types = [type(part) for part in parts] if isinstance(parts, list) else []
        if types not in (_PARTS, [*_PARTS, str]):
            error = "they are no inventory with its centroids"
            raise ValueError(Errors.EL116.format(source="senses", error=error))
        return cls(Inventory.from_bytes(parts[0]), Centroids.from_bytes(parts[1]))
