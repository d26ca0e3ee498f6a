"""`SenseModel`: an inventory with centroids chooses the sense of a word in a text."""

from dataclasses import dataclass
from typing import List, Optional

import srsly
from numpy.typing import NDArray

from ..errors import Errors
from ..files import unpack
from .centroids import AVERAGE, Centroids, choose_layer, no_sense_of
from .inventory import PARTS_OF_SPEECH, Inventory

# As they are written: inventory, centroids, weights.
_PARTS = [bytes, bytes, str]


@dataclass
class SenseModel:
    """inventory (Inventory): which senses are possible. centroids (Centroids): their mean
    vectors. weights (str): of the biLM that made these, as `identify` says; "" if that is not
    known, as in files of version 0.1.0."""

    inventory: Inventory
    centroids: Centroids
    weights: str = ""

    def choose(self, form: str, layers: NDArray, *, lemma: str = "", pos: str = "") -> str:
        """Choose the sense of a word.

        form (str): as it stands in the text.
        layers (NDArray): of the biLM, shape (n_layers, width).
        lemma (str): base form; "" if it is not known.
        pos (str): n, v, a or r; "-" for a word of another kind; "" if it is not known.
        RETURNS (str): a key of the inventory; "" if the word has no sense here.
        """
        keys = self._get_keys(form, lemma, pos)
        if not keys:
            return ""
        none = no_sense_of(form)
        if pos and not any(key in self.centroids.rows for key in keys):
            return keys[0]
        vector = choose_layer(layers, self.centroids.layer)
        chosen = self.centroids.choose(vector, [*keys, none])
        return "" if chosen == none else chosen

    def require_layers(self, n_layers: int, width: int) -> None:
        """n_layers (int), width (int): of the biLM that is read. RAISES (ValueError): EL117 if
        the senses were trained on another one."""
        layer, expected = self.centroids.layer, self.centroids.vectors.shape[1]
        if width != expected or (layer != AVERAGE and int(layer) >= n_layers):
            raise ValueError(
                Errors.EL117.format(layer=layer, expected=expected, n_layers=n_layers, width=width)
            )

    def _get_keys(self, form: str, lemma: str, pos: str) -> List[str]:
        inventory = self.inventory
        kinds = [pos] if pos else PARTS_OF_SPEECH
        senses = [
            sense
            for kind in kinds
            for sense in (lemma and inventory.find(lemma, kind)) or inventory.find_form(form, kind)
        ]
        # Senses of several parts of speech, the most frequent one first.
        if not pos:
            senses.sort(key=lambda sense: -sense[1])
        return [key for key, _ in senses]

    def get_gloss(self, key: str) -> Optional[str]:
        """key (str): a sense. RETURNS (Optional[str]): its definition, if it is known."""
        return self.inventory.glosses.get(key)

    def to_bytes(self) -> bytes:
        """RETURNS (bytes): all of it."""
        parts = [self.inventory.to_bytes(), self.centroids.to_bytes(), self.weights]
        return srsly.msgpack_dumps(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> "SenseModel":
        """data (bytes): from `to_bytes`. RETURNS (SenseModel): the same. RAISES (ValueError):
        EL116 if the bytes hold anything else."""
        parts = unpack(data, "senses", most_items=len(_PARTS))
        types = [type(part) for part in parts] if isinstance(parts, list) else []
        # Those of before did not know their weights.
        if types not in (_PARTS, _PARTS[:-1]):
            error = "they are no inventory with its centroids"
            raise ValueError(Errors.EL116.format(source="senses", error=error))
        return cls(Inventory.from_bytes(parts[0]), Centroids.from_bytes(parts[1]), *parts[2:])
