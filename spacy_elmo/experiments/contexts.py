"""Nearest contexts of a word in its sentence, beside nearest words of static vectors
(Peters et al. 2018, table 4)."""

from dataclasses import dataclass
from heapq import heappush, heappushpop
from html import escape
from itertools import count
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray
from spacy.util import minibatch

from ..errors import Errors
from ..inference.embedder import Embedder
from ..text.static_vectors import StaticVectors
from ..util.vectors import normalise

# Sentences that are embedded at a time.
_N_SENTENCES = 512


@dataclass
class Context:
    """A token in a sentence of the corpus.

    words (List[str]): the sentence.
    position (int): of the token.
    similarity (float): cosine with the query's token.
    similarities (List[float]): of each token of the sentence with it.
    vector (NDArray): of the token, shape (width,), length 1.
    """

    words: List[str]
    position: int
    similarity: float
    similarities: List[float]
    vector: NDArray


@dataclass
class Query:
    """A token in a sentence, with what was found for it.

    words (List[str]): the sentence.
    position (int): of the token.
    vector (NDArray): of the token, shape (width,), length 1.
    contexts (List[Context]): nearest first.
    """

    words: List[str]
    position: int
    vector: NDArray
    contexts: List[Context]

    @property
    def word(self) -> str:
        """RETURNS (str): The token."""
        return self.words[self.position]


def find_contexts(
    embedder: Embedder,
    queries: Sequence[Tuple[Sequence[str], int]],
    sentences: Iterable[Sequence[str]],
    *,
    n: int = 10,
    layer: int = -1,
    same_word: bool = False,
) -> List[Query]:
    """Read a corpus once, and keep for each query the sentences with the nearest token.

    embedder (Embedder): makes the vectors.
    queries (Sequence[Tuple[Sequence[str], int]]): words of a sentence, and the position of
        a token.
    sentences (Iterable[Sequence[str]]): words of each sentence; the queries' own are
        passed over.
    n (int): sentences to keep.
    layer (int): of the biLM; -1 is the top one.
    same_word (bool): whether only tokens with the query's letters count, in any case.
    RETURNS (List[Query]): in the order of the queries.
    RAISES (ValueError): EL094 if there are no sentences, EL057 if no sentence has the word
        that `same_word` asks for.
    EXAMPLE:
        >>> from spacy_elmo import load_embedder
        >>> sentences = [["the", "bank", "lends"], ["a", "river", "bank"], ["ham"]]
        >>> query = ["a", "sea", "bank"], 2
        >>> found = find_contexts(load_embedder(), [query], sentences, n=1, same_word=True)
        >>> found[0].contexts[0].words
        ['a', 'river', 'bank']
    """
    asked = [list(words) for words, _ in queries]
    vectors = [
        normalise(array[layer])[position]
        for array, (_, position) in zip(embedder.embed(asked), queries)
    ]
    found = [Query(words, p, v, []) for words, (_, p), v in zip(asked, queries, vectors)]
    heaps: List[List[Tuple[float, int, Context]]] = [[] for _ in found]
    order, n_read = count(), 0
    wanted = {query.word.lower() for query in found} if same_word else None

    def choose() -> Iterator[List[str]]:
        nonlocal n_read
        for words in sentences:
            n_read += 1
            is_wanted = wanted is None or any(word.lower() in wanted for word in words)
            if words and is_wanted and list(words) not in asked:
                yield list(words)

    for part in minibatch(choose(), _N_SENTENCES):
        for words, array in zip(part, embedder.embed(part)):
            X = normalise(array[layer])
            for query, heap in zip(found, heaps):
                context = _find_best(query, words, X, same_word)
                if context is not None:
                    item = (context.similarity, -next(order), context)
                    (heappush if len(heap) < n else heappushpop)(heap, item)
    if not n_read:
        raise ValueError(Errors.EL094.format(path="the corpus"))
    for query, heap in zip(found, heaps):
        if not heap:
            raise ValueError(Errors.EL057.format(word=query.word))
        query.contexts = [context for *_, context in sorted(heap, key=_by_rank, reverse=True)]
    return found


def _by_rank(item: Tuple[float, int, Context]) -> Tuple[float, int]:
    return item[:2]


