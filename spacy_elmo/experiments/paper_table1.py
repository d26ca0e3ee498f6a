"""Table 1 of Peters et al. 2018 beside the same made with this package."""

from statistics import mean
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from .report_blocks import Table
from .results import Result
from .variants import find_baseline


class PaperRow(NamedTuple):
    """task (str), baseline (float), with_elmo (float): of the paper's table, test. seeds (int):
    that these are means of."""

    task: str
    baseline: float
    with_elmo: float
    seeds: int = 1


# By the component that does the task here.
_PAPER = {
    "elmo_qa": PaperRow("SQuAD, F1", 81.1, 85.8),
    "elmo_entailment": PaperRow("SNLI, accuracy", 88.0, 88.7, seeds=5),
    "elmo_srl": PaperRow("semantic roles, F1", 81.4, 84.6),
    "elmo_coref": PaperRow("coreference, F1", 67.2, 70.4),
    "ner": PaperRow("entities, F1", 90.15, 92.22, seeds=5),
    "textcat": PaperRow("sentiment of five classes, accuracy", 51.4, 54.7, seeds=5),
}
_HEADER = ("", "baseline", "+ ELMo", "absolute", "fewer errors", "seeds")


class TaskRows(NamedTuple):
    """component (str): that does a task. rows (List[Tuple[str, ...]]): what it gains."""

    component: str
    rows: List[Tuple[str, ...]]


def make_table1(tasks: Sequence[TaskRows]) -> Table:
    """tasks (Sequence[TaskRows]): from `describe_task`. RETURNS (Table): all of them, in the
    order of the paper; behind those of a component the paper's row, whose baselines all have
    static vectors."""
    rows: List[Tuple[str, ...]] = []
    for component, paper in _PAPER.items():
        ours = [task for task in tasks if task.component == component]
        if ours:
            gain = _format_gain(paper.baseline, paper.with_elmo)
            rows += [row for task in ours for row in task.rows]
            rows.append((f"the paper: {paper.task}", *gain, str(paper.seeds)))
    rows += [row for task in tasks if task.component not in _PAPER for row in task.rows]
    return Table(_HEADER, rows)


def describe_task(result: Result) -> TaskRows:
    """Gather what a task gains.

    result (Result): of the suite "vectors".
    RETURNS (TaskRows): our gain over word features, and that over static vectors.
    """
    return TaskRows(str(result["settings"]["component"]), _make_rows(result))


def _make_rows(result: Result) -> List[Tuple[str, ...]]:
    rows: Dict[str, Dict[str, Any]] = {row["variant"]: row for row in result["rows"]}
    split = "test" if result["rows"][0]["test"] else "dev"
    made = []
    for name, beside in ("elmo", ""), ("elmo_vectors", ", static vectors"):
        baseline = rows.get(find_baseline(name))
        if name in rows and baseline:
            gain = _format_gain(mean(baseline[split]), mean(rows[name][split]))
            seeds = str(len(rows[name]["seeds"]))
            made.append((f"{result['title']}{beside}", *gain, seeds))
    return made


def _format_gain(baseline: float, with_elmo: float) -> Tuple[str, ...]:
    fewer, _ = compare(with_elmo, baseline)
    return f"{baseline:.2f}", f"{with_elmo:.2f}", f"{with_elmo - baseline:+.2f}", fewer


def compare(score: float, baseline: float) -> Tuple[str, str]:
    """score, baseline (float): percent. RETURNS (Tuple[str, str]): Share of errors that are gone,
    and ratio of the scores; a perfect or an empty baseline has nothing to compare with."""
    fewer = f"{(score - baseline) / (100 - baseline):.0%}" if baseline < 100 else "-"
    return fewer, f"{score / baseline:.2f}" if baseline else "-"
