"""Rows of tokens, sentences or documents, and the shards that they are written to."""

from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, DocBin

from ..layers.doc_data import get_entries, require_key
from ..text.cutting import cut_sentences
from .output import pa, pq
from .pipeline import MIX, EmbedPipeline, name_column
from .readers import BadRecord, Record

# Columns of a row: rows of tokens have a `token`, others a number of tokens.
COLUMNS = {
    "documents": ("id", "source", "record", "n_tokens", "text"),
    "sentences": ("id", "source", "record", "sentence", "start", "n_tokens", "text", "words"),
    "tokens": ("id", "source", "record", "sentence", "token", "start", "text"),
}
_LARGE, _SMALL = ("record", "start"), ("sentence", "token", "n_tokens")
# Key of `doc.user_data`: where a doc comes from.
ORIGIN = "elmo_embed"


class Block(NamedTuple):
    """The rows of some docs, ready to be written: a pyarrow.Table or a DocBin. Tokens are words
    that the biLM read."""

    content: Any
    n_records: int
    n_rows: int
    n_tokens: int


@contextmanager
def open_shard(path: Path, pipeline: EmbedPipeline) -> Iterator[Callable[[Block], None]]:
    """Open a shard for writing. Yields a function that appends rows."""
    if pipeline.settings.format == "spacy":
        docs = DocBin(store_user_data=True)
        yield lambda block: docs.merge(block.content)
        docs.to_disk(path)
        return
    schema = make_schema(pipeline)
    if pipeline.settings.format == "arrow":
        opened = pa.ipc.new_file(str(path), schema)
    else:
        opened = _open_parquet(path, schema)
    with opened as writer:
        yield lambda block: writer.write_table(block.content)


def _open_parquet(path: Path, schema: Any) -> Any:
    vectors = {field.name for field in schema if pa.types.is_fixed_size_list(field.type)}
    others = [name for name in schema.names if name not in vectors]
    # Vectors do not get smaller by compression, and no two are the same.
    compression = {name: "ZSTD" for name in others if name != "words"}
    compression |= {"words.list.element": "ZSTD"} if "words" in others else {}
    compression |= {f"{name}.list.element": "NONE" for name in vectors}
    return pq.ParquetWriter(
        str(path),
        schema,
        compression=compression,
        use_dictionary=[name for name in ("id", "source") if name in others],
        write_statistics=[name for name in others if name != "words"],
    )


def make_schema(pipeline: EmbedPipeline) -> Any:
    """The pyarrow.Schema of all shards of a job."""
    settings = pipeline.settings
    types = {"words": pa.list_(pa.string())}
    types |= {**dict.fromkeys(_LARGE, pa.int64()), **dict.fromkeys(_SMALL, pa.int32())}
    names = [name for name in COLUMNS[settings.unit] if name != "text" or settings.has_text]
    fields = [(name, types.get(name, pa.string())) for name in names]
    numbers = {"float16": pa.float16(), "float32": pa.float32()}[settings.dtype]
    vectors = [(name, pa.list_(numbers, width)) for name, width in pipeline.widths.items()]
    return pa.schema([*fields, *vectors])


def make_block(pipeline: EmbedPipeline, records: Sequence[Record], docs: Sequence[Doc]) -> Block:
    """Make the rows of docs with words, whose vectors the pipeline has computed. A vector that the
    type cannot hold is a `BadRecord`; tokens that were changed since are an error."""
    n_tokens = sum(int((doc.to_array(IS_SPACE) == 0).sum()) for doc in docs)
    if pipeline.settings.format == "spacy":
        packed = DocBin(store_user_data=True)
        for record, doc in zip(records, docs):
            _require_finite(_get_vectors(pipeline, doc), "float32")
            place = {"id": record.id, "source": record.source, "record": record.number}
            doc.user_data[ORIGIN] = place
            packed.add(doc)
        return Block(packed, len(docs), len(docs), n_tokens)
    table = _make_table(pipeline, records, docs)
    return Block(table, len(docs), table.num_rows, n_tokens)


def _make_table(pipeline: EmbedPipeline, records: Sequence[Record], docs: Sequence[Doc]) -> Any:
    settings = pipeline.settings
    names = [name for name in COLUMNS[settings.unit] if name != "text" or settings.has_text]
    values: Dict[str, List[Any]] = {name: [] for name in names}
    vectors: Dict[str, List[NDArray]] = {name: [] for name in pipeline.widths}
    for record, doc in zip(records, docs):
        is_word = doc.to_array(IS_SPACE) == 0  # (n_tokens,)
        spans = _list_spans(doc, is_word, settings.unit)
        for start, end, sentence in spans:
            words = [doc[i].text for i in range(start, end) if is_word[i]]
            row = {
                "id": record.id,
                "source": record.source,
                "record": record.number,
                "sentence": sentence,
                "token": start,
                "start": doc[start].idx,
                "n_tokens": len(words),
                # A span leaves out the space behind it.
                "text": doc.text if end - start == len(doc) else doc[start:end].text,
                "words": words,
            }
            for name in names:
                values[name].append(row[name])
        for name, X in _get_vectors(pipeline, doc).items():
            if settings.unit == "tokens":
                vectors[name].append(X[is_word])
            else:
                means = [X[start:end][is_word[start:end]].mean(axis=0) for start, end, _ in spans]
                vectors[name].append(np.stack(means))
    with np.errstate(over="ignore"):
        arrays = {name: np.concatenate(X).astype(settings.dtype) for name, X in vectors.items()}
    _require_finite(arrays, settings.dtype)
    schema = make_schema(pipeline)
    columns = {name: pa.array(column, schema.field(name).type) for name, column in values.items()}
    for name, X in arrays.items():
        columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])
    return pa.table(columns, schema=schema)


def _require_finite(vectors: Dict[str, NDArray], dtype: str) -> None:
    for name, X in vectors.items():
        if not np.isfinite(X).all():
            raise BadRecord(f"a number of {name} is not finite in {dtype}")


def _list_spans(doc: Doc, is_word: NDArray, unit: str) -> List[Tuple[int, int, int]]:
    """First token, end, and number of the sentence of each row."""
    if unit == "documents":
        return [(0, len(doc), 0)]
    spans: List[Tuple[int, int, int]] = []
    for number, (start, end) in enumerate(_find_sentences(doc)):
        if unit == "tokens":
            words = start + np.flatnonzero(is_word[start:end])
            spans += [(int(i), int(i) + 1, number) for i in words]
        elif is_word[start:end].any():
            spans.append((start, end, number))
    return spans


def _find_sentences(doc: Doc) -> List[Tuple[int, int]]:
    """Sentences as annotated; else by punctuation."""
    if doc.has_annotation("SENT_START"):
        return [(sent.start, sent.end) for sent in doc.sents]
    sentences = cut_sentences([token.text for token in doc])
    ends = list(accumulate(len(words) for words in sentences))
    return list(zip([0, *ends], ends))


def _get_vectors(pipeline: EmbedPipeline, doc: Doc) -> Dict[str, NDArray]:
    """Column -> vectors of the tokens, shape (n_tokens, width)."""
    entry = get_entries(doc)[pipeline.elmo.name]
    require_key(doc, entry["key"], pipeline.elmo.name)
    to_numpy = pipeline.elmo.model.ops.to_numpy
    return {
        name_column(layer): to_numpy(
            entry["mix"] if layer == MIX else entry["layers"][:, int(layer)]
        )
        for layer in pipeline.settings.layers
    }
