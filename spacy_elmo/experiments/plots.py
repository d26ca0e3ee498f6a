"""Pictures of results. All need the extra "plot" and raise EL038 without it."""

import math
import re
from pathlib import Path
from textwrap import fill
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ..drawing import (
    COLORS,
    Figure,
    color_scheme,
    measure_text,
    require_matplotlib,
    save_figure,
)
from ..utils import count_things, mark_word
from .contexts import name_layers

# Heat maps: letters of a sentence and of a line of it, at most; size of letters in points; inches
# of a column, a row with one line, each further line, and the frame.
_MOST_LETTERS, _LINE_LETTERS, _HEAT_SIZE = 130, 34, 11.0
_COLUMN, _ROW, _ROW_LINE, _FRAME = 0.65, 0.3, 0.2, (0.4, 0.8)
# The map of contexts: sizes in points, 1/72 inch.
_WIDTH, _HEIGHT, _LINE, _MARGIN, _TITLE, _SIZE = 640.0, 330.0, 15.0, 12.0, 20.0, 10.0
_MARKERS = "osD^vPX"
# Contexts of a query that get a number and a line; words of a line on each side of the token.
_MOST_CONTEXTS, _N_AROUND = 15, 8
_MOST_LINES = 240


def plot_scores(result: Dict[str, Any], path: Path) -> None:
    """Draw the score of each variant, a dot for each seed and a diamond for the mean.

    result (Dict[str, Any]): from `describe_suite`.
    path (Path): file to write; its ending chooses the format.
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


def plot_samples(result: Dict[str, Any], path: Path) -> None:
    """Draw scores by the size of the training set, as figure 1 of Peters et al. 2018.

    result (Dict[str, Any]): from `describe_suite`.
    path (Path): file to write; its ending chooses the format.
    """
    split = "test" if result["rows"][0]["test"] else "dev"
    lines: Dict[str, List[Any]] = {}
    for row in result["rows"]:
        lines.setdefault(row["title"], []).append((100 * row["share"], row[split]))
    figure, axes = _draw_lines(lines)
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
    """
    most = max(row["share"] for row in result["rows"])
    lines = {
        row["title"]: [(point["step"], point["scores"]) for point in row["curve"]]
        for row in result["rows"]
        if row["share"] == most
    }
    figure, axes = _draw_lines(lines)
    axes.set_xlabel("updates")
    axes.set_ylabel(f"{result['score']} (dev)")
    axes.set_title(result["title"], parse_math=False)
    save_figure(figure, path)


def _draw_lines(lines: Dict[str, List[Any]]) -> Tuple[Any, Any]:
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
    return figure, axes


