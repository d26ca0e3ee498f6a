"""Read the records of a job: lines of text or JSON, rows of Parquet, docs of a DocBin.

A line or row that cannot be embedded becomes a record with a problem; reading goes on.
"""

import io
import json
import math
import sys
from contextlib import nullcontext, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple
from uuid import UUID

from spacy.vocab import Vocab

from ..errors import Errors
from ..files import is_system_error
from ..search.search_index import is_index_folder
from ..text.corpus import STDIN
from ..text.formats import load_docbin, require_line_feeds
from ..text.text_files import (
    BOM,
    COMPRESSIONS,
    DAMAGED,
    find_files,
    get_format,
    is_hidden,
    open_binary,
)
from ..utils import show_names, show_path, show_reason
from .output import is_job_folder, pa, pq, require_arrow
from .pipeline import EmbedSettings

# Bytes of a text. One that has more is no text of a person, and would fill the memory.
MOST_BYTES = 1 << 24
# Records of a shard, at most.
_MOST_RECORDS = 100_000
# Rows of Parquet that are decoded at a time, and bytes of a column that are read ahead.
_N_ROWS = 128
_BUFFER = 1 << 20
# What docs of the input keep: no user data, which may be anything.
_EXCLUDED = ("tensor", "user_data", "user_data_keys", "user_data_values")


class BadRecord(Exception):
    """What is wrong with a record; its text becomes the reason."""


class Record(NamedTuple):
    """A text of the input."""

    source: str
    # Line, row or doc of the file, from 0.
    number: int
    id: Optional[str] = None
    # As much of a bad record as can be shown.
    text: str = ""
    # A doc of the input, by `Doc.to_bytes`.
    doc: Optional[bytes] = None
    # Why it cannot be embedded.
    problem: str = ""


class Task(NamedTuple):
    """The records of one shard, a function of the input and the settings; and the bytes of the
    input read so far, as it is stored."""

    number: int
    records: List[Record]
    n_bytes: int

    def digest(self) -> str:
        """Digest of the records."""
        running = blake2b(digest_size=16)
        for record in self.records:
            running.update(repr(record._replace(doc=None)).encode("utf-8", "backslashreplace"))
        return running.hexdigest()


def find_inputs(text: str, output: Path) -> List[Path]:
    """Find the files of a job, sorted by name. Below a folder, names that begin with a dot or an
    underscore are left out, and so are folders of jobs and of indexes, and the output."""
    if text == STDIN:
        return [Path(STDIN)]

    def is_excluded(path: Path) -> bool:
        # As _SUCCESS, which other systems write beside their files.
        is_marked = any(part.startswith("_") for part in path.parts)
        return is_marked or is_hidden_or_written(Path(text), path)

    return find_files(text, sorted(_READERS), is_excluded, output)


def is_hidden_or_written(folder: Path, path: Path) -> bool:
    """Whether a file, relative to a folder of texts, is hidden, or a part of a job's output or of
    an index."""
    parents = [folder / parent for parent in path.parents][:-1]
    return is_hidden(path) or any(is_job_folder(p) or is_index_folder(p) for p in parents)


def check_inputs(files: List[Path], settings: EmbedSettings) -> None:
    """Check what would stop a job in its middle: that the files can be opened, columns of Parquet,
    missing packages, and text whose lines end with carriage returns alone."""
    for path in files:
        if str(path) == STDIN:
            continue
        if get_format(path) == "parquet":
            _check_parquet(path, settings)
            continue
        # Damage is reported as a record when the file is read.
        with open_binary(path) as file, suppress(*DAMAGED):
            if get_format(path) == "txt":
                require_line_feeds(file.readline(MOST_BYTES), path)


def plan_tasks(
    files: List[Path], settings: EmbedSettings, input_format: str = "txt"
) -> Iterator[Task]:
    """Divide the records into tasks of at least `shard_chars` characters. Only one is held in
    memory."""
    records: List[Record] = []
    number = n_chars = n_bytes = 0
    for record, n_bytes in _read_all(files, settings, input_format):
        records.append(record)
        n_chars += len(record.text)
        if n_chars >= settings.shard_chars or len(records) >= _MOST_RECORDS:
            yield Task(number, records, n_bytes)
            number, records, n_chars = number + 1, [], 0
    if records:
        yield Task(number, records, n_bytes)


