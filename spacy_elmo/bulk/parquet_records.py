"""Records of Parquet files (extra "bulk"). See `record_readers`."""

from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Tuple

from ..errors import Errors
from ..files import is_system_error
from ..text.text_files import COMPRESSIONS
from ..utils import show_names
from .arrow import pa, pc, pq, require_arrow
from .record_readers import (
    MOST_BYTES,
    BadRecord,
    Items,
    Keys,
    check_id,
    check_text,
    give_up,
    show_path,
)
from .records import Place, Record

# Rows that are decoded at a time, however short they are, and bytes, however few rows have them.
_N_ROWS = 1024
_N_BYTES = 1 << 24
# Of a column that is read ahead: else Arrow reads all of a row group's.
_BUFFER = 1 << 20


def read_parquet(path: Path, start: Place, keys: Keys) -> Items:
    """Read rows of a Parquet file, some at a time.

    path (Path): the file.
    start (Place): its offset is a row.
    keys (Keys): columns; that of ids may be missing.
    YIELDS (Item): as `record_readers`.
    RAISES (OSError): if it cannot be read.
    """
    end = start
    try:
        with pq.ParquetFile(path, buffer_size=_BUFFER) as file:
            for record, end in _read_rows(file, path, start, keys):
                yield record, end
    # Arrow's own errors are OSErrors, ValueErrors, NotImplementedErrors and others.
    except Exception as err:
        if is_system_error(err):
            raise
        yield give_up(path, end, err)


def require_columns(path: Path, keys: Keys) -> None:
    """Check the schema of a Parquet file.

    path (Path): the file. One that is damaged passes: `read_parquet` tells of it.
    keys (Keys): columns.
    RAISES (ValueError): EL302 for one that is compressed as a whole, EL240 without pyarrow, EL250
        if there is no column of texts, EL296 if it does not hold texts, or that of ids nothing that
        can name a record.
    RAISES (OSError): if it cannot be opened.
    """
    if path.suffix in COMPRESSIONS:
        raise ValueError(Errors.EL302.format(path=path, name=path.stem))
    require_arrow(path)
    path.open("rb").close()
    try:
        schema = pq.read_schema(path)
        types: List[Tuple[str, Any]] = list(zip(schema.names, schema.types))
    # As above, and names that are not in UTF-8.
    except Exception:
        return
    texts = [kind for name, kind in types if name == keys.text]
    if not texts:
        known = show_names(name for name, _ in types)
        raise ValueError(Errors.EL250.format(path=path, key=keys.text, known=known))
    if len(texts) > 1 or not _is_string(texts[0]):
        problem = {"key": keys.text, "expected": "one of texts (string)", "option": "--text-key"}
        raise ValueError(Errors.EL296.format(path=path, types=_show_types(texts), **problem))
    ids = [kind for name, kind in types if name == keys.id]
    if len(ids) > 1 or not all(map(_can_be_id, ids)):
        expected = "one of texts, numbers, dates or UUIDs"
        problem = {"key": keys.id, "expected": expected, "option": "--id-key"}
        raise ValueError(Errors.EL296.format(path=path, types=_show_types(ids), **problem))


def _show_types(types: List[Any]) -> str:
    return show_names(map(str, types))


