"""Tables and a picture of accuracy and speed, from the files of the runs."""

from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from spacy_elmo.drawing import save_figure
from spacy_elmo.files import read_json_object

from .rows import DEPTHS, ROWS, TASKS, TIMED, Row
from .runs import RESULTS, SKIPPED, Run, choose, read_result
from .speed import ONNX, PRECISION_RESULT, RESULT

STYLES = {"tok2vec": ("#0072B2", "s"), "ELMo": ("#D55E00", "o"), "transformer": ("#009E73", "^")}
ONNX_TITLE = "MiniLM-L6 int8, onnxruntime, vectors alone"
# Speed is compared with the whole transformer.
BASE = f"minilm_{max(DEPTHS)}"


class Line(NamedTuple):
    """row (Row): of the table. results (list[dict]): of its runs, by seed. speed (dict | None):
    from `measure_task`."""

    row: Row
    results: list[dict[str, Any]]
    speed: dict[str, Any] | None

    def score(self, split: str) -> list[float]:
        """RETURNS (list[float]): by seed, percent."""
        return [100 * r[split][r["score"]] for r in self.results]


def write_report(work: Path, path: Path) -> None:
    """Write a page, and the picture figures/rivals.png beside it.

    work (Path): folder of the runs.
    path (Path): the page.
    """
    results = work / RESULTS
    speeds = [read_optional(p) for p in (results / RESULT, *sorted(results.glob("speed_*.json")))]
    skipped = read_optional(results / SKIPPED).get("rows", {})
    parts = ["# ELMo and other vectors"]
    panels = {}
    for task in TASKS:
        lines = collect_lines(work, task, speeds[0])
        if any(line.results for line in lines):
            parts += format_task(task, lines, skipped)
            panels[TASKS[task].title] = [line for line in lines if line.results and line.speed]
    panels = {title: lines for title, lines in panels.items() if lines}
    if panels:
        plot_speed(panels, path.parent / "figures" / "rivals.png")
        parts.append("![Accuracy against speed](figures/rivals.png)")
    parts += format_speeds([speed for speed in speeds if speed])
    parts += format_precisions(read_optional(results / PRECISION_RESULT))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n", "utf-8")


def read_optional(path: Path) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): a file's content; empty if it does not exist."""
    return read_json_object(path) if path.exists() else {}


def collect_lines(work: Path, task: str, speed: dict[str, Any]) -> list[Line]:
    """RETURNS (list[Line]): all rows; of a group the one that is best on dev."""
    timed = speed.get("tasks", {}).get(task, {})
    lines = []
    for row in ROWS.values():
        if choose(row, task, 0, work) in (row.name, None):
            found = sorted((work / RESULTS / task).glob(f"{row.name}_[0-9]*.json"))
            seeds = [p.stem.removeprefix(f"{row.name}_") for p in found]
            runs = [Run(row, task, int(seed)) for seed in seeds if seed.isdecimal()]
            results = [result for run in runs if (result := read_result(run, work))]
            lines.append(Line(row, results, timed.get(row.name)))
    return lines


def format_task(task: str, lines: list[Line], skipped: dict[str, str]) -> list[str]:
    """RETURNS (list[str]): title, table, and the rows that were left out."""
    header = ["", f"{TASKS[task].score}, dev", "test", "seeds", "tokens/s", "latency, ms"]
    rows, missing = [], []
    for line in lines:
        if line.results:
            scores = [format_scores(line.score(split)) for split in ("dev", "test")]
            seeds = str(len(line.results))
            rows.append([line.row.title, *scores, seeds, *format_speed(line.speed)])
        else:
            missing.append(f"{line.row.title} ({skipped.get(line.row.name, 'not run yet')})")
    left_out = [f"Not measured: {'; '.join(missing)}."] if missing else []
    return [f"## {TASKS[task].title}", format_table(header, rows), *left_out]