# A reader yields records, and the bytes of the file, as it is stored, read so far.
Reader = Callable[[Path, EmbedSettings], Iterator[Tuple[Record, int]]]


def _read_all(
    files: List[Path], settings: EmbedSettings, input_format: str
) -> Iterator[Tuple[Record, int]]:
    """Read the records of all files, and the stored bytes read so far."""
    n_before = 0
    for path in files:
        is_stdin = str(path) == STDIN
        read = _READERS[input_format if is_stdin else get_format(path)]
        size = 0 if is_stdin else path.stat().st_size
        number = 0
        try:
            for record, n_bytes in read(path, settings):
                number = record.number + 1
                yield record, n_before + n_bytes
        # Of damaged content, libraries raise errors of all kinds.
        except Exception as err:
            if is_system_error(err) or isinstance(err, MemoryError):
                raise
            problem = f"the file is damaged from here on: {show_reason(err)}"
            yield Record(show_path(path), number, problem=problem), n_before + size
        n_before += size


# ---- lines


def read_text_lines(path: Path, settings: EmbedSettings) -> Iterator[Tuple[Record, int]]:
    """Read text in UTF-8: each line that is not empty is a record."""
    return _read_lines(path, lambda line: (line, None))


def read_json_lines(path: Path, settings: EmbedSettings) -> Iterator[Tuple[Record, int]]:
    """Read JSON objects, one in a line, with a text and, if they have one, an id."""

    def parse(line: str) -> Tuple[Any, Any]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as err:
            raise BadRecord(f"it is no JSON: {err}") from err
        if not isinstance(value, dict) or settings.text_key not in value:
            raise BadRecord(f"it is no JSON object with a '{settings.text_key}'")
        return value[settings.text_key], value.get(settings.id_key)

    return _read_lines(path, parse)


def _read_lines(
    path: Path, parse: Callable[[str], Tuple[Any, Any]]
) -> Iterator[Tuple[Record, int]]:
    source, number = show_path(path), -1
    # None if it was closed before Python began.
    stdin = getattr(sys.stdin, "buffer", None) or io.BytesIO()
    is_stdin = str(path) == STDIN
    with (
        nullcontext(stdin) if is_stdin else path.open("rb") as raw,
        nullcontext(raw) if is_stdin else open_binary(path, raw) as file,
    ):
        while line := file.readline(MOST_BYTES + 1):
            number += 1
            if len(line) > MOST_BYTES and not line.endswith(b"\n"):
                while (rest := file.readline(MOST_BYTES)) and not rest.endswith(b"\n"):
                    pass
            if line.strip():
                n_bytes = raw.tell() if raw.seekable() else 0
                yield _make_record(source, number, line, parse), n_bytes


def _make_record(
    source: str, number: int, line: bytes, parse: Callable[[str], Tuple[Any, Any]]
) -> Record:
    name = None
    try:
        if len(line) > MOST_BYTES:
            raise BadRecord(f"its line has more than {MOST_BYTES:,} bytes")
        text, value = parse(line.decode("utf-8").strip(f"\r\n{BOM}"))
        name = check_id(value)
        return Record(source, number, name, check_text(text))
    except UnicodeDecodeError as err:
        problem = f"it is not text in UTF-8 (byte {err.start} of the line)"
    except BadRecord as err:
        problem = show_reason(err)
    shown = line[:4096].decode("utf-8", "backslashreplace")
    return Record(source, number, name, shown, problem=problem)


def check_text(text: Any, what: str = "text") -> str:
    """Check that a value of a record is a text."""
    if not isinstance(text, str):
        raise BadRecord(f"its {what} is {type(text).__name__}, expected a string")
    if "\0" in text:
        raise BadRecord(f"its {what} contains NUL (U+0000)")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as err:
        code = f"U+{ord(text[err.start]):04X}"
        raise BadRecord(f"its {what} contains a surrogate ({code}), not a character") from err
    return text


