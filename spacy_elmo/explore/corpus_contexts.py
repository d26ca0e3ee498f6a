"""The nearest contexts of a token among the sentences of an index."""

from itertools import islice
from typing import Any, Dict, List, Tuple

from spacy.tokens import Doc

from ..experiments.contexts import find_contexts
from ..search.search_index import Hit, SearchIndex
from ..utils import require_layer
from .text_reader import get_token

# Sentences that are looked at, of how many with their copies, and those that are shown.
_N_SENTENCES = 50
_MOST = 1000
_N_CONTEXTS = 8


def list_contexts(
    index: SearchIndex, docs: List[Doc], i: int, layer: int = -1
) -> List[Dict[str, Any]]:
    """Search the sentences that are most like the token's own for the tokens that are most like
    it.

    index (SearchIndex): its biLM makes the vectors.
    docs (List[Doc]): of a text.
    i (int): the token's number.
    layer (int): of the biLM; -1 is the top one.
    RETURNS (List[Dict[str, Any]]): "words" and "position" of a context, its "similarity"
        (cosine), "source" and "number" of its sentence there; the nearest first.
    RAISES (ValueError): EL276 for no such token, EL017 for no such layer, others as
        `SearchIndex.search`.
    """
    embedder = index.encoder.embedder
    require_layer(layer, embedder.bilm.config.n_layers)
    token = get_token(docs, i)
    words = [other.text for other in token.doc if not other.is_space]
    position = sum(not other.is_space for other in token.doc[: token.i])
    hits = _find_others(index, words)
    if not hits:
        return []
    (query,) = find_contexts(embedder, [(words, position)], hits, n=_N_CONTEXTS, layer=layer)
    return [
        {
            "words": context.words,
            "position": context.position,
            "similarity": context.similarity,
            "source": hits[tuple(context.words)].source,
            "number": hits[tuple(context.words)].number,
        }
        for context in query.contexts
    ]


def _find_others(index: SearchIndex, words: List[str]) -> Dict[Tuple[str, ...], Hit]:
    """RETURNS (Dict[Tuple[str, ...], Hit]): Sentences like the words, each once, and none with the
    very words, however many copies there are of both."""
    n = _N_SENTENCES
    while True:
        found = index.search(words, n)
        others: Dict[Tuple[str, ...], Hit] = {}
        for hit in found:
            if hit.words != words:
                others.setdefault(tuple(hit.words), hit)
        if len(others) >= _N_SENTENCES or len(found) < n or n >= _MOST:
            return dict(islice(others.items(), _N_SENTENCES))
        n = min(4 * n, _MOST)