def _find_best(query: Query, words: List[str], X: NDArray, same_word: bool) -> Optional[Context]:
    similarities = X @ query.vector
    allowed = np.array([not same_word or w.lower() == query.word.lower() for w in words])
    if not allowed.any():
        return None
    position = int(np.where(allowed, similarities, -np.inf).argmax())
    return Context(
        words, position, float(similarities[position]), similarities.tolist(), X[position].copy()
    )


def nearest_words(vectors: StaticVectors, word: str, n: int = 10) -> List[Tuple[str, float]]:
    """Find the words whose static vectors are nearest.

    vectors (StaticVectors): the table.
    word (str): as it is written, or in lower case if the table has only that.
    n (int): how many.
    RETURNS (List[Tuple[str, float]]): words and cosines, nearest first; none if the table
        lacks the word.
    """
    rows = {other: row for row, other in enumerate(vectors.words)}
    row = rows.get(word, rows.get(word.lower()))
    if row is None:
        return []
    X = normalise(vectors.vectors)
    cosines = X @ X[row]
    best = [i for i in np.argsort(-cosines)[: n + 1] if i != row][:n]
    return [(vectors.words[i], float(cosines[i])) for i in best]


def project(vectors: NDArray) -> NDArray:
    """Project vectors onto their two directions of largest variance.

    vectors (NDArray): shape (n, width), n at least 1.
    RETURNS (NDArray): shape (n, 2).
    """
    centred = vectors - vectors.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    points = centred @ directions[:2].T
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))


def summarise(queries: Sequence[Query], static: Sequence[Tuple[str, float]]) -> Dict[str, Any]:
    """Put what was found into a dict, with the place of each token in a plane.

    queries (Sequence[Query]): from `find_contexts`.
    static (Sequence[Tuple[str, float]]): from `nearest_words`.
    RETURNS (Dict[str, Any]): "static", and "queries", each with "words", "position",
        "point" and "contexts", which have "similarity", too.
    """
    vectors = [[query.vector, *(c.vector for c in query.contexts)] for query in queries]
    points = iter(project(np.concatenate(vectors)).tolist())
    return {
        "static": [list(pair) for pair in static],
        "queries": [
            {
                "words": query.words,
                "position": query.position,
                "point": next(points),
                "contexts": [
                    {
                        "words": context.words,
                        "position": context.position,
                        "similarity": context.similarity,
                        "point": next(points),
                    }
                    for context in query.contexts
                ],
            }
            for query in queries
        ],
    }


def render_html(queries: Sequence[Query], static: Sequence[Tuple[str, float]]) -> str:
    """Write a page in displaCy's style: for each query its contexts, each token coloured
    by how near it is to the query's.

    queries (Sequence[Query]): from `find_contexts`.
    static (Sequence[Tuple[str, float]]): from `nearest_words`; none to leave them out.
    RETURNS (str): HTML that needs no other file.
    """
    parts = [_HEAD]
    if static:
        word = queries[0].word
        names = ", ".join(
            f"{escape(other)} <small>{cosine:.2f}</small>" for other, cosine in static
        )
        parts.append(f"<h2>Static vectors: “{escape(word)}”</h2><p>{names}</p>")
    for query in queries:
        parts.append(f"<h2>{_render_words(query.words, query.position, None)}</h2><table>")
        for context in query.contexts:
            words = _render_words(context.words, context.position, context.similarities)
            parts.append(f"<tr><td>{context.similarity:.2f}</td><td>{words}</td></tr>")
        parts.append("</table>")
    return "\n".join([*parts, "</body></html>"])


def _render_words(words: Sequence[str], position: int, shares: Optional[Sequence[float]]) -> str:
    spans = []
    for i, word in enumerate(words):
        strength = 0.0 if shares is None else max(0.0, min(1.0, shares[i]))
        text = f"<mark style='background:rgba(255,150,50,{strength:.2f})'>{escape(word)}</mark>"
        spans.append(f"<b>{text}</b>" if i == position else text)
    return " ".join(spans)


_HEAD = """<!DOCTYPE html>
<html lang="und"><head><meta charset="utf-8"><title>Nearest contexts</title><style>
body { font-family: -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; margin: 2rem;
  line-height: 1.8; max-width: 60rem }
mark { padding: 0.25em 0.3em; border-radius: 0.35em; color: inherit }
b mark { outline: 2px solid #c60 }
td { padding: 0.2rem 0.6rem; vertical-align: top }
h2 { font-weight: normal; font-size: 1.2rem; margin-top: 2rem }
</style></head><body>"""
