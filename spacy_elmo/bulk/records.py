"""What the parts of a job hand to each other: records, tasks, results. All of it is picklable."""

from typing import Any, Dict, List, NamedTuple, Optional

# Characters of a rejected record that are kept with its reason.
_N_KEPT = 1000


class Record(NamedTuple):
    """A text of the input, or what is wrong with it.

    source (str): its file.
    number (int): line, row or doc of the file, from 0.
    id (Optional[str]): what the input calls it.
    text (str): the text, or as much of a bad record as can be shown.
    doc (Optional[bytes]): a doc of the input, by `Doc.to_bytes`.
    problem (str): why it cannot be embedded; "" if it may be.
    """

    source: str
    number: int
    id: Optional[str] = None
    text: str = ""
    doc: Optional[bytes] = None
    problem: str = ""


class Place(NamedTuple):
    """Where reading goes on.

    file (int): number of the file.
    offset (int): in the file, as its reader counts.
    number (int): of the next record of the file.
    n_bytes (int): read of all files, as they are stored.
    """

    file: int = 0
    offset: int = 0
    number: int = 0
    n_bytes: int = 0


START = Place()
# The offset behind what is damaged: nothing more is read of the file.
GIVEN_UP = 1 << 62


class Task(NamedTuple):
    """A piece of the input that becomes one shard. It is a function of the input and the
    settings alone, whoever computes it, and how often.

    number (int): from 0.
    records (List[Record]): at least one.
    end (Place): after the last of them.
    is_careful (bool): whether records are embedded one by one, each noted beforehand: a
        process that read them was killed.
    """

    number: int
    records: List[Record]
    end: Place
    is_careful: bool = False


class Result(NamedTuple):
    """What became of a task.

    number (int): of the task.
    end (Place): of the task.
    shard (str): name of the file.
    size (int), digest (str): of the file.
    n_records (int), n_rows (int), n_tokens (int): embedded, written, and read by the biLM.
    rejects (List[Dict[str, Any]]): see `make_reject`.
    """

    number: int
    end: Place
    shard: str
    size: int
    digest: str
    n_records: int
    n_rows: int
    n_tokens: int
    rejects: List[Dict[str, Any]]


def make_reject(record: Record, reason: str) -> Dict[str, Any]:
    """record (Record): one that is set aside. reason (str): why. RETURNS (Dict[str, Any]): a line
    of the file of rejects."""
    return {
        "source": record.source,
        "record": record.number,
        "id": record.id,
        "reason": reason,
        "text": record.text[:_N_KEPT],
    }
