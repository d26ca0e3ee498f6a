"""Contexts of a word: the nearest in a corpus (Peters et al. 2018, table 4); the nearest words by
static vectors, and how similar the word is in several sentences."""

from bisect import insort
from dataclasses import dataclass
from html import escape
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.util import minibatch
from thinc.api import get_array_module

from ..errors import Errors
from ..inference.embedder import Embedder
from ..text.languages import StaticVectors
from ..utils import normalise

# Sentences that are embedded at a time.
_N_SENTENCES = 512
_STYLE = """\
body { font-family: -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; margin: 2rem;
  line-height: 1.8; max-width: 60rem }
mark { padding: 0.25em 0.3em; border-radius: 0.35em; color: inherit }
b mark { outline: 2px solid #c60 }
td { padding: 0.2rem 0.6rem; vertical-align: top }
h2 { font-weight: normal; font-size: 1.2rem; margin-top: 2rem }"""


def name_layers(n_layers: int) -> List[str]:
    """RETURNS (List[str]): names of a biLM's layers, words first."""
    return ["words", *(f"LSTM {i}" for i in range(1, n_layers))]


@dataclass
class Context:
    """A token in a sentence of the corpus. `similarity` is its cosine with the query's token,
    `similarities` those of all words of the sentence; `vector` has shape (width,) and length 1."""

    words: List[str]
    position: int
    similarity: float
    similarities: List[float]
    vector: NDArray


@dataclass
class Query:
    """A token in a sentence, with its contexts, the nearest first. `vector` has shape (width,) and
    length 1."""

    words: List[str]
    position: int
    vector: NDArray
    contexts: List[Context]

    @property
    def word(self) -> str:
        """The token."""
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
    same_word (bool): whether only the query's word counts, in upper or lower case.
    RETURNS (List[Query]): in the order of the queries.
    RAISES (ValueError): EL094 if there are no sentences, EL057 if no other sentence has
        the word that `same_word` asks for, or any.
    EXAMPLE:
        >>> from spacy_elmo import load_embedder
        >>> sentences = [["the", "bank", "lends"], ["a", "river", "bank"], ["ham"]]
        >>> query = ["a", "sea", "bank"], 2
        >>> queries = find_contexts(load_embedder(), [query], sentences, n=1, same_word=True)
        >>> queries[0].contexts[0].words
        ['a', 'river', 'bank']
    """
    asked = [list(words) for words, _ in queries]
    found = [
        Query(words, position, normalise(W)[position], [])
        for words, (_, position), W in zip(asked, queries, embedder.embed_layer(asked, layer))
    ]
    only = {query.word.lower() for query in found} if same_word else None
    for part in minibatch(_select(sentences, asked, only), _N_SENTENCES):
        for words, W in zip(part, embedder.embed_layer(part, layer)):
            X = normalise(W)  # (n_words, width)
            for query in found:
                context = _find_nearest(query, words, X, same_word)
                if context is not None:
                    # Sorting is stable: among equal similarities, the first one found stays.
                    insort(query.contexts, context, key=lambda c: -c.similarity)
                    del query.contexts[n:]
    for query in found:
        if not query.contexts:
            word = f"the word {query.word!r}" if same_word else "a word"
            hint = ", or look at all words" if same_word else ""
            raise ValueError(Errors.EL057.format(word=word, hint=hint))
    return found


def _select(
    sentences: Iterable[Sequence[str]], asked: List[List[str]], only: Optional[Set[str]]
) -> Iterator[List[str]]:
    """Select sentences that are no query's own, and have one of the words in `only`, if given."""
    is_empty = True
    for sentence in sentences:
        is_empty = False
        words = list(sentence)
        is_possible = only is None or any(word.lower() in only for word in words)
        if words and is_possible and words not in asked:
            yield words
    if is_empty:
        raise ValueError(Errors.EL094.format(path="the corpus"))


def _find_nearest(query: Query, words: List[str], X: NDArray, same_word: bool) -> Optional[Context]:
    """Find the token of a sentence, with unit vectors X, that is nearest to the query's."""
    similarities = X @ query.vector  # (n_words,)
    allowed = np.array([not same_word or w.lower() == query.word.lower() for w in words])
    if not allowed.any():
        return None
    i = int(np.where(allowed, similarities, -np.inf).argmax())
    return Context(words, i, float(similarities[i]), similarities.tolist(), X[i].copy())


