"""Pictures of results. All need the extra "plot" and raise EL038 without it; the ending of the path
to write chooses the format."""

import math
from pathlib import Path
from textwrap import fill
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ..drawing import COLORS, Figure, color_scheme, require_matplotlib, save_figure
from ..utils import count_things, mark_word
from .contexts import is_centred, name_layers

# Letters of a sentence and of a line of it, at most; size of letters in points.
_MOST_LETTERS, _LINE_LETTERS, _SIZE = 130, 34, 10.0
# The map of contexts: width and height in points, and of the number of a context.
_MAP, _LABEL = np.array([640.0, 330.0]), np.array([20.0, 11.0])
_MARKERS = "osD^vPX"
# Contexts of a query that get a number and a line; words of a line on each side of the token.
_MOST_CONTEXTS, _N_AROUND = 15, 8
_MOST_LINES = 240


def plot_scores(result: Dict[str, Any], path: Path) -> None:
    """Draw the score of each variant in a result of `describe_suite`: a dot for each seed and a
    diamond for the mean."""
    require_matplotlib()
    splits = [split for split in ("dev", "test") if result["rows"][0][split]]
    rows = result["rows"][::-1]
    figure = Figure(figsize=(3 + 4 * len(splits), 1.5 + 0.4 * len(rows)), layout="constrained")
    for i, split in enumerate(splits):
        axes = figure.add_subplot(1, len(splits), i + 1)
        means = [sum(row[split]) / len(row[split]) for row in rows]
        axes.scatter(means, range(len(rows)), color=COLORS[1], marker="D", s=60, label="mean")
        X, Y = zip(*((score, place) for place, row in enumerate(rows) for score in row[split]))
        axes.scatter(X, Y, color=COLORS[0], s=12, zorder=3, label="one seed")
        axes.set_ylim(-0.5, len(rows) - 0.5)
        axes.set_yticks(range(len(rows)), [row["title"] for row in rows] if not i else [])
        axes.set_xlabel(f"{result['score']} ({split})")
        axes.grid(alpha=0.3)
    axes.legend()
    figure.suptitle(result["title"], parse_math=False)
    save_figure(figure, path)


def plot_samples(result: Dict[str, Any], path: Path) -> None:
    """Draw scores of `describe_suite` by the size of the training set, as figure 1 of Peters et
    al. 2018."""
    split = "test" if result["rows"][0]["test"] else "dev"
    lines: Dict[str, List[Any]] = {}
    for row in result["rows"]:
        lines.setdefault(row["title"], []).append((100 * row["share"], row[split]))
    figure, axes = _draw_lines(lines, result, split)
    ticks = sorted({100 * row["share"] for row in result["rows"]})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g} %" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("of the training set")
    save_figure(figure, path)


def plot_updates(result: Dict[str, Any], path: Path) -> None:
    """Draw dev scores of `describe_suite` by updates, on the whole training set."""
    most = max(row["share"] for row in result["rows"])
    lines = {
        row["title"]: [(point["step"], point["scores"]) for point in row["curve"]]
        for row in result["rows"]
        if row["share"] == most
    }
    figure, axes = _draw_lines(lines, result, "dev")
    axes.set_xlabel("updates")
    save_figure(figure, path)


def _draw_lines(lines: Dict[str, List[Any]], result: Dict[str, Any], split: str) -> Tuple[Any, Any]:
    """Draw lines of (x, scores by seed): their mean, and a band from the least to the most."""
    require_matplotlib()
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=COLORS)
    for name, points in lines.items():
        xs = [x for x, _ in points]
        means = [sum(scores) / len(scores) for _, scores in points]
        lows, highs = ([end(scores) for _, scores in points] for end in (min, max))
        line = axes.plot(xs, means, marker="o", markersize=4, label=name)[0]
        axes.fill_between(xs, lows, highs, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.grid(alpha=0.3)
    axes.legend()
    axes.set_ylabel(f"{result['score']} ({split})")
    axes.set_title(result["title"], parse_math=False)
    return figure, axes


def plot_speed(result: Dict[str, Any], path: Path) -> None:
    """Draw tokens per second of `measure_speed` by batch size, and the limit of the machine."""
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
    limit = result["limit"] / result["operations_per_token"]
    axes.axhline(limit, color="gray", linestyle="--", label="limit of float32 products")
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_xlabel("sentences at a time")
    axes.set_ylabel("tokens per second")
    threads = count_things(result["n_threads"], "thread")
    axes.set_title(f"Speed with {threads}, full word cache")
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    save_figure(figure, path)


def plot_similarities(
    cosines: List[List[float]], texts: List[str], word: str, path: Path, *, dark: bool = False
) -> None:
    """Draw a heat map of a word's similarity between sentences. `cosines` has shape
    (n_texts, n_texts); `dark` is for light letters on a dark background."""
    require_matplotlib()
    n = len(texts)
    labels = []
    for i, text in enumerate(texts):
        cut = text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]} …"
        labels.append(f"{i + 1}  {fill(cut, _LINE_LETTERS)}")
    n_lines = max(label.count("\n") + 1 for label in labels)
    with color_scheme(dark=dark):
        # Inches of the cells; the file is as much larger as the labels need.
        figure = Figure(figsize=(0.65 * n, (0.3 + 0.2 * n_lines) * n))
        axes = figure.add_axes((0, 0, 1, 1))
        _draw_cells(axes, cosines, -1.0, "RdBu")
        axes.set_yticks(range(n), labels, fontsize=_SIZE, parse_math=False)
        axes.set_xticks(range(n), [str(i + 1) for i in range(n)], fontsize=_SIZE)
        title = f"How alike is “{word}” in these sentences?\n(cosine, top layer"
        title += ", minus the mean of all)" if is_centred(n) else ")"
        axes.set_title(title, loc="right", parse_math=False)
        save_figure(figure, path, bbox_inches="tight")


