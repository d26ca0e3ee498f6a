"""Pictures of scores, of speed and of senses. Needs the extra "plot"."""

from pathlib import Path
from textwrap import shorten
from typing import Any, Dict, List

from ..drawing import COLORS, Figure, require_matplotlib, save_figure
from ..utils import count_things

_MARKERS = "osD^vPX*"


def plot_speed(result: Dict[str, Any], path: Path) -> None:
    """Draw tokens per second by batch size, and the limit of the machine.

    result (Dict[str, Any]): from `measure_speed`.
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL062 without matplotlib.
    """
    require_matplotlib()
    rows = result["rows"]
    precisions = list(dict.fromkeys(row["precision"] for row in rows))
    sizes = list(dict.fromkeys(row["batch_size"] for row in rows))
    figure = Figure(figsize=(2 + 1.2 * len(rows), 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=COLORS)
    width = 0.8 / len(precisions)
    for i, precision in enumerate(precisions):
        rates = [row["tokens_per_second"] for row in rows if row["precision"] == precision]
        places = [k + (i - (len(precisions) - 1) / 2) * width for k in range(len(sizes))]
        bars = axes.bar(places, rates, width, label=precision)
        axes.bar_label(bars, fmt="{:,.0f}", fontsize=8)
    limit = result["limits"]["products"] / result["operations_per_token"]
    axes.axhline(limit, color="gray", linestyle="--", label="limit of float32 products")
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_xlabel("sentences at a time")
    axes.set_ylabel("tokens per second")
    threads = count_things(result["n_threads"], "thread")
    axes.set_title(f"Speed with {threads}, full word cache")
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    save_figure(figure, path)


def name_layers(n_layers: int) -> List[str]:
    """n_layers (int): of a biLM. RETURNS (List[str]): what they are called, words first."""
    return ["words", *(f"LSTM {i}" for i in range(1, n_layers))]


def plot_scores(result: Dict[str, Any], path: Path) -> None:
    """Draw the score of each variant, a dot for each seed and a diamond for the mean.

    result (Dict[str, Any]): from `describe_suite`.
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL062 without matplotlib.
    """
    require_matplotlib()
    splits = [split for split in ("dev", "test") if result["rows"][0][split]]
    rows = result["rows"][::-1]
    figure = Figure(figsize=(3 + 4 * len(splits), 1.5 + 0.4 * len(rows)), layout="constrained")
    for i, split in enumerate(splits):
        axes = figure.add_subplot(1, len(splits), i + 1)
        means = [sum(row[split]) / len(row[split]) for row in rows]
        axes.scatter(means, range(len(rows)), color=COLORS[1], marker="D", s=60)
        for place, row in enumerate(rows):
            axes.scatter(row[split], [place] * len(row[split]), color=COLORS[0], s=12, zorder=3)
        axes.set_ylim(-0.5, len(rows) - 0.5)
        axes.set_yticks(range(len(rows)), [row["title"] for row in rows] if not i else [])
        axes.set_xlabel(f"{result['score']} ({split})")
        axes.grid(alpha=0.3)
    figure.suptitle(result["title"], parse_math=False)
    save_figure(figure, path)


def plot_layers(
    scores: Dict[str, List[float]], baselines: Dict[str, float], label: str, path: Path
) -> None:
    """Draw the score of each layer, a dot for each seed and a diamond for the mean, and
    baselines as lines.

    scores (Dict[str, List[float]]): of each layer, by seed.
    baselines (Dict[str, float]): by name.
    label (str): what the score is.
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL062 without matplotlib.
    """
    require_matplotlib()
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    means = [sum(values) / len(values) for values in scores.values()]
    places = range(len(scores))
    axes.scatter(places, means, color=COLORS[0], marker="D", s=60)
    for place, (score, values) in enumerate(zip(means, scores.values())):
        axes.scatter([place] * len(values), values, color=COLORS[0], s=12, zorder=3)
        axes.annotate(f"{score:.1f}", (place, score), xytext=(9, -3), textcoords="offset points")
    for i, (name, value) in enumerate(baselines.items()):
        color = COLORS[(i + 1) % len(COLORS)]
        axes.axhline(value, color=color, linestyle="--", label=f"{name}: {value:.1f}")
    axes.set_xticks(places, list(scores))
    axes.margins(x=0.2)
    axes.grid(axis="y", alpha=0.3)
    axes.set_ylabel(label)
    axes.legend()
    save_figure(figure, path)


def plot_samples(result: Dict[str, Any], path: Path) -> None:
    """Draw scores by the size of the training set, as figure 1 of Peters et al. 2018.

    result (Dict[str, Any]): from `describe_suite`.
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL062 without matplotlib.
    """
    split = "test" if result["rows"][0]["test"] else "dev"
    lines: Dict[str, List[Any]] = {}
    for row in result["rows"]:
        lines.setdefault(row["title"], []).append((100 * row["share"], row[split]))
    axes, figure = _draw_lines(lines)
    ticks = sorted({100 * row["share"] for row in result["rows"]})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g} %" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("of the training set")
    axes.set_ylabel(f"{result['score']} ({split})")
    axes.set_title(result["title"], parse_math=False)
    save_figure(figure, path)