def format_scores(scores: list[float]) -> str:
    """RETURNS (str): mean, and the standard deviation of several."""
    spread = f" ± {stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{mean(scores):.2f}{spread}"


def format_speed(speed: dict[str, Any] | None) -> list[str]:
    """RETURNS (list[str]): tokens per second with their range, and latency in milliseconds."""
    if speed is None:
        return ["-", "-"]
    least, most = min(speed["rates"]), max(speed["rates"])
    rate = f"{speed['tokens_per_second']:,.0f} ({least:,.0f} to {most:,.0f})"
    return [rate, f"{1000 * speed['latency']:.1f}"]


def format_table(header: list[str], rows: list[list[str]]) -> str:
    """RETURNS (str): Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_speeds(speeds: list[dict[str, Any]]) -> list[str]:
    """speeds (list[dict[str, Any]]): of speed.json, and of speed_NAME.json from other machines.
    RETURNS (list[str]): a table for each data set, with the ratio to the whole transformer."""
    titles = {name: row.title for name, row in ROWS.items()} | {ONNX: ONNX_TITLE}
    tables = ["## Speed by machine, and times MiniLM-L6 with all layers"] if speeds else []
    for task in TIMED:
        columns = [speed["tasks"].get(task, {}) for speed in speeds]
        rows = []
        for name, title in titles.items():
            if any(name in column for column in columns):
                rows.append([title, *(format_ratio(column, name) for column in columns)])
        if rows:
            heads = [f"{speed['machine'].split(',')[0]}, {speed['date']}" for speed in speeds]
            tables.append(format_table([TASKS[task].title, *heads], rows))
    return tables


def format_ratio(column: dict[str, Any], name: str, base: str = BASE) -> str:
    """RETURNS (str): tokens per second, and the ratio to those of a base."""
    if name not in column:
        return "-"
    rate = column[name]["tokens_per_second"]
    times = f" ({rate / column[base]['tokens_per_second']:.1f})" if base in column else ""
    return f"{rate:,.0f}{times}"


def format_precisions(measured: dict[str, Any]) -> list[str]:
    """measured (dict[str, Any]): from `measure_precisions`. RETURNS (list[str]): a table for each
    data set. Test scores are those of fully trained pipelines."""
    tables = ["## Lower precision"] if measured.get("tasks") else []
    for task, found in measured.get("tasks", {}).items():
        rows = []
        for name, row in found.items():
            title, precision = ROWS[name.split()[0]].title, name.split()[1]
            test = f"{row['test']:.2f}" if row["is_trained"] else "-"
            rate = format_ratio(found, name, f"{BASE} fp32")
            rows.append([title, precision, test, rate, f"{1000 * row['latency']:.1f}"])
        header = [TASKS[task].title, "products", "test", "tokens/s (times MiniLM)", "latency, ms"]
        tables.append(format_table(header, rows))
    return tables


def plot_speed(panels: dict[str, list[Line]], path: Path) -> None:
    """Draw test scores against tokens per second, with a label at each point."""
    figure = Figure(figsize=(10, 4.6 * len(panels)), layout="constrained")
    all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (title, lines) in zip(all_axes, panels.items()):
        for family, (color, marker) in STYLES.items():
            own = [line for line in lines if line.row.family == family and line.speed]
            xs = [line.speed["tokens_per_second"] for line in own if line.speed]
            ys = [mean(line.score("test")) for line in own]
            axes.scatter(xs, ys, c=color, marker=marker, s=55, label=family)
            for line, x, y in zip(own, xs, ys):
                offset = {"xytext": (6, 3), "textcoords": "offset points"}
                axes.annotate(line.row.title, (x, y), fontsize=8, **offset)
        axes.set_xscale("log")
        axes.set(title=title, xlabel="tokens per second (log scale)", ylabel="test score, %")
        axes.grid(alpha=0.3)
        axes.legend()
    save_figure(figure, path)
