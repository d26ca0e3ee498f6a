"""Annotated docs to bytes: nothing of a doc outlives the pass that it was read in."""

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import orjson
from spacy.tokens import Doc
from thinc.util import to_numpy

# At most: '{"text":"","start":12345,"end":12345},', and a character that JSON escapes.
_SPAN_BYTES = 60
_CHAR_BYTES = 6
# At most: "-0.0000063184107,". In base64 three bytes are four.
_NUMBER_BYTES = {"json": 17.0, "base64": 16 / 3}


class Reader(NamedTuple):
    """What is asked of the docs of a request.

    read (Callable): all of them to the body of the answer.
    token_bytes (float): at most, of the vector of a token; 0 if the answer has none.
    """

    read: Callable[[list[Doc]], bytes]
    token_bytes: float = 0.0

    def bound(self, docs: list[Doc]) -> int:
        """RETURNS (int): bytes that the answer has at most; 0 for one without vectors of tokens,
        which is short, and counted when it is written."""
        if not self.token_bytes:
            return 0
        n_tokens, n_chars = sum(map(len, docs)), sum(len(doc.text) for doc in docs)
        per_token = _SPAN_BYTES + self.token_bytes
        return int(per_token * n_tokens + _CHAR_BYTES * n_chars + 100 * (len(docs) + 1))


def write_answer(results: list[Any]) -> bytes:
    """RETURNS (bytes): the body of an answer. Numbers are the shortest that read as the same
    float32."""
    return orjson.dumps({"results": results}, option=orjson.OPT_SERIALIZE_NUMPY)


def read_tags(docs: list[Doc]) -> bytes:
    """RETURNS (bytes): each token with its place, tag, part of speech, morphology, lemma."""
    return write_answer(
        [
            {
                "tokens": [
                    {
                        **make_span(token.idx, token.text),
                        "tag": token.tag_,
                        "pos": token.pos_,
                        "morph": str(token.morph),
                        "lemma": token.lemma_,
                    }
                    for token in doc
                ]
            }
            for doc in docs
        ]
    )


def read_entities(docs: list[Doc]) -> bytes:
    """RETURNS (bytes): each entity with its place and label."""
    return write_answer(
        [
            {
                "entities": [
                    {**make_span(ent.start_char, ent.text), "label": ent.label_} for ent in doc.ents
                ]
            }
            for doc in docs
        ]
    )


def make_span(start: int, text: str) -> dict[str, Any]:
    """RETURNS (dict): text[start:end] of the request, in Unicode characters."""
    return {"text": text, "start": start, "end": start + len(text)}


def make_vectors_reader(pooling: str, encoding: str, width: int) -> Reader:
    """width (int): of a vector.
    RETURNS (Reader): each text's vectors, of its tokens or their mean."""

    def read_vectors(docs: list[Doc]) -> bytes:
        return write_answer([describe(doc) for doc in docs])

    def describe(doc: Doc) -> dict[str, Any]:
        if pooling == "mean":
            return {"vector": encode(get_mean(doc))}
        tokens = [make_span(token.idx, token.text) for token in doc]
        vectors = get_vectors(doc)
        return {"tokens": tokens, "shape": list(vectors.shape), "vectors": encode(vectors)}

    def encode(array: np.ndarray) -> Any:
        if encoding == "base64":
            # Base64 has nothing to escape: written as it is, without another copy.
            return orjson.Fragment(b'"%b"' % base64.b64encode(array.astype("<f4", copy=False).data))
        return array

    is_long = pooling != "mean"
    return Reader(read_vectors, width * _NUMBER_BYTES[encoding] if is_long else 0.0)


def read_similarities(docs: list[Doc]) -> bytes:
    """RETURNS (bytes): the cosine of each two docs' means, 0 if one has no vector."""
    means = [get_mean(doc) for doc in docs]
    return write_answer([compute_cosine(a, b) for a, b in zip(means[::2], means[1::2])])


def compute_cosine(a: np.ndarray, b: np.ndarray) -> float:
    """RETURNS (float): in [-1, 1]; 0 if one is zero, as spaCy's `similarity`."""
    # The squares of large float32 are infinite, and those of small ones 0.
    a, b = a.astype("float64"), b.astype("float64")
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    # Rounding takes a vector's cosine with itself beyond 1.
    return float(np.clip(a @ b / norm, -1, 1)) if norm else 0.0


def get_vectors(doc: Doc) -> np.ndarray:
    """RETURNS (ndarray): shape (n_tokens, width), contiguous float32."""
    return np.ascontiguousarray(to_numpy(doc.tensor), dtype="float32")


def get_mean(doc: Doc) -> np.ndarray:
    """RETURNS (ndarray): shape (width,); zeros for a text without tokens."""
    vectors = get_vectors(doc)
    return vectors.mean(axis=0) if len(doc) else np.zeros(vectors.shape[-1], dtype="float32")