def plot_weights(
    mixes: List[Dict[str, Any]], path: Path, title: str = "Share of each layer"
) -> None:
    """Draw the share of each layer in each mix (fields of `LayerWeights`), as figure 2 of Peters et
    al. 2018."""
    require_matplotlib()
    n_layers = max(len(mix["shares"]) for mix in mixes)
    # Components may have different numbers of layers.
    shares = [[*mix["shares"], *[math.nan] * (n_layers - len(mix["shares"]))] for mix in mixes]
    figure = Figure(figsize=(2.5 + 1.5 * len(mixes), 2.0 + 0.7 * n_layers), layout="constrained")
    axes = figure.add_subplot()
    # The word layer at the bottom, as in the network.
    columns = [[row[layer] for row in shares] for layer in reversed(range(n_layers))]
    image = _draw_cells(axes, columns, 0.0, "viridis")
    axes.set_yticks(range(n_layers), name_layers(n_layers)[::-1])
    labels = [f"{m['component']}\n{fill(m['place'], 14)}\nγ {m['gamma']:.2f}" for m in mixes]
    axes.set_xticks(range(len(mixes)), labels)
    axes.set_title(title, parse_math=False)
    figure.colorbar(image, ax=axes)
    save_figure(figure, path)


def _draw_cells(axes: Any, values: Sequence[Sequence[float]], low: float, colors: str) -> Any:
    """Draw colours from low to 1.0 with their values, dark on light ones; NaN stays empty."""
    image = axes.imshow(values, cmap=colors, vmin=low, vmax=1.0, aspect="auto")
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if not math.isnan(value):
                is_light = np.mean(image.to_rgba(value)[:3]) > 0.5
                style = {"color": "black" if is_light else "white", "fontsize": _SIZE}
                axes.text(j, i, f"{value:.2f}", ha="center", va="center", **style)
    return image


def plot_contexts(result: Dict[str, Any], path: Path) -> None:
    """Draw queries and contexts of `summarise` in two dimensions, a colour and a shape for each
    query, and below the map a line for each of the nearest."""
    require_matplotlib()
    queries = result["queries"]
    n_listed = 1 + max(0, min(_MOST_CONTEXTS, _MOST_LINES // len(queries) - 1))
    # Inches of the map; the file is as much larger as the lines below need.
    figure = Figure(figsize=tuple(_MAP / 72))
    axes: Any = figure.add_axes((0, 0, 1, 1), xticks=[], yticks=[])
    axes.margins(0.08)
    axes.set_title("Contexts by their vectors: the first two principal components")
    marks: List[Any] = []
    listed: List[Tuple[Any, Dict[str, Any]]] = []
    for i, query in enumerate(queries):
        color = COLORS[i % len(COLORS)]
        # Hollow, and of a size for each query: both of two marks at the same point can be seen.
        shape = i % len(_MARKERS)
        hollow = {"facecolors": "none", "edgecolors": color, "s": 30 + 16 * shape}
        star = axes.scatter(*query["point"], s=130, color=color, marker="*", zorder=3)
        points = np.array([context["point"] for context in query["contexts"]]).reshape(-1, 2)
        others = axes.scatter(*points.T, marker=_MARKERS[shape], linewidths=1.4, **hollow)
        marks += [star, *[others] * len(points)][:n_listed]
        listed += [(color, token) for token in (query, *query["contexts"])][:n_listed]
    axes.autoscale_view()
    # On the map: axes.transLimits gives shares of its width and height.
    points = axes.transLimits.transform([token["point"] for _, token in listed]) * _MAP
    lines = []
    for i, ((color, token), point, place) in enumerate(zip(listed, points, place_labels(points))):
        if np.abs(place - point).max() > 2 * _SIZE:
            ends = np.stack([point, place], axis=1) / _MAP[:, None]  # xs and ys
            axes.plot(*ends, color=color, linewidth=0.7, zorder=0, transform=axes.transAxes)
        weight = "normal" if "similarity" in token else "bold"
        text = {"ha": "center", "va": "center", "fontsize": _SIZE, "fontweight": weight}
        axes.text(*(place / _MAP), f"{i + 1}", transform=axes.transAxes, **text)
        cosine = f"{token['similarity']:.2f}  " if "similarity" in token else ""
        words = [" ".join(word.split()) for word in token["words"]]
        sentence = mark_word(words, token["position"], n_around=_N_AROUND)
        lines.append(f"{i + 1}  {cosine}{sentence[:_MOST_LETTERS]}")
    legend = axes.legend(
        marks, lines, loc="upper left", bbox_to_anchor=(0, 0), frameon=False, fontsize=_SIZE
    )
    for label, (_, token) in zip(legend.get_texts(), listed):
        label.set(parse_math=False, fontweight="normal" if "similarity" in token else "bold")
    save_figure(figure, path, bbox_inches="tight")


def place_labels(points: NDArray) -> NDArray:
    """Find the nearest free place on the map for the label of each point, both of shape (n, 2); the
    point itself where no place is free."""
    x, y = (np.arange(s / 2, most - s / 2, 3.0) for s, most in zip(_LABEL, _MAP))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)  # (n_places, 2)
    for point in points:
        grid = grid[(np.abs(grid - point) >= _LABEL / 2 + 6.0).any(1)]
    centres = np.array(points, dtype=float)
    for i, point in enumerate(points):
        if len(grid):
            centres[i] = grid[((grid - point) ** 2).sum(1).argmin()]
            grid = grid[(np.abs(grid - centres[i]) >= _LABEL).any(1)]
    return centres
