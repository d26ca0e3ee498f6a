"""Compare vectors: of a word in different sentences, or any."""

from typing import List

from numpy.typing import NDArray
from spacy.tokens import Doc, Token
from thinc.api import get_array_module

from .errors import Errors


def compare_word(docs: List[Doc], word: str) -> List[List[float]]:
    """Compute the cosines of a word's top layer between docs.

    docs (List[Doc]): docs with layers (`store_layers = true`), each with the word.
    word (str): the word, as it is written; its first occurrence counts.
    RETURNS (List[List[float]]): shape (n_docs, n_docs).
    RAISES (ValueError): EL053 if a doc lacks the word, EL052 if it has no layers.
    """
    vectors = [find_token(doc, word)._.elmo_layers[-1] for doc in docs]
    rows = normalise(get_array_module(vectors[0]).stack(vectors))
    return (rows @ rows.T).tolist()


def normalise(X: NDArray) -> NDArray:
    """X (NDArray): vectors, shape (..., width). RETURNS (NDArray): the same of length 1;
    those of zeros stay zeros."""
    xp = get_array_module(X)
    norms = xp.linalg.norm(X, axis=-1, keepdims=True)
    return X / xp.where(norms == 0, 1.0, norms)


def find_token(doc: Doc, word: str) -> Token:
    """Find a word in a doc.

    RETURNS (Token): its first occurrence.
    RAISES (ValueError): EL053 if there is none.
    """
    for token in doc:
        if token.text == word:
            return token
    raise ValueError(Errors.EL053.format(word=word, text=doc.text[:100]))
