"""The section of rivals.md on other machines."""

from pathlib import Path
from typing import Any

from spacy_elmo.files import read_json_object

from .inputs import DEPTHS
from .rows import ROWS
from .speed import ONNX, RESULT
from .tasks import TASKS, TIMED

ONNX_TITLE = "MiniLM-L6 int8, onnxruntime, vectors alone"
# What the others are compared with: all of the transformer.
BASE = f"minilm_{max(DEPTHS)}"
_HEAD = """## On several machines

Speed of the same pipelines, tokens/s, and in brackets how many times that of {base}; each
column is of one run of `benchmarks/rivals.py speed`, the first that of the tables above (another
machine's `speed.json` is kept as `speed_NAME.json` beside it).

"""


def read_speeds(results: Path) -> list[dict[str, Any]]:
    """Read the speeds that were measured on several machines.

    results (Path): folder with speed.json, and files of other machines, speed_NAME.json.
    RETURNS (list[dict[str, Any]]): of `write_measured`; speed.json is the first.
    """
    stem = Path(RESULT).stem
    paths = [results / RESULT, *sorted(results.glob(f"{stem}_*.json"))]
    return [read_json_object(path) for path in paths if path.exists()]


def format_speeds(speeds: list[dict[str, Any]]) -> str:
    """speeds (list[dict[str, Any]]): from `read_speeds`. RETURNS (str): the section; empty for
    one machine."""
    if len(speeds) < 2:
        return ""
    timed = [task for task in TIMED if any(task in speed["tasks"] for speed in speeds)]
    tables = [_format_task(task, speeds) for task in timed]
    return _HEAD.format(base=ROWS[BASE].title) + "\n\n".join(tables) + "\n\n"


def _format_task(task: str, speeds: list[dict[str, Any]]) -> str:
    columns = [speed["tasks"].get(task, {}) for speed in speeds]
    heads = [f"{speed['machine'].split(',')[0]}, {speed['date']}" for speed in speeds]
    titles = {name: row.title for name, row in ROWS.items()} | {ONNX: ONNX_TITLE}
    lines = [[TASKS[task].title, *heads], ["---"] * (1 + len(heads))]
    for name, title in titles.items():
        if any(name in column for column in columns):
            lines.append([title, *(_format_cell(column, name) for column in columns)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _format_cell(column: dict[str, Any], name: str) -> str:
    if name not in column:
        return "-"
    rate = column[name]["tokens_per_second"]
    times = f" ({rate / column[BASE]['tokens_per_second']:.1f})" if BASE in column else ""
    return f"{rate:,.0f}{times}"
