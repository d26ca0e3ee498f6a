"""Cut the input into tasks."""

from pathlib import Path
from typing import Collection, Iterator, List, Sequence

from .bulk_inputs import read_all
from .bulk_settings import BulkSettings
from .record_readers import Keys
from .records import START, Place, Record, Task

# However short they are.
_MOST_RECORDS = 100_000


def plan_tasks(
    files: List[Path],
    settings: BulkSettings,
    *,
    first: int = 0,
    start: Place = START,
    done: Collection[int] = (),
    sources: Sequence[str] = (),
) -> Iterator[Task]:
    """Cut the records into tasks of at least `shard_chars` characters.

    files (List[Path]): of the job.
    settings (BulkSettings): of the job.
    first (int): number of the first task.
    start (Place): where it begins.
    done (Collection[int]): numbers of tasks to leave out.
    sources (Sequence[str]): see `read_all`.
    YIELDS (Task): as they are read: no more than one is held in memory.
    RAISES: as the readers.
    """
    records: List[Record] = []
    n_chars = 0
    end = start
    keys = Keys(settings.text_key, settings.id_key)
    for record, end in read_all(files, start, keys, sources):
        records.append(record)
        n_chars += len(record.text)
        if n_chars >= settings.shard_chars or len(records) >= _MOST_RECORDS:
            if first not in done:
                yield Task(first, records, end)
            records, n_chars, first = [], 0, first + 1
    if records and first not in done:
        yield Task(first, records, end)


def cut_batches(records: List[Record], n_chars: int) -> Iterator[List[Record]]:
    """records (List[Record]): of a task. n_chars (int): at least. YIELDS (List[Record]): parts
    that have so many characters, but for the last."""
    batch: List[Record] = []
    n_left = n_chars
    for record in records:
        batch.append(record)
        n_left -= len(record.text)
        if n_left <= 0:
            yield batch
            batch, n_left = [], n_chars
    if batch:
        yield batch
