"""Records of Parquet files (extra "bulk") and of DocBins. See `record_readers`."""

from pathlib import Path
from typing import Any, Iterator, List

from spacy.attrs import ORTH
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from ..errors import Errors
from ..text.docbins import load_docbin
from ..util.showing import show_names, show_reason
from .arrow import pa, pq, require_arrow
from .record_readers import BadRecord, Item, Keys, check_id, check_text, show_path
from .records import GIVEN_UP, Place, Record

_N_ROWS = 1024
# What docs of the input keep: no user data, which may be anything.
_EXCLUDED = ("tensor", "user_data", "user_data_keys", "user_data_values")


def read_parquet(path: Path, start: Place, keys: Keys) -> Iterator[Item]:
    """Read rows of a Parquet file, some at a time.

    path (Path): the file.
    start (Place): its offset is a row.
    keys (Keys): columns; that of ids may be missing.
    YIELDS (Item): as `record_readers`.
    RAISES (OSError): if it cannot be read.
    """
    end = start
    try:
        with pq.ParquetFile(path) as file:
            for record, end in _read_rows(file, path, start, keys):
                yield record, end
    except OSError as err:
        # Arrow raises these for damaged content, too, without the number of a system's error.
        if err.errno is not None:
            raise
        yield _give_up(path, end, err)
    # Arrow's own errors are ValueErrors, NotImplementedErrors and others.
    except Exception as err:
        yield _give_up(path, end, err)


def _give_up(path: Path, place: Place, err: Exception) -> Item:
    """RETURNS (Item): The rest of a damaged file, as one bad record."""
    problem = f"the file is damaged from here on: {show_reason(err)}"
    record = Record(show_path(path), place.number, problem=problem)
    return record, place._replace(offset=GIVEN_UP, number=place.number + 1)


def require_text_column(path: Path, keys: Keys) -> None:
    """path (Path): a Parquet file. keys (Keys): columns. RAISES (ValueError): EL240 without
    pyarrow, EL250 if there is no column of texts; a damaged file is for `read_parquet` to tell."""
    require_arrow(path)
    try:
        names = pq.read_schema(path).names
    except pa.ArrowInvalid:
        return
    if keys.text not in names:
        raise ValueError(Errors.EL250.format(path=path, key=keys.text, known=show_names(names)))


def _read_rows(file: Any, path: Path, start: Place, keys: Keys) -> Iterator[Item]:
    names = file.schema_arrow.names
    columns = [keys.text, *({keys.id} & set(names))]
    groups, row = _find_groups(file, start.offset)
    size = path.stat().st_size / max(1, file.metadata.num_rows)
    for batch in file.iter_batches(_N_ROWS, row_groups=groups, columns=columns):
        texts = batch.column(keys.text).to_pylist()
        ids = batch.column(keys.id).to_pylist() if keys.id in names else [None] * len(texts)
        for text, name in zip(texts, ids):
            row += 1
            if row > start.offset:
                place = Place(start.file, row, row, start.n_bytes + int(row * size))
                yield _make(path, row - 1, text, name), place


def _find_groups(file: Any, first: int) -> Any:
    """RETURNS (Tuple[List[int], int]): Row groups from the one with a row on, and the row that
    they begin with."""
    row = 0
    for group in range(file.num_row_groups):
        n_rows = file.metadata.row_group(group).num_rows
        if row + n_rows > first:
            return list(range(group, file.num_row_groups)), row
        row += n_rows
    return [], row


def _make(path: Path, number: int, text: Any, name: Any) -> Record:
    source = show_path(path)
    try:
        return Record(source, number, check_id(name), check_text(text))
    except BadRecord as err:
        shown = text if isinstance(text, str) else repr(text)[:100]
        return Record(source, number, text=shown, problem=str(err))


def read_docs(path: Path, start: Place, keys: Keys) -> Iterator[Item]:
    """Read the docs of a DocBin, which has to be loaded whole. User data is left out.

    path (Path): a .spacy file.
    start (Place): its offset is a doc.
    keys (Keys): not used.
    YIELDS (Item): as `record_readers`.
    RAISES (OSError): if it cannot be read.
    """
    source = show_path(path)
    try:
        docs = load_docbin(path)
        vocab = Vocab(strings=list(docs.strings))
    except OSError:
        raise
    # Any error may come of a file of another kind.
    except Exception as err:
        yield _give_up(path, start, err)
        return
    size = path.stat().st_size / max(1, len(docs))
    for i in range(start.offset, len(docs)):
        place = Place(start.file, i + 1, i + 1, start.n_bytes + int((i + 1) * size))
        yield _read_doc(source, docs, i, vocab), place


def _read_doc(source: str, docs: DocBin, i: int, vocab: Vocab) -> Record:
    one = DocBin(attrs=[ORTH])
    one.attrs = docs.attrs
    columns: List[str] = ["tokens", "spaces", "cats", "flags", "span_groups"]
    try:
        for name in columns:
            setattr(one, name, getattr(docs, name)[i : i + 1])
        (doc,) = one.get_docs(vocab)
        return Record(source, i, None, check_text(doc.text), doc.to_bytes(exclude=_EXCLUDED))
    except BadRecord as err:
        return Record(source, i, problem=str(err))
    # As above.
    except Exception as err:
        return Record(source, i, problem=f"the doc is damaged: {show_reason(err)}")
