"""Docs with vectors -> rows: of their tokens, sentences, or the docs themselves."""

from itertools import accumulate
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc

from ..layers.doc_data import get_entries, require_key
from ..text.sentences import cut_sentences
from .bulk_pipeline import BulkPipeline
from .bulk_settings import MIX, name_column
from .record_readers import BadRecord
from .records import Record

# Of a row, and where it stands: rows of tokens have a `token`, others a number of tokens.
COLUMNS = {
    "documents": ("id", "source", "record", "n_tokens", "text"),
    "sentences": ("id", "source", "record", "sentence", "start", "n_tokens", "text", "words"),
    "tokens": ("id", "source", "record", "sentence", "token", "start", "text"),
}
Span = Tuple[int, int]


class Rows(NamedTuple):
    """values (Dict[str, List[Any]]): of the columns, as `COLUMNS` has them. vectors (Dict[str,
    NDArray]): by column, shape (n_rows, width). n_tokens (int): words that the biLM read."""

    values: Dict[str, List[Any]]
    vectors: Dict[str, NDArray]
    n_tokens: int

    @property
    def n_rows(self) -> int:
        """RETURNS (int): How many there are."""
        return len(self.values["record"])


def has_words(doc: Doc) -> bool:
    """doc (Doc): tokenized. RETURNS (bool): Whether there is more than space in it."""
    return bool((doc.to_array(IS_SPACE) == 0).any())


def make_rows(pipeline: BulkPipeline, records: Sequence[Record], docs: Sequence[Doc]) -> Rows:
    """Collect the rows of docs.

    pipeline (BulkPipeline): that they went through.
    records (Sequence[Record]), docs (Sequence[Doc]): the same ones, with words.
    RETURNS (Rows): in their order.
    RAISES (BadRecord): for a vector that the type cannot hold.
    RAISES (ValueError): EL050 if a component has changed tokens that were read before.
    """
    settings = pipeline.settings
    values: Dict[str, List[Any]] = {name: [] for name in COLUMNS[settings.unit]}
    vectors: Dict[str, List[NDArray]] = {name: [] for name in pipeline.widths}
    n_tokens = 0
    for record, doc in zip(records, docs):
        is_word = doc.to_array(IS_SPACE) == 0  # (n_tokens,)
        n_tokens += int(is_word.sum())
        parts = list(_list_parts(doc, is_word, settings.unit))
        for row in parts:
            for name in values:
                values[name].append(_get_value(name, record, doc, row, is_word))
        for name, X in _get_vectors(pipeline, doc).items():
            vectors[name].append(_reduce(X, [part.span for part in parts], is_word, settings.unit))
    if not settings.has_text:
        del values["text"]
    joined = {name: np.concatenate(arrays) for name, arrays in vectors.items()}
    # Docs have them as they were computed.
    dtype = "float32" if settings.format == "spacy" else settings.dtype
    return Rows(values, _cast(joined, dtype), n_tokens)


class _Part(NamedTuple):
    """span (Span): tokens of a row. sentence (int): number in the doc."""

    span: Span
    sentence: int


def _list_parts(doc: Doc, is_word: NDArray, unit: str) -> Iterator[_Part]:
    if unit == "documents":
        yield _Part((0, len(doc)), 0)
        return
    for number, (start, end) in enumerate(_find_sentences(doc)):
        if unit == "tokens":
            words = start + np.flatnonzero(is_word[start:end])
            yield from (_Part((int(i), int(i) + 1), number) for i in words)
        elif is_word[start:end].any():
            yield _Part((start, end), number)


def _find_sentences(doc: Doc) -> List[Span]:
    """RETURNS (List[Span]): As annotated; else by punctuation, as the package cuts text."""
    if doc.has_annotation("SENT_START"):
        return [(sent.start, sent.end) for sent in doc.sents]
    sentences = cut_sentences([token.text for token in doc])
    ends = list(accumulate(len(words) for words in sentences))
    return list(zip([0, *ends], ends))


def _get_value(name: str, record: Record, doc: Doc, part: _Part, is_word: NDArray) -> Any:
    start, end = part.span
    if name in ("id", "source"):
        return getattr(record, name)
    if name == "text":
        # A span leaves out the space behind it.
        return doc.text if end - start == len(doc) else doc[start:end].text
    if name == "words":
        return [doc[i].text for i in range(start, end) if is_word[i]]
    numbers = {
        "record": record.number,
        "sentence": part.sentence,
        "token": start,
        "start": doc[start].idx,
        "n_tokens": int(is_word[start:end].sum()),
    }
    return numbers[name]


def _get_vectors(pipeline: BulkPipeline, doc: Doc) -> Dict[str, NDArray]:
    """RETURNS (Dict[str, NDArray]): Column -> vectors of the tokens, shape (n_tokens, width)."""
    entry = get_entries(doc)[pipeline.elmo.name]
    require_key(doc, entry["key"], pipeline.elmo.name)
    to_numpy = pipeline.elmo.model.ops.to_numpy
    return {
        name_column(layer): to_numpy(
            entry["mix"] if layer == MIX else entry["layers"][:, int(layer)]
        )
        for layer in pipeline.settings.layers
    }


def _reduce(X: NDArray, spans: List[Span], is_word: NDArray, unit: str) -> NDArray:
    """X (NDArray): shape (n_tokens, width). RETURNS (NDArray): vectors of tokens, or means over
    the words of other spans, shape (n_spans, width)."""
    if unit == "tokens":
        return X[[start for start, _ in spans]]
    means = [X[start:end][is_word[start:end]].mean(axis=0) for start, end in spans]
    return np.stack(means)


def _cast(vectors: Dict[str, NDArray], dtype: str) -> Dict[str, NDArray]:
    with np.errstate(over="ignore"):
        cast = {name: X.astype(dtype) for name, X in vectors.items()}
    for name, X in cast.items():
        if not np.isfinite(X).all():
            raise BadRecord(f"a number of {name} is none that {dtype} can hold")
    return cast
