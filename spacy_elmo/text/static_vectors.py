"""Read a table of static vectors, for biLMs that start from one."""

from pathlib import Path
from typing import List, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.vectors import Mode, Vectors
from spacy.vocab import Vocab
from thinc.util import to_numpy

from ..errors import Errors


class StaticVectors(NamedTuple):
    """Words and their vectors.

    words (List[str]): distinct words.
    vectors (NDArray): shape (n_words, width), float32.
    """

    words: List[str]
    vectors: NDArray


def read_static_vectors(path: Path) -> StaticVectors:
    """Read the vectors of a pipeline, as `spacy init vectors` writes it.

    path (Path): a pipeline's folder, or the vocab folder in it.
    RETURNS (StaticVectors): the table.
    RAISES (ValueError): EL087 if there are no vectors.
    """
    # Without the pipeline: its components are not needed, nor what their config names.
    folder = path / "vocab" if (path / "config.cfg").exists() else path
    try:
        vocab = Vocab().from_disk(folder)
        words = [vocab.strings[key] for key in vocab.vectors.key2row]
        data = to_numpy(vocab.vectors.data)
        vectors = np.asarray(data, dtype="float32")[find_rows(vocab.vectors)]
    # Files of another kind can fail anywhere in there.
    except Exception as err:
        raise ValueError(Errors.EL087.format(path=path, problem=err)) from err
    if vocab.vectors.mode == Mode.floret:
        problem = "floret's are of parts of words, and have no words to go through"
        raise ValueError(Errors.EL087.format(path=path, problem=problem))
    if not vectors.size:
        raise ValueError(Errors.EL087.format(path=path, problem="the table is empty"))
    if not np.isfinite(vectors).all():
        problem = "some numbers are infinite, or none"
        raise ValueError(Errors.EL087.format(path=path, problem=problem))
    return StaticVectors(words, vectors)


def find_rows(vectors: Vectors) -> NDArray:
    """vectors (Vectors): of a stranger. RETURNS (NDArray): shape (n_words,), int32, the row of each
    word. RAISES (ValueError): if one is below 0, which NumPy would count from the end; with the
    reason alone."""
    rows = np.fromiter(vectors.key2row.values(), dtype=np.int32)
    if rows.size and rows.min() < 0:
        raise ValueError("a row has a number below 0")
    return rows