def check_id(value: Any) -> Optional[str]:
    """Write the id of a record, which may be a text, a number or a UUID, as a text."""
    if isinstance(value, float):
        # pandas makes integers floats if one is missing.
        value = None if math.isnan(value) else int(value) if value.is_integer() else repr(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, UUID)):
        raise BadRecord(f"its id is {type(value).__name__}, expected a string or a number")
    return check_text(str(value), "id")


# ---- docs


def read_docs(path: Path, settings: EmbedSettings) -> Iterator[Tuple[Record, int]]:
    """Read the docs of a .spacy file, which is loaded whole."""
    docs = load_docbin(path)
    size = path.stat().st_size / max(1, len(docs))
    for i, doc in enumerate(docs.get_docs(Vocab(strings=list(docs.strings)))):
        try:
            text, content = check_text(doc.text), doc.to_bytes(exclude=_EXCLUDED)
            record = Record(show_path(path), i, None, text, content)
        except BadRecord as err:
            record = Record(show_path(path), i, problem=str(err))
        yield record, int((i + 1) * size)


# ---- Parquet


def read_parquet(path: Path, settings: EmbedSettings) -> Iterator[Tuple[Record, int]]:
    """Read the rows of a Parquet file, some at a time."""
    source, row = show_path(path), 0
    # As a dictionary, a text that many rows have is in memory once.
    options = {"buffer_size": _BUFFER, "read_dictionary": [settings.text_key]}
    with pq.ParquetFile(path, **options) as file:
        n_rows = file.metadata.num_rows
        size = path.stat().st_size / max(1, n_rows)
        names = {settings.text_key, settings.id_key} & set(file.schema_arrow.names)
        for batch in file.iter_batches(_N_ROWS, columns=sorted(names)):
            texts, ids = batch.column(settings.text_key), pa.nulls(len(batch))
            if settings.id_key in names:
                ids = batch.column(settings.id_key)
            # Arrow writes them as text without a loss; Python's own types are less exact.
            if pa.types.is_temporal(ids.type) or pa.types.is_decimal(ids.type):
                ids = ids.cast(pa.string())
            for text, name in zip(texts, ids):
                row += 1
                yield _read_row(source, row - 1, text, name), int(row * size)
    # Arrow passes over pages that damage has made empty.
    if row != n_rows:
        raise ValueError(f"{row} rows were found, {n_rows} expected")


def _read_row(source: str, number: int, text: Any, name: Any) -> Record:
    known = None
    try:
        known = check_id(_to_python(name))
        return Record(source, number, known, check_text(_to_python(text)))
    except BadRecord as err:
        return Record(source, number, known, problem=str(err))


def _to_python(scalar: Any) -> Any:
    value = scalar.value if pa.types.is_dictionary(scalar.type) and scalar.is_valid else scalar
    if _is_string(scalar.type) and scalar.is_valid and len(value.as_buffer()) > MOST_BYTES:
        raise BadRecord(f"its text has more than {MOST_BYTES:,} bytes")
    try:
        return value.as_py()
    except UnicodeDecodeError as err:
        raise BadRecord(f"it is not text in UTF-8 (byte {err.start})") from err


def _check_parquet(path: Path, settings: EmbedSettings) -> None:
    """Refuse a file that has no column of texts, or is compressed once more. A damaged one
    passes."""
    if path.suffix in COMPRESSIONS:
        problem = f"it is compressed as a whole; decompress it to '{path.stem}'"
        raise ValueError(Errors.EL103.format(path=path, error=problem))
    require_arrow(path)
    path.open("rb").close()
    try:
        schema = pq.read_schema(path)
        columns = list(zip(schema.names, schema.types))
    # Arrow's own errors, and names that are not in UTF-8.
    except Exception:
        return
    texts = [kind for name, kind in columns if name == settings.text_key]
    if len(texts) != 1 or not _is_string(texts[0]):
        known = show_names(f"{name} ({kind})" for name, kind in columns)
        problem = (
            f"expected a column '{settings.text_key}' of strings (`--text-key`), found: {known}"
        )
        raise ValueError(Errors.EL103.format(path=path, error=problem))


def _is_string(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return is_text or pa.types.is_string_view(kind)


_READERS: Dict[str, Reader] = {
    "jsonl": read_json_lines,
    "parquet": read_parquet,
    "spacy": read_docs,
    "txt": read_text_lines,
}