def plot_speed(result: Dict[str, Any], path: Path) -> None:
    """Draw tokens per second by batch size, and the limit of the machine.

    result (Dict[str, Any]): from `measure_speed`.
    path (Path): file to write; its ending chooses the format.
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
    """Draw a heat map of a word's similarity between sentences.

    cosines (List[List[float]]): shape (n_texts, n_texts).
    texts (List[str]): the sentences.
    word (str): the word.
    path (Path): file to write; its ending chooses the format.
    dark (bool): light letters on a dark background.
    """
    require_matplotlib()
    n = len(texts)
    low = min((cosines[i][j] for i in range(n) for j in range(n) if i != j), default=0.0)
    labels = []
    for i, text in enumerate(texts):
        cut = text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]} …"
        labels.append(f"{i + 1}  {wrap_evenly(cut, _LINE_LETTERS)}")
    lines = [label.split("\n") for label in labels]
    widest = max(measure_text(line, _HEAT_SIZE) for parts in lines for line in parts) / 72
    row = _ROW + _ROW_LINE * max(1, *(len(parts) - 1 for parts in lines))
    size = (_FRAME[0] + widest + _COLUMN * n, _FRAME[1] + row * n)
    with color_scheme(dark=dark):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        _draw_cells(axes, cosines, low, (low + 1.0) / 2)
        axes.set_yticks(range(n), labels, fontsize=_HEAT_SIZE, parse_math=False)
        axes.set_xticks(range(n), [str(i + 1) for i in range(n)], fontsize=_HEAT_SIZE)
        title = f"How alike is “{word}” in these sentences? (cosine, top layer)"
        figure.suptitle(title, parse_math=False)
        save_figure(figure, path)


def plot_weights(mixes: List[Dict[str, Any]], path: Path) -> None:
    """Draw the share of each layer in each mix, as figure 2 of Peters et al. 2018.

    mixes (List[Dict[str, Any]]): fields of `LayerWeights`.
    path (Path): file to write; its ending chooses the format.
    """
    require_matplotlib()
    n_layers = max(len(mix["shares"]) for mix in mixes)
    # Components may have different numbers of layers.
    shares = [[*mix["shares"], *[math.nan] * (n_layers - len(mix["shares"]))] for mix in mixes]
    figure = Figure(figsize=(2.5 + 1.5 * len(mixes), 2.0 + 0.7 * n_layers), layout="constrained")
    axes = figure.add_subplot()
    # The word layer at the bottom, as in the network.
    columns = [[row[layer] for row in shares] for layer in reversed(range(n_layers))]
    image = _draw_cells(axes, columns, 0.0, 0.6)
    axes.set_yticks(range(n_layers), name_layers(n_layers)[::-1])
    labels = [f"{m['component']}\n{fill(m['place'], 14)}\nγ {m['gamma']:.2f}" for m in mixes]
    axes.set_xticks(range(len(mixes)), labels)
    axes.set_title("Share of each layer")
    figure.colorbar(image, ax=axes)
    save_figure(figure, path)


def _draw_cells(axes: Any, values: Sequence[Sequence[float]], low: float, bright: float) -> Any:
    """Draw colours from low to 1.0 with their values, dark above `bright`; NaN stays empty."""
    image = axes.imshow(values, cmap="viridis", vmin=low, vmax=1.0, aspect="auto")
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if not math.isnan(value):
                style = {"color": "black" if value > bright else "white", "fontsize": _HEAT_SIZE}
                axes.text(j, i, f"{value:.2f}", ha="center", va="center", **style)
    return image


def plot_contexts(result: Dict[str, Any], path: Path) -> None:
    """Draw queries and their contexts in two dimensions, a colour and a shape for each query, and
    below the map a line for each of the nearest.

    result (Dict[str, Any]): from `contexts.summarise`.
    path (Path): file to write; its ending chooses the format.
    """
    require_matplotlib()
    queries = result["queries"]
    most = max(0, min(_MOST_CONTEXTS, _MOST_LINES // len(queries) - 1))
    n_lines = sum(1 + min(most, len(query["contexts"])) for query in queries)
    below = _LINE * n_lines + _MARGIN
    width, height = _WIDTH + 2 * _MARGIN, _HEIGHT + _TITLE + below + 2 * _MARGIN
    figure = Figure(figsize=(width / 72, height / 72))
    left, bottom, share = _MARGIN / width, _MARGIN / height, _WIDTH / width
    legend = figure.add_axes((left, bottom, share, below / height))
    field = figure.add_axes((left, bottom + below / height, share, _HEIGHT / height))
    legend.set(xlim=(0, _WIDTH), ylim=(0, below))
    legend.axis("off")
    field.set(xlim=(0, _WIDTH), ylim=(0, _HEIGHT), xticks=[], yticks=[])
    field.set_title("Contexts by their vectors: the first two principal components")

    tokens = [(i, t, t is q) for i, q in enumerate(queries) for t in (q, *q["contexts"])]
    points = _scale_points(np.array([token["point"] for _, token, _ in tokens], dtype=float))
    listed = []
    rank = 0
    for (style, token, is_query), point in zip(tokens, points):
        rank = 0 if is_query else rank + 1
        _draw_mark(field, point, style, is_query)
        if rank <= most:
            listed.append((style, token, is_query, point))
    label = np.array([measure_text("0" * len(str(len(listed))), _SIZE) + 3, _SIZE + 1])
    places = place_labels(np.stack([p for *_, p in listed]), label)
    for i, ((style, token, is_query, point), place) in enumerate(zip(listed, places)):
        weight = "bold" if is_query else "normal"
        text: Dict[str, Any] = {"va": "center_baseline", "parse_math": False}
        text.update(fontsize=_SIZE, fontweight=weight)
        if np.abs(place - point).max() > 2 * _SIZE:
            color = COLORS[style % len(COLORS)]
            field.plot(*zip(point, place), color=color, linewidth=0.7, zorder=0)
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        field.text(place[0], place[1], f"{i + 1}", ha="center", bbox=ground, **text)
        y = below - _MARGIN - (i + 0.5) * _LINE
        _draw_mark(legend, (8.0, y), style, is_query)
        legend.text(36.0, y, f"{i + 1}", ha="right", **text)
        cosine = "" if is_query else f"{token['similarity']:.2f}  "
        words = [" ".join(word.split()) for word in token["words"]]
        shown = close_up(mark_word(words, token["position"], n_around=_N_AROUND))
        legend.text(46.0, y, cosine + shown[:_MOST_LETTERS], ha="left", clip_on=True, **text)
    save_figure(figure, path)


def _scale_points(points: NDArray) -> NDArray:
    """Scale points (n, 2) to the map, each axis on its own, away from the frame."""
    low, extent = points.min(0), np.ptp(points, axis=0)
    shares = np.where(extent > 0, (points - low) / np.where(extent > 0, extent, 1.0), 0.5)
    return (0.08 + 0.84 * shares) * (_WIDTH, _HEIGHT)  # (n, 2)


def place_labels(points: NDArray, size: NDArray) -> NDArray:
    """Find the nearest free place on the map for the label of each point.

    points (NDArray): shape (n, 2).
    size (NDArray): width and height of a label, shape (2,).
    RETURNS (NDArray): centres of the labels, shape (n, 2); the point itself where no place is free.
    """
    x, y = (np.arange(s / 2, most - s / 2, 3.0) for s, most in zip(size, (_WIDTH, _HEIGHT)))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)  # (n_places, 2)
    for point in points:
        grid = grid[(np.abs(grid - point) >= size / 2 + 6.0).any(1)]
    centres = np.array(points, dtype=float)
    for i, point in enumerate(points):
        if len(grid):
            centres[i] = grid[((grid - point) ** 2).sum(1).argmin()]
            grid = grid[(np.abs(grid - centres[i]) >= size).any(1)]
    return centres


def _draw_mark(axes: Any, point: Sequence[float], style: int, is_query: bool) -> None:
    """Draw a star for a query, else a hollow mark whose size differs by query: both of two marks at
    the same point can be seen."""
    color, shape = COLORS[style % len(COLORS)], style % len(_MARKERS)
    if is_query:
        axes.scatter(*point, s=130, color=color, marker="*", zorder=3)
    else:
        size = {"s": 30 + 16 * shape, "linewidths": 1.4}
        axes.scatter(*point, marker=_MARKERS[shape], facecolors="none", edgecolors=color, **size)


def close_up(text: str) -> str:
    """text (str): tokens with a space between any two. RETURNS (str): the same without the space
    before a mark that ends a sentence or a part of it."""
    return re.sub(r" ([.,;:!?])(?= |$)", r"\1", text)


def wrap_evenly(text: str, most: int) -> str:
    """text (str): a sentence. most (int): letters in a line. RETURNS (str): the same in as few
    lines as `textwrap.fill` makes of it, but of about the same length."""
    wrapped = fill(text, most)
    n_breaks = wrapped.count("\n")
    for width in range(max(1, len(text) // (n_breaks + 1)), most):
        narrower = fill(text, width)
        if narrower.count("\n") == n_breaks:
            return narrower
    return wrapped
