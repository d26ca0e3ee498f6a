"""Read a table of static vectors, for biLMs that start from one."""

from pathlib import Path
from typing import List, NamedTuple

import numpy as np
import spacy
from numpy.typing import NDArray
from spacy.vocab import Vocab

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
    try:
        if (path / "config.cfg").exists():
            vocab = spacy.load(path).vocab
        else:
            vocab = Vocab().from_disk(path)
    except (OSError, ValueError) as err:
        raise ValueError(Errors.EL087.format(path=path, problem=err)) from err
    rows = vocab.vectors.key2row
    if not rows or vocab.vectors_length == 0:
        raise ValueError(Errors.EL087.format(path=path, problem="the table is empty"))
    words = [vocab.strings[key] for key in rows]
    vectors = np.asarray(vocab.vectors.data, dtype="float32")[list(rows.values())]
    return StaticVectors(words, vectors)
