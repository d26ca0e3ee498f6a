"""Checks before an index is created or opened."""

from pathlib import Path
from typing import Any, Dict

from ..checkpoints.formats import find_name
from ..errors import Errors
from ..inference.embedder import Embedder
from ..utils import require_known, require_layer
from .backends import BACKENDS, require_backend
from .index_files import find_foreign
from .index_meta import IndexMeta, require_lang
from .sentence_encoder import WEIGHTINGS


def make_meta(
    embedder: Embedder,
    layer: int,
    weighting: str,
    backend: str,
    lang: str,
    tokenizer: Dict[str, Any],
    weights: str,
) -> IndexMeta:
    """Check the settings of a new index.

    embedder (Embedder), layer (int), weighting (str), backend (str), lang (str), tokenizer
        (Dict[str, Any]), weights (str): see `SearchIndex.create`.
    RETURNS (IndexMeta): Of an empty index.
    RAISES (ValueError): EL017 for a layer, weighting, backend or language that is not
        possible, EL045 if there is no faiss.
    """
    n_layers = embedder.bilm.config.n_layers
    require_layer(layer, n_layers)
    require_known("weighting", weighting, WEIGHTINGS)
    require_known("backend", backend, BACKENDS)
    require_backend(backend)
    require_lang(lang)
    # A name stays one: where its package lies may change.
    path = weights if not weights or find_name(weights) else str(Path(weights).resolve())
    weights_hash = embedder.hash_weights().hex()
    return IndexMeta(layer % n_layers, weighting, backend, lang, tokenizer, path, weights_hash)


def require_same(folder: Path, stored: IndexMeta, wanted: IndexMeta) -> None:
    """RAISES (ValueError): EL044 if two indexes differ in what makes their vectors."""
    for key in ("biLM", "layer", "weighting", "backend", "lang", "tokenizer"):
        before, now = getattr(stored, key), getattr(wanted, key)
        if before != now:
            raise ValueError(Errors.EL044.format(path=folder, key=key, before=before, now=now))


def require_empty(folder: Path) -> None:
    """RAISES (ValueError): EL141 if there is anything that no index has."""
    foreign = find_foreign(folder) if folder.is_dir() else [folder.name] if folder.exists() else []
    if foreign:
        raise ValueError(Errors.EL141.format(path=folder, examples=", ".join(foreign[:3])))
