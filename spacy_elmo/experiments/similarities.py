"""Compare the vectors of a word in different sentences."""

from typing import List

from spacy.tokens import Doc, Token
from thinc.api import get_array_module

from ..errors import Errors
from ..utils import normalise


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


def find_token(doc: Doc, word: str) -> Token:
    """Find a word in a doc.

    RETURNS (Token): its first occurrence.
    RAISES (ValueError): EL053 if there is none.
    """
    for token in doc:
        if token.text == word:
            return token
    raise ValueError(Errors.EL053.format(word=word, text=doc.text[:100]))
