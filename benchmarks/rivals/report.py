"""The report on the rivals: a table for each data set, and the picture, from the files of runs."""

from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from spacy_elmo.files import read_json_object, write_file

from .inputs import MADE, MEDIUM
from .picture import Point, plot_speed
from .precision_table import format_precisions
from .precisions import RESULT as PRECISIONS
from .rows import ROWS, Row
from .runs import LONGEST, RESULTS, SKIPPED, Run, choose, read_result
from .speed import ONNX
from .speed_table import ONNX_TITLE, format_speeds, read_speeds
from .tasks import TASKS

_HEAD = """# ELMo and its rivals

What a user would take instead, with the same data, updates, task models and machine. Every
row is chosen on dev; where there are several seeds: mean ± standard deviation.
Speed is that of the whole pipeline, raw text in, tags or entities out; latency is the median of
one sentence at a time.

"""
_HEADER = ["", "dev", "test", "seeds", "tokens/s", "latency, ms"]


class Line(NamedTuple):
    """A row of a table.

    row (Row): what it is.
    results (list[dict[str, Any]]): of its runs, by seed.
    speed (dict[str, Any] | None): from `measure_task`.
    """

    row: Row
    results: list[dict[str, Any]]
    speed: dict[str, Any] | None

    def score(self, split: str) -> list[float]:
        """RETURNS (list[float]): by seed, percent."""
        return [100 * r[split][r["score"]] for r in self.results]


def write_report(work: Path, path: Path) -> None:
    """Write the page, and the picture figures/rivals.png beside it.

    work (Path): folder of the runs.
    path (Path): the page.
    """
    speeds = read_speeds(work / RESULTS)
    speed = speeds[0] if speeds else {}
    skipped = read_optional(work / RESULTS / SKIPPED).get("rows", {})
    lines = {task: collect_lines(work, task, speed) for task in TASKS}
    lines = {task: found for task, found in lines.items() if any(x.results for x in found)}
    parts = [_HEAD]
    panels = {TASKS[task].title: make_points(found) for task, found in lines.items()}
    panels = {title: points for title, points in panels.items() if points}
    if panels:
        picture = path.parent / "figures" / "rivals.png"
        plot_speed(panels, picture)
        parts.append(f"![Accuracy against speed](figures/{picture.name})\n\n")
    for task, found in lines.items():
        parts.append(format_task(task, found, skipped, speed))
    parts.append(format_speeds(speeds))
    parts.append(format_precisions(read_optional(work / RESULTS / PRECISIONS)))
    parts.append(format_conditions(work, lines, speed))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, "".join(parts).encode("utf-8"))


def read_optional(path: Path) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): a file's content; empty if there is none."""
    return read_json_object(path) if path.exists() else {}


def collect_lines(work: Path, task: str, speed: dict[str, Any]) -> list[Line]:
    """RETURNS (list[Line]): All rows, of a group the chosen one."""
    timed = speed.get("tasks", {}).get(task, {})
    lines = []
    for row in ROWS.values():
        if choose(row, task, 0, work) in (row.name, None):
            names = [path.stem.rpartition("_") for path in (work / RESULTS / task).glob("*.json")]
            # A name may begin with another row's.
            seeds = sorted(int(seed) for name, _, seed in names if name == row.name)
            results = [read_result(Run(row, task, seed), work) for seed in seeds]
            lines.append(Line(row, [r for r in results if r], timed.get(row.name)))
    return lines


def make_points(lines: list[Line]) -> list[Point]:
    """RETURNS (list[Point]): Of the rows that have accuracy and speed."""
    return [
        Point(x.row.title, x.row.family, x.speed["tokens_per_second"], mean(x.score("test")))
        for x in lines
        if x.results and x.speed
    ]


