"""Write a shard: Parquet or Arrow, a batch at a time, or a DocBin."""

from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

from numpy.typing import NDArray
from spacy.tokens import Doc, DocBin

from .arrow import pa, pq
from .bulk_pipeline import BulkPipeline
from .records import Record
from .rows import COLUMNS, Rows

_NUMBERS = {"record": "int64", "start": "int64", "sentence": "int32", "token": "int32"}
_NUMBERS["n_tokens"] = "int32"
# Key of `doc.user_data`: where a doc comes from.
ORIGIN = "elmo_embed"


class Shard(NamedTuple):
    """prepare (Callable[[List[Record], List[Doc], Rows], Any]): makes the content of a batch, and
    may fail as often as it likes. write (Callable[[Any], None]): appends it."""

    prepare: Callable[[List[Record], List[Doc], Rows], Any]
    write: Callable[[Any], None]


@contextmanager
def open_shard(path: Path, pipeline: BulkPipeline) -> Iterator[Shard]:
    """Open a shard.

    path (Path): the file.
    pipeline (BulkPipeline): whose rows it gets.
    YIELDS (Shard): open until the end of the block.
    RAISES (OSError): if it cannot be written.
    """
    if pipeline.settings.format == "spacy":
        docs = DocBin(store_user_data=True)
        yield Shard(_pack_docs, docs.merge)
        docs.to_disk(path)
        return
    schema = make_schema(pipeline)
    with _open(path, schema, pipeline.settings.format) as writer:
        yield Shard(lambda records, docs, rows: _make_table(rows, schema), writer.write_table)


def _pack_docs(records: List[Record], docs: List[Doc], rows: Rows) -> DocBin:
    """RETURNS (DocBin): The docs, which say where they come from. RAISES (TypeError): for what a
    component has put on a doc and nobody can save."""
    packed = DocBin(store_user_data=True)
    for record, doc in zip(records, docs):
        place = {"id": record.id, "source": record.source, "record": record.number}
        doc.user_data[ORIGIN] = place
        packed.add(doc)
    return packed


def make_schema(pipeline: BulkPipeline) -> Any:
    """pipeline (BulkPipeline): of a job. RETURNS (pyarrow.Schema): of all its shards."""
    settings = pipeline.settings
    fields = {name: _get_type(name) for name in COLUMNS[settings.unit]}
    if not settings.has_text:
        del fields["text"]
    numbers = {"float16": pa.float16(), "float32": pa.float32()}[settings.dtype]
    vectors = {name: pa.list_(numbers, width) for name, width in pipeline.widths.items()}
    return pa.schema([*fields.items(), *vectors.items()])


def _get_type(name: str) -> Any:
    if name in _NUMBERS:
        return getattr(pa, _NUMBERS[name])()
    return pa.list_(pa.string()) if name == "words" else pa.string()


def _make_table(rows: Rows, schema: Any) -> Any:
    columns: Dict[str, Any] = {
        name: pa.array(values, schema.field(name).type) for name, values in rows.values.items()
    }
    columns.update((name, _make_vectors(X)) for name, X in rows.vectors.items())
    return pa.table(columns, schema=schema)


def _make_vectors(X: NDArray) -> Any:
    """X (NDArray): shape (n, width). RETURNS (pyarrow.FixedSizeListArray): without a copy."""
    return pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])


def _open(path: Path, schema: Any, format: str) -> Any:
    if format == "arrow":
        return pa.ipc.new_file(str(path), schema)
    vectors = {field.name for field in schema if pa.types.is_fixed_size_list(field.type)}
    others = [name for name in schema.names if name not in vectors]
    # Numbers of vectors are noise to a compressor, and no two are the same.
    compression = {name: "ZSTD" for name in others if name != "words"}
    compression |= {"words.list.element": "ZSTD"} if "words" in others else {}
    return pq.ParquetWriter(
        str(path),
        schema,
        compression={
            **compression,
            **{f"{name}.list.element": "NONE" for name in vectors},
        },
        use_dictionary=[name for name in ("id", "source") if name in others],
        write_statistics=[name for name in others if name != "words"],
    )
