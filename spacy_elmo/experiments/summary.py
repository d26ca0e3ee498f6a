"""Runs -> rows of a table: mean and spread over the seeds."""

from statistics import mean, stdev
from typing import Any, Dict, List, Optional, Sequence

from .results import Result
from .variants import Variant


def describe_suite(
    task: str, variants: Sequence[Variant], results: Sequence[Result], settings: Dict[str, Any]
) -> Dict[str, Any]:
    """Summarise runs, for `write_result`.

    task (str): what the task is called.
    variants (Sequence[Variant]): in the order to show them.
    results (Sequence[Result]): from `run_all`.
    settings (Dict[str, Any]): of their folder, which hold for each.
    RETURNS (Dict[str, Any]): "title", "score", "rows" (see `summarise`), "seconds" of all
        runs, "settings", "date" and "versions" of the latest run.
    """
    latest = max(results, key=lambda result: result["date"])
    return {
        "title": task,
        # Of the runs, not of this summary.
        **{key: latest[key] for key in ("date", "versions")},
        "score": results[0]["score"],
        "rows": summarise(variants, results),
        "seconds": round(sum(result["seconds"] for result in results)),
        "settings": settings,
    }


def summarise(variants: Sequence[Variant], results: Sequence[Result]) -> List[Dict[str, Any]]:
    """Average the scores of runs that differ in nothing but their seed.

    variants (Sequence[Variant]): in the order to show them.
    results (Sequence[Result]): from `run_all`.
    RETURNS (List[Dict[str, Any]]): of each variant and share, smaller shares first:
        "variant", "title", "share", "seeds", "n_docs", "dev" and "test" (scores in percent
        by seed; test is empty without one), "further" (scores by seed of each further test,
        if there are any), "curve" (of each evaluation on dev: "step",
        "scores" in percent), "mixes" (by seed).
    """
    rows: List[Dict[str, Any]] = []
    # Runs of another version may have more of them.
    further = list(dict.fromkeys(name for each in results for name in each.get("further", ())))
    ordered = sorted(results, key=lambda result: result["seed"])
    for share in sorted({result["share"] for result in results}):
        for variant in variants:
            group = [
                result
                for result in ordered
                if result["variant"] == variant.name and result["share"] == share
            ]
            if not group:
                continue
            row = {
                "variant": variant.name,
                "title": variant.title,
                "share": share,
                "seeds": [result["seed"] for result in group],
                "n_docs": mean(result["n_docs"] for result in group),
                **{
                    split: _get_scores(group, [result[split] for result in group])
                    for split in ("dev", "test")
                },
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


def list_further(rows: Sequence[Dict[str, Any]]) -> List[str]:
    """rows (Sequence[Dict[str, Any]]): from `summarise`. RETURNS (List[str]): names of the further
    tests."""
    return list(rows[0].get("further", ()))


def _get_scores(group: Sequence[Result], found: Sequence[Optional[Result]]) -> List[float]:
    """found (Sequence[Optional[Result]]): scores of each result of a group. RETURNS (List[float]):
    those that the runs are compared by."""
    scores = [(scores or {}).get(result["score"]) for result, scores in zip(group, found)]
    # A split without labels has no score.
    return [100 * score for score in scores if score is not None]


def _join_curves(group: Sequence[Result]) -> List[Dict[str, Any]]:
    """A run that ended keeps its last score: what it would have got is not known."""
    curves = [{line["step"]: line["score"] for line in result["curve"]} for result in group]
    steps = sorted({step for curve in curves for step in curve})

    def score_at(curve: Dict[int, float], step: int) -> float:
        return 100 * curve[max(s for s in curve if s <= step)]

    return [{"step": s, "scores": [score_at(curve, s) for curve in curves]} for s in steps]


def count_rising(curve: Sequence[Dict[str, Any]], max_steps: int) -> int:
    """Count the runs that were not at their end when they were stopped.

    curve (Sequence[Dict[str, Any]]): from `summarise`.
    max_steps (int): updates that they could take.
    RETURNS (int): runs whose last score is their best, after as many updates.
    """
    steps = [line["step"] for line in curve]
    runs = zip(*(line["scores"] for line in curve))
    return sum(is_rising(steps, scores, max_steps) for scores in runs)


def count_cut(curve: Sequence[Dict[str, Any]], max_steps: int, patience: int) -> int:
    """Count the runs that might have become better with more updates.

    curve, max_steps: see `count_rising`.
    patience (int): updates without a better score that would have ended them.
    RETURNS (int): runs whose best score was so late that they took all updates.
    """
    steps = [line["step"] for line in curve]
    runs = zip(*(line["scores"] for line in curve))
    best = (steps[scores.index(max(scores))] for scores in runs)
    return sum(step > max_steps - patience for step in best)


def is_rising(steps: Sequence[int], scores: Sequence[float], max_steps: int) -> bool:
    """steps (Sequence[int]): of the evaluations of a run, in order, at least one. scores
    (Sequence[float]): what it had there. max_steps (int): updates that it could take. RETURNS
    (bool): Whether it took all, and the last score is its best."""
    *before, last = scores
    return steps[-1] >= max_steps and last > max(before, default=0.0)


def find_passing(curve: Sequence[Dict[str, Any]], score: float) -> int:
    """Find when a curve passes a score.

    curve (Sequence[Dict[str, Any]]): from `summarise`.
    score (float): in percent.
    RETURNS (int): updates after which the mean is above it; -1 if it never is.
    """
    passed = (line["step"] for line in curve if mean(line["scores"]) > score)
    return next(passed, -1)


def format_scores(values: Sequence[float]) -> str:
    """values (Sequence[float]): of the seeds. RETURNS (str): mean, and the standard
    deviation if there are several; "-" for none."""
    if not values:
        return "-"
    spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}"
