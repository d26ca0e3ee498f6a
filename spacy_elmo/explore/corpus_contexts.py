"""The nearest contexts of a token among the sentences of an index."""

from typing import Any, Dict, List

from spacy.tokens import Doc

from ..experiments.contexts import find_contexts
from ..search.search_index import SearchIndex
from ..util.checks import require_layer
from .text_reader import get_token

# Sentences that are looked at, and those that are shown.
_N_SENTENCES = 50
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
    hits = {tuple(hit.words): hit for hit in index.search(words, _N_SENTENCES)}
    hits.pop(tuple(words), None)
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