def plot_updates(result: Dict[str, Any], path: Path) -> None:
    """Draw dev scores by updates, on the whole training set.

    result (Dict[str, Any]): from `describe_suite`.
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL062 without matplotlib.
    """
    most = max(row["share"] for row in result["rows"])
    lines = {
        row["title"]: [(line["step"], line["scores"]) for line in row["curve"]]
        for row in result["rows"]
        if row["share"] == most
    }
    axes, figure = _draw_lines(lines)
    axes.set_xlabel("updates")
    axes.set_ylabel(f"{result['score']} (dev)")
    axes.set_title(result["title"], parse_math=False)
    save_figure(figure, path)


def _draw_lines(lines: Dict[str, List[Any]]) -> Any:
    """Of each line: places and scores there by seed; the band goes from least to most."""
    require_matplotlib()
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=COLORS)
    for name, points in lines.items():
        places = [place for place, _ in points]
        means = [sum(scores) / len(scores) for _, scores in points]
        line = axes.plot(places, means, marker="o", markersize=4, label=name)[0]
        axes.fill_between(
            places,
            [min(scores) for _, scores in points],
            [max(scores) for _, scores in points],
            color=line.get_color(),
            alpha=0.2,
            linewidth=0,
        )
    axes.grid(alpha=0.3)
    axes.legend()
    return axes, figure


def plot_senses(result: Dict[str, Any], path: Path) -> None:
    """Draw contexts of a word by their vectors, a colour and a shape for each sense, beside
    the one point that a vector of the word alone is.

    result (Dict[str, Any]): with "lemma", "points", "sense_of_point", "senses" (each with
        "gloss" and "count") and "layer".
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL062 without matplotlib.
    """
    require_matplotlib()
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 1))
    for i, sense in enumerate(result["senses"]):
        points = [p for p, k in zip(result["points"], result["sense_of_point"]) if k == i]
        left.scatter(
            *zip(*points),
            s=34,
            color=COLORS[i % len(COLORS)],
            marker=_MARKERS[i % len(_MARKERS)],
            alpha=0.8,
            linewidths=0,
            label=_escape(f"{shorten(sense['gloss'], 60, placeholder=' …')} ({sense['count']})"),
        )
    n_points = len(result["points"])
    left.set_title(
        f"ELMo: a vector for each of {n_points} contexts of “{_escape(result['lemma'])}”"
    )
    right.set_title("One vector for the word")
    right.scatter([0], [0], s=60, color="#555555")
    right.annotate(
        f"all {n_points}", (0, 0), xytext=(8, 8), textcoords="offset points", color="#555555"
    )
    for axes in (left, right):
        axes.set_xticks([])
        axes.set_yticks([])
    figure.legend(loc="outside lower left", ncols=2, fontsize=9, frameon=False)
    save_figure(figure, path)


def _escape(text: str) -> str:
    # A dollar sign would begin a formula.
    return text.replace("$", r"\$")