def nearest_words(vectors: StaticVectors, word: str, n: int = 10) -> List[Tuple[str, float]]:
    """Find the n words whose static vectors are nearest to that of a word, as it is written or in
    lower case. RETURNS (List[Tuple[str, float]]): words and cosines, nearest first; none if the
    table lacks the word."""
    rows = {other: row for row, other in enumerate(vectors.words)}
    row = rows.get(word, rows.get(word.lower()))
    if row is None:
        return []
    X = normalise(vectors.vectors)
    cosines = X @ X[row]
    best = [i for i in np.argsort(-cosines)[: n + 1] if i != row][:n]
    return [(vectors.words[i], float(cosines[i])) for i in best]


def summarise(queries: Sequence[Query], static: Sequence[Tuple[str, float]]) -> Dict[str, Any]:
    """Convert queries to plain data, with a point in the plane for each token. RETURNS (Dict[str,
    Any]): "static" words, and "queries", each with "words", "position", "point" and "contexts",
    which have "similarity", too."""
    tokens: List[Union[Query, Context]] = []
    for query in queries:
        tokens += [query, *query.contexts]
    # The first two principal components of the vectors.
    X = np.stack([token.vector for token in tokens])
    X = X - X.mean(axis=0)
    points = X @ np.linalg.svd(X, full_matrices=False)[2][:2].T  # (n_tokens, 2)
    points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))  # a single token has one
    plain: List[Dict[str, Any]] = []
    for token, point in zip(tokens, points.tolist()):
        about = {"words": token.words, "position": token.position, "point": point}
        if isinstance(token, Query):
            plain.append({**about, "contexts": []})
        else:
            plain[-1]["contexts"].append({**about, "similarity": token.similarity})
    return {"static": [list(pair) for pair in static], "queries": plain}


def render_contexts(queries: Sequence[Query], static: Sequence[Tuple[str, float]]) -> str:
    """Render queries and the nearest static words, if there are any, as an HTML page. A token's
    colour is its similarity to the query's token."""
    parts = []
    if static:
        words = ", ".join(f"{escape(w)} <small>{cosine:.2f}</small>" for w, cosine in static)
        parts.append(f"<h2>Static vectors: “{escape(queries[0].word)}”</h2>\n<p>{words}</p>")
    for query in queries:
        rows = (
            f"<tr><td>{c.similarity:.2f}</td>"
            f"<td>{_render_sentence(c.words, c.position, c.similarities)}</td></tr>\n"
            for c in query.contexts
        )
        title = _render_sentence(query.words, query.position, [0.0] * len(query.words))
        parts.append(f"<h2>{title}</h2>\n<table>\n{''.join(rows)}</table>")
    return (
        '<!DOCTYPE html>\n<html lang="und"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Nearest contexts</title><style>\n{_STYLE}\n</style></head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _render_sentence(words: Sequence[str], position: int, similarities: Sequence[float]) -> str:
    tokens = []
    for i, (word, similarity) in enumerate(zip(words, similarities)):
        strength = min(1.0, max(0.0, similarity))
        token = f'<mark style="background:rgba(255,150,50,{strength:.2f})">{escape(word)}</mark>'
        tokens.append(f"<b>{token}</b>" if i == position else token)
    return " ".join(tokens)


def compare_word(docs: List[Doc], word: str) -> List[List[float]]:
    """Compute the cosines (n_docs, n_docs) of the top layer of a word's first occurrence in each
    doc, minus the mean over docs (see `is_centred`). The docs need layers (`store_layers = true`),
    and the word (EL053)."""
    vectors = []
    for doc in docs:
        token = next((token for token in doc if token.text == word), None)
        if token is None:
            raise ValueError(Errors.EL053.format(word=word, text=doc.text[:100]))
        vectors.append(token._.elmo_layers[-1])
    rows = get_array_module(vectors[0]).stack(vectors)
    if is_centred(len(docs)):
        rows -= rows.mean(axis=0)
    rows = normalise(rows)
    return (rows @ rows.T).tolist()


def is_centred(n_docs: int) -> bool:
    """Whether `compare_word` subtracts the mean of a word's vectors, which share a large part. Of
    two vectors, this would leave opposites."""
    return n_docs > 2