def format_task(
    task: str, lines: list[Line], skipped: dict[str, str], speed: dict[str, Any]
) -> str:
    """RETURNS (str): Title, table, and what was left out."""
    score = TASKS[task].score
    rows = [["", f"{score}, dev", *_HEADER[2:]], ["---"] * len(_HEADER)]
    missing = []
    for line in lines:
        if line.results:
            scores = [_format_scores(line.score(split)) for split in ("dev", "test")]
            seeds = str(len(line.results))
            rows.append([line.row.title, *scores, seeds, *_format_speed(line.speed)])
        else:
            missing.append(f"{line.row.title} ({skipped.get(line.row.name, 'not run yet')})")
    if onnx := speed.get("tasks", {}).get(task, {}).get(ONNX):
        rows.append([ONNX_TITLE, "-", "-", "-", *_format_speed(onnx)])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    left_out = f"Not measured: {'; '.join(missing)}.\n\n" if missing else ""
    rising = [line.row.title for line in lines if any(map(_is_rising, line.results))]
    cut = f"Still better at the last update allowed: {'; '.join(rising)}.\n\n" if rising else ""
    effort = _format_effort(task, lines)
    return f"## {TASKS[task].title}\n\n{table}\n\n{left_out}{cut}{effort}\n\n"


def _is_rising(result: dict[str, Any]) -> bool:
    steps, scores = ([point[key] for point in result["curve"]] for key in ("step", "score"))
    if not steps or steps[-1] < result["settings"]["max_steps"]:
        return False
    return scores[-1] > max(scores[:-1], default=0.0)


def _format_scores(scores: list[float]) -> str:
    spread = f" ± {stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{mean(scores):.2f}{spread}"


def _format_speed(speed: dict[str, Any] | None) -> list[str]:
    if speed is None:
        return ["-", "-"]
    least, most = min(speed["rates"]), max(speed["rates"])
    rate = f"{speed['tokens_per_second']:,.0f} ({least:,.0f} to {most:,.0f})"
    return [rate, f"{1000 * speed['latency']:.1f}"]


def _format_effort(task: str, lines: list[Line]) -> str:
    results = [result for line in lines for result in line.results]
    limits = {(r["settings"]["max_steps"], r["settings"]["patience"]) for r in results}
    effort = " or ".join(f"{n:,} updates at most, patience {p:,}" for n, p in sorted(limits))
    # On a GPU, a processor only waits.
    hours = sum(r["cpu_seconds"] for r in results if not is_of_gpu(r)) / 3600
    dates = sorted({r["date"] for r in results})
    period = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    return f"({effort}; {period}; {hours:.1f} hours of one core)"


def is_of_gpu(result: dict[str, Any]) -> bool:
    """RETURNS (bool): Whether a GPU trained it; results of before do not say what did."""
    return result.get("device", "cpu") != "cpu"


def _list_gpu_rows(lines: dict[str, list[Line]]) -> list[str]:
    """RETURNS (list[str]): A fact on the rows that were trained on a GPU, if there are any."""
    found: dict[str, list[str]] = {}
    for task, own in lines.items():
        for line in own:
            for device in {r["device"] for r in line.results if is_of_gpu(r)}:
                found.setdefault(device, []).append(f"{TASKS[task].title}, {line.row.title}")
    return [f"Trained on a GPU ({device}): {'; '.join(rows)}." for device, rows in found.items()]


def _list_choices(work: Path, lines: dict[str, list[Line]]) -> str:
    """RETURNS (str): By task, the rows of groups that were run."""
    parts = []
    for task in lines:
        runs = [Run(row, task, 0) for row in ROWS.values() if row.group]
        titles = [run.row.title for run in runs if read_result(run, work)]
        parts.append(f"{TASKS[task].title}: {', '.join(titles) or 'none'}")
    return "; ".join(parts)


