"""What to do with a task whose process was killed."""

from collections import Counter
from pathlib import Path
from typing import Counter as Count
from typing import Dict, Optional

from ..errors import Errors
from .records import Task
from .task_worker import name_marker

# A process may be killed for reasons of others: a node that goes, a neighbour who needs memory.
_N_PLAIN = 2
_MOST_DEATHS = 4
KILLED = "the process that embedded it was killed, as by a system that is out of memory"


class Retries:
    """Count deaths, and find out which record is to blame.

    output (Path): folder of the job.
    """

    def __init__(self, output: Path) -> None:
        self.output = output
        self._n_deaths: Count[int] = Counter()
        # Task -> record by which its process was killed last.
        self._suspects: Dict[int, int] = {}

    def after_death(self, task: Task) -> Task:
        """Change a task so that it can be computed.

        task (Task): whose process was killed.
        RETURNS (Task): the same; after a second death to be embedded record by record, and
            without a record that killed its process twice, alone.
        RAISES (ValueError): EL251 if processes are killed whatever they embed.
        """
        i = self._take_marker(task) if task.is_careful else None
        if i is not None:
            if self._suspects.get(task.number) == i:
                records = list(task.records)
                records[i] = records[i]._replace(problem=KILLED)
                self._n_deaths[task.number] = _N_PLAIN
                return task._replace(records=records)
            # Nodes go at any record: the next one may be another.
            self._suspects[task.number] = i
        self._n_deaths[task.number] += 1
        if self._n_deaths[task.number] > _MOST_DEATHS:
            number = self._n_deaths[task.number]
            raise ValueError(Errors.EL251.format(number=number, task=task.number))
        return task._replace(is_careful=self._n_deaths[task.number] >= _N_PLAIN)

    def _take_marker(self, task: Task) -> Optional[int]:
        """RETURNS (Optional[int]): Index of the record that was embedded; None before the first."""
        marker = name_marker(self.output, task.number)
        number = marker.read_text() if marker.exists() else ""
        marker.unlink(missing_ok=True)
        return int(number) if number else None
