"""Results of experiments: JSON files with their origin, and rows of tables from several runs."""

import math
import platform
import time
from datetime import date
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Dict, List, Optional, Sequence

from ..files import write_json
from .variants import Variant

# Points that a doubling of the training set should bring.
_LEAST_GAIN = 0.5
# Content of the file of a run or an experiment.
Result = Dict[str, Any]


def write_result(path: Path, experiment: str, title: str, content: Dict[str, Any]) -> None:
    """Write the result of an experiment, such as "gain" on data that is called `title`, for
    projects/paper/report.py."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"experiment": experiment, "title": title, **get_origin(), **content})


def get_origin() -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): "date" and "versions" of the packages that a result depends on."""
    versions = {name: version(name) for name in ("spacy-elmo", "spacy", "thinc", "torch")}
    return {
        "date": date.today().isoformat(),
        "versions": {**versions, "python": platform.python_version()},
    }


def get_effort(start: float, weights_hash: bytes) -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): "seconds" since a time of `time.perf_counter`, and "biLM"."""
    seconds = round(time.perf_counter() - start, 3)
    return {"seconds": seconds, "biLM": weights_hash.hex()[:16]}


def describe_suite(
    task: str, variants: Sequence[Variant], results: Sequence[Result]
) -> Dict[str, Any]:
    """Summarise the runs of `run_all` for `write_result`. RETURNS (Dict[str, Any]): "title",
    "score", "rows" (see `summarise`), "seconds" of all runs, "settings", "date" and "versions" of
    the latest run."""
    latest = max(results, key=lambda result: result["date"])
    return {
        "title": task,
        "score": latest["score"],
        "rows": summarise(variants, results),
        "seconds": round(sum(result["seconds"] for result in results)),
        **{key: latest[key] for key in ("settings", "date", "versions")},
    }


def summarise(variants: Sequence[Variant], results: Sequence[Result]) -> List[Dict[str, Any]]:
    """Group the results of runs that differ in their seed only: for each share, smaller ones first,
    and variant a row with "variant", "title", "share", "seeds", "n_docs", "dev" and "test" (scores
    in percent by seed), "further" (scores of other test sets), "curve" ("step" and "scores" of each
    evaluation on dev) and "mixes"."""
    rows: List[Dict[str, Any]] = []
    further = list(dict.fromkeys(name for each in results for name in each.get("further", ())))
    ordered = sorted(results, key=lambda result: result["seed"])
    for share in sorted({result["share"] for result in results}):
        for variant in variants:
            group = [r for r in ordered if (r["variant"], r["share"]) == (variant.name, share)]
            if not group:
                continue
            row = {
                "variant": variant.name,
                "title": variant.title,
                "share": share,
                "seeds": [result["seed"] for result in group],
                "n_docs": mean(result["n_docs"] for result in group),
                **{key: _get_scores(group, [r[key] for r in group]) for key in ("dev", "test")},
                "curve": _join_curves(group),
                "mixes": [result["mixes"] for result in group],
            }
            if further:
                tests = [result.get("further", {}) for result in group]
                row["further"] = {
                    name: _get_scores(group, [each.get(name) for each in tests]) for name in further
                }
            rows.append(row)
    return rows


def _get_scores(group: Sequence[Result], found: Sequence[Optional[Result]]) -> List[float]:
    scores = [(scores or {}).get(result["score"]) for result, scores in zip(group, found)]
    return [100 * score for score in scores if score is not None]


def _join_curves(group: Sequence[Result]) -> List[Dict[str, Any]]:
    """Join learning curves; a run that has ended keeps its last score."""
    curves = [{point["step"]: point["score"] for point in run["curve"]} for run in group]
    joined = []
    for step in sorted({step for curve in curves for step in curve}):
        scores = [100 * curve[max(s for s in curve if s <= step)] for curve in curves]
        joined.append({"step": step, "scores": scores})
    return joined


def format_scores(values: Sequence[float]) -> str:
    """Show the mean of scores by seed, and the standard deviation of several; "-" for none."""
    if not values:
        return "-"
    spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}"


def judge_samples(rows: Sequence[Dict[str, Any]]) -> List[str]:
    """Say for each variant in rows of `summarise` whether more annotation would pay, by the points
    that the last doubling of the training set brought."""
    lines = []
    split = "test" if rows[0]["test"] else "dev"
    for title in dict.fromkeys(row["title"] for row in rows):
        group = [row for row in rows if row["title"] == title and row[split]]
        for less, more in [*pairwise(group)][-1:]:
            doublings = math.log2(more["n_docs"] / less["n_docs"])
            gain = (mean(more[split]) - mean(less[split])) / doublings
            noise = max(stdev(row[split]) if len(row[split]) > 1 else 0 for row in (less, more))
            least = max(noise, _LEAST_GAIN)
            is_open = gain > least and mean(more[split]) + _LEAST_GAIN < 100
            pays = "would pay" if is_open else "would pay little"
            sizes = f"from {less['n_docs']:,.0f} to {more['n_docs']:,.0f} docs"
            lines.append(
                f"{title}, {sizes}: {gain:+.2f} points ({split}) a doubling. More annotation of "
                f"the same kind {pays}."
            )
    return lines