def format_conditions(work: Path, lines: dict[str, list[Line]], speed: dict[str, Any]) -> str:
    """RETURNS (str): How it was made."""
    results = [r for found in lines.values() for line in found for r in line.results]
    versions: dict[str, set[str]] = {}
    for result in results:
        for name, version in result["versions"].items():
            versions.setdefault(name, set()).add(version)
    inputs = [result["settings"]["inputs"] for result in results]
    bilms = {name: {own[name] for own in inputs if name in own} for name in ("biLM", MEDIUM)}
    facts = [
        "All sides train in one thread with NumPy's matrix products, in batches of about 1,000 "
        "words, with early stopping on dev. The rows without ELMo or a transformer have spaCy's "
        "hashed word features and convolutions of width 96, as `word_features` has beside ELMo, "
        "and as the frozen transformer has here: it stands in ELMo's place, with the same word "
        "dropout. The listener of the transformer has no dropout and no norm of its own.",
        "Frozen MiniLM-L6 is cut after a layer (spacy-transformers' listeners read the last one), "
        "and what is fine-tuned has a learning rate of its own; of several that were run, the one "
        "that is best on dev with the first seed is shown; where one is named, no other was run "
        "yet: "
        f"{_list_choices(work, lines)}.",
        f"One seed where a run takes more than {LONGEST / 60:g} minutes of a core, or is not "
        "repeated yet.",
        *_list_gpu_rows(lines),
        "Versions: "
        + ", ".join(f"{name} {' or '.join(sorted(own))}" for name, own in versions.items())
        + ".",
        "; ".join(f"{name}: {', '.join(sorted(own)) or 'none'}" for name, own in bilms.items())
        + ".",
    ]
    made = read_optional(work / "inputs" / MADE)
    if "words" in made:
        facts.append(
            f"`spacy pretrain` read {made['words'] / 1e6:.1f} M words of our English text in "
            f"{made['minutes']:g} minutes of a core."
        )
        if (work / "inputs" / "floret").exists():
            facts.append(f"floret read all of our English text (epochs: {made['epochs']}).")
    if speed:
        facts.append(
            "Speed, which does not depend on what a pipeline has learned: "
            f"{speed['date']}, {speed['machine']}; {speed['turns']} turns of "
            f"{speed['tokens']:,} tokens of other text each, all pipelines in each turn, medians "
            "(and the slowest and fastest turn: some texts have a long address, to whose many "
            "pieces a transformer's batch is padded). Texts are sentences, their tokens joined by "
            "spaces; batch sizes, and `max_batch_items` of spacy-transformers, are the fastest of "
            "several on other text, so word caches have seen no more than that. The sentences "
            "that are read one at a time are the first of a turn. "
            "In all processes OpenBLAS's threads do not wait in a loop "
            "(`OPENBLAS_THREAD_TIMEOUT = 4`), and freed memory is kept."
        )
        facts += _list_others(lines, speed)
    else:
        facts.append("Speed is not measured yet.")
    body = "\n".join(f"- {fact}" for fact in facts)
    return f"## Conditions\n\n{body}\n\n{_REPRODUCE}"


def _list_others(lines: dict[str, list[Line]], speed: dict[str, Any]) -> list[str]:
    """RETURNS (list[str]): The speed of rows that are not shown."""
    facts = []
    for task, found in lines.items():
        shown = {ONNX, *(line.row.name for line in found)}
        timed = speed.get("tasks", {}).get(task, {})
        others = [
            f"{ROWS[name].title} {rates['tokens_per_second']:,.0f} tokens/s"
            for name, rates in timed.items()
            if name not in shown
        ]
        if others:
            facts.append(
                f"Speed of rows that are not shown, {TASKS[task].title}: {', '.join(others)}."
            )
    return facts


_REPRODUCE = """What each run gave is in `benchmarks/results/rivals`; where that folder is copied to
the `results` of `--vars.rivals`, only runs that are missing are made, and speed is measured of
pipelines that were trained there alone. To make all anew, with the task data as in `project.yml`,
and the packages named in `benchmarks/rivals.py`:

```bash skip
python -m spacy project run rivals . --vars.data DATA --vars.english_text TEXT \\
    --vars.transformer MINILM --vars.vectors PIPELINE
```
"""