def _is_string(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return is_text or pa.types.is_string_view(kind)


def _can_be_id(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or _is_cast(kind)
    is_uuid = getattr(kind, "extension_name", "") == "arrow.uuid"
    return _is_string(kind) or is_number or is_uuid or pa.types.is_null(kind)


def _is_cast(kind: Any) -> bool:
    """RETURNS (bool): Whether Arrow writes it as text without a loss, and Python has none."""
    return pa.types.is_temporal(kind) or pa.types.is_decimal(kind)


def _read_rows(file: Any, path: Path, start: Place, keys: Keys) -> Items:
    names, source = file.schema_arrow.names, show_path(path)
    columns = [keys.text, *({keys.id} & set(names))]
    size = path.stat().st_size / max(1, file.metadata.num_rows)
    n_in_groups = sum(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))
    _require_rows(n_in_groups, file.metadata.num_rows)
    for group in _list_groups(file, start.offset):
        row = group.first
        n_rows = _count_rows(file, path, group.number, columns)
        for batch in file.iter_batches(n_rows, row_groups=[group.number], columns=columns):
            texts = _list_values(batch.column(keys.text))
            has_ids = keys.id in names
            ids = _list_values(batch.column(keys.id)) if has_ids else iter([None] * len(batch))
            for text, name in zip(texts, ids):
                row += 1
                if row > start.offset:
                    place = Place(start.file, row, row, start.n_bytes + int(row * size))
                    yield _make(source, row - 1, text, name), place
        _require_rows(row - group.first, file.metadata.row_group(group.number).num_rows)


def _require_rows(n_found: int, n_expected: int) -> None:
    """Arrow passes over pages that damage has made empty. RAISES (ValueError): if rows are missing,
    with the reason alone."""
    if n_found != n_expected:
        raise ValueError(f"{n_found} rows were found, {n_expected} expected")


class _Group(NamedTuple):
    """number (int): of a row group. first (int): the row that it begins with."""

    number: int
    first: int


def _list_groups(file: Any, first: int) -> Iterator[_Group]:
    """YIELDS (_Group): From the one with a row on."""
    row = 0
    for number in range(file.num_row_groups):
        n_rows = file.metadata.row_group(number).num_rows
        if row + n_rows > first:
            yield _Group(number, row)
        row += n_rows


def _count_rows(file: Any, path: Path, number: int, columns: List[str]) -> int:
    """RETURNS (int): Rows of a group to decode at a time. Those that refer to a dictionary are as
    long as its longest entry, at most, and the others as long as the size of the column says."""
    texts = [name for name in columns if _is_string(file.schema_arrow.field(name).type)]
    with pq.ParquetFile(path, read_dictionary=texts, buffer_size=_BUFFER) as encoded:
        batch = next(encoded.iter_batches(1, row_groups=[number], columns=columns), None)
    n_bytes = 0
    for name, column in zip(columns, batch.select(columns).columns if batch is not None else ()):
        if name in texts:
            n_bytes += pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    # After a row could be read, and of these columns alone: of damaged ones, to ask is to abort.
    group = file.metadata.row_group(number)
    for i in range(len(file.schema)):
        if file.schema.column(i).path in columns:
            n_bytes += group.column(i).total_uncompressed_size // max(1, group.num_rows)
    return max(1, min(_N_ROWS, _N_BYTES // max(1, n_bytes)))


def _list_values(column: Any) -> Iterator[Any]:
    """YIELDS (Any): Values in Python's types; instead of one that is none, a `BadRecord`."""
    if _is_cast(column.type):
        column = column.cast(pa.string())
    # Ten times as fast, but one that is no text is an error of all.
    if column.nbytes < MOST_BYTES and not pa.types.is_dictionary(column.type):
        with suppress(UnicodeDecodeError):
            yield from column.to_pylist()
            return
    for scalar in column:
        try:
            yield _to_python(scalar)
        except BadRecord as err:
            yield err


def _to_python(scalar: Any) -> Any:
    """RAISES (BadRecord): if it is no text, or too long to be converted."""
    value = scalar.value if pa.types.is_dictionary(scalar.type) and scalar.is_valid else scalar
    if _is_string(scalar.type) and scalar.is_valid and len(value.as_buffer()) > MOST_BYTES:
        raise BadRecord(f"its text has more than {MOST_BYTES:,} bytes")
    try:
        return value.as_py()
    except UnicodeDecodeError as err:
        raise BadRecord(f"it is no text in UTF-8 (byte {err.start})") from err


def _make(source: str, number: int, text: Any, name: Any) -> Record:
    known = None
    try:
        if isinstance(name, BadRecord):
            raise name
        known = check_id(name)
        if isinstance(text, BadRecord):
            raise text
        return Record(source, number, known, check_text(text))
    except BadRecord as err:
        shown = text if isinstance(text, str) else ""
        return Record(source, number, known, shown, problem=str(err))
