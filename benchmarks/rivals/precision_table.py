"""The section of rivals.md on shorter products."""

from typing import Any

from .inputs import DEPTHS
from .precisions import FULL
from .rows import ROWS
from .tasks import TASKS

# What the others are compared with: all of the transformer, as it comes.
BASE = f"minilm_{max(DEPTHS)} {FULL}"
_HEAD = """## Shorter products

Pipelines of the same configs, trained anew (so their scores may differ a little from those
above), with shorter numbers in the matrix products of what makes the
vectors: for ELMo a setting (`[components.elmo.model] precision`), for the transformer, to which
spaCy gives none on a processor, its weights in bfloat16. Test is the score of the pipeline with
these products.

"""


def format_precisions(measured: dict[str, Any]) -> str:
    """measured (dict[str, Any]): from `measure_precisions`; empty if there is none. RETURNS (str):
    the section."""
    tables = [format_task(task, rows) for task, rows in measured.get("tasks", {}).items()]
    if not tables:
        return ""
    how = (
        f"({measured['date']}, {measured['machine']}; {measured['turns']} turns of "
        f"{measured['tokens']:,} tokens, medians, in another run than the tables above: the "
        "shorter the turns, the fewer words ELMo's cache knows)\n\n"
    )
    return _HEAD + "".join(tables) + how


def format_task(task: str, rows: dict[str, dict[str, Any]]) -> str:
    """RETURNS (str): A table."""
    base = rows.get(BASE)
    lines = [
        [TASKS[task].title, "products", "test", "tokens/s", "latency, ms", f"times {_title(BASE)}"],
        ["---"] * 6,
    ]
    for name, row in rows.items():
        rate = row["tokens_per_second"]
        times = f"{rate / base['tokens_per_second']:.1f}" if base else "-"
        test = f"{row['test']:.2f}" if row["is_trained"] else "-"
        latency = f"{1000 * row['latency']:.1f}"
        lines.append([_title(name), name.split()[1], test, f"{rate:,.0f}", latency, times])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"


def _title(name: str) -> str:
    return ROWS[name.split()[0]].title
