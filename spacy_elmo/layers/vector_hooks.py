"""`vector` and `similarity` of docs, spans and tokens by hooks, which read ELMo's vectors."""

from typing import Any, Union, cast

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc, Span, Token
from thinc.api import to_numpy
from thinc.types import Floats1d

from ..errors import Errors
from .doc_store import get_entries, get_span_vector, get_token_vector
from .live_mixes import is_part_of_mix


def set_hooks(doc: Doc) -> None:
    """Have `vector` and `similarity` of a doc, its spans and tokens read our vectors,
    also where the pipeline has static vectors.

    doc (Doc): the doc. spaCy drops hooks in `to_bytes` and with `n_process`.
    """
    for hooks, get_vector in (
        (doc.user_hooks, _get_doc_vector),
        (doc.user_span_hooks, _get_span_vector),
        (doc.user_token_hooks, get_token_vector),
    ):
        hooks["vector"] = get_vector
        hooks["has_vector"] = _has_vector
        hooks["similarity"] = _get_similarity


def _get_doc_vector(doc: Doc) -> Floats1d:
    return get_span_vector(doc[:])


def _get_span_vector(span: Span) -> Floats1d:
    """As `get_span_vector`; the mean of static vectors for `doc.retokenize`, which puts the vector
    of what it merges into their table. RAISES (ValueError): EL331 where it cannot be told."""
    doc, tensor = span.doc, cast(Any, span.doc.tensor)
    if doc.vocab.vectors_length and tensor is not None and len(tensor) and not is_part_of_mix(doc):
        # It is resized before the vectors are read.
        if len(tensor) != len(doc):
            return _get_static_vector(span)
        if len(span) == 1 and _has_last_row(doc) and not _get_static_vector(span).any():
            raise ValueError(Errors.EL331.format(text=span.text[:50]))
    return get_span_vector(span)


def _has_last_row(doc: Doc) -> bool:
    """Whether the last row of a doc's tensor is that of ELMo's vectors, which `doc.retokenize`
    keeps."""
    entries = list(get_entries(doc).values())
    if not entries:
        return False
    return np.array_equal(to_numpy(doc.tensor[-1]), to_numpy(entries[-1]["mix"][-1]))


def _get_static_vector(span: Span) -> Floats1d:
    """RETURNS (Floats1d): The mean over the tokens, as spaCy has it without hooks."""
    vocab = span.doc.vocab
    keys = cast(Any, span).to_array([getattr(vocab.vectors, "attr", ORTH)]).ravel()
    vectors: Any = [vocab.get_vector(int(key)) for key in keys]
    return sum(vectors) / max(1, len(vectors))


def _has_vector(item: Union[Doc, Span, Token]) -> bool:
    return True


def _get_similarity(item: Union[Doc, Span, Token], other: Any) -> float:
    """The cosine, 0 if one of the vectors is zero. RAISES (ValueError): EL305 for vectors of
    different widths."""
    # One of them may be of a GPU.
    a, b = to_numpy(item.vector), to_numpy(other.vector)
    if a.shape != b.shape:
        texts = [getattr(each, "text", "")[:50] for each in (item, other)]
        raise ValueError(
            Errors.EL305.format(item=texts[0], other=texts[1], width=len(a), other_width=len(b))
        )
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms else 0.0
