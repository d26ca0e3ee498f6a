"""Open an index with the biLM that it was made with."""

from pathlib import Path
from typing import Optional

from ..checkpoints.formats import CheckpointFiles
from ..checkpoints.loaders import load_embedder
from ..errors import Errors
from ..inference.embedder import Embedder
from .index_meta import read_meta
from .search_index import SearchIndex


def open_index(
    folder: Path, weights: str = "", *, embedder: Optional[Embedder] = None
) -> SearchIndex:
    """Open an index, and load its biLM.

    folder (Path): of the index.
    weights (str): folder or name of the biLM; "" for where it was when the index was made.
    embedder (Optional[Embedder]): taken instead of loading one, if it has the same weights.
    RETURNS (SearchIndex): open.
    RAISES (ValueError): EL144 if the biLM is not where it was, others as `SearchIndex.open`
        and `load_embedder`.
    """
    meta = read_meta(folder)
    if embedder is not None and embedder.hash_weights().hex() == meta.biLM:
        return SearchIndex.open(folder, embedder)
    if not weights and meta.weights and not CheckpointFiles.of(meta.weights).folder.is_dir():
        raise ValueError(Errors.EL144.format(path=folder, weights=meta.weights))
    return SearchIndex.open(folder, load_embedder(weights or meta.weights or None))
