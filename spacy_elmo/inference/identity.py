"""`identify`: which weights a biLM has, so that what depends on them can be told from others."""

from typing import Tuple
from weakref import WeakKeyDictionary

from ..bilm.build_lock import BUILD_LOCK
from ..bilm.model import BiLM
from ..bilm.snapshot import Snapshot
from .embedder import hash_weights

_known: "WeakKeyDictionary[BiLM, Tuple[Snapshot, str]]" = WeakKeyDictionary()


def identify(bilm: BiLM) -> str:
    """Hash a biLM's weights, once for as long as they stay.

    bilm (BiLM): with its weights.
    RETURNS (str): 32 hexadecimal digits, the same in whatever precision its products are.
    """
    with BUILD_LOCK:
        known = _known.get(bilm)
        if known is None or not known[0].is_current(bilm):
            known = Snapshot(bilm), hash_weights(bilm, "fp32").hex()
            _known[bilm] = known
        return known[1]
