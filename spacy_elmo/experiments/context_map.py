"""A map of contexts: numbered points, and below it what each is. Needs the extra "plot"."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from ..drawing import COLORS, Figure, measure_text, require_matplotlib, save_figure
from ..utils import close_up, mark_word
from .label_places import place_labels

# All lengths are points, 1/72 of an inch: of the map, of a line below it, round both.
_WIDTH, _HEIGHT, _LINE, _MARGIN = 640.0, 330.0, 15.0, 12.0
_TITLE = 20.0
_SIZE = 10.0
# Where the number of a line ends and its text begins.
_NUMBER, _TEXT = 36.0, 46.0
# Letters are drawn a little wider than they measure: each is moved to whole pixels.
_ROUNDING = 0.95
_MARKERS = "osD^vPX"
# Below a number, so that lines to other numbers do not cross it.
_GROUND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
# Lines in all, and for a query; others have points without a number.
_MOST_LINES, _MOST_CONTEXTS = 240, 15
# Words of a context to show on each side, and letters of one, at most.
_N_AROUND, _N_LETTERS = 12, 200


class _Item(NamedTuple):
    """A query or a context: its token's sentence, where it lies on the map and how it is drawn.

    token (Dict[str, Any]): with "words", "position" and, for a context, "similarity".
    point (NDArray): shape (2,).
    style (int): of its query.
    number (int): of its line; 0 without one.
    """

    token: Dict[str, Any]
    point: NDArray
    style: int
    number: int

    @property
    def color(self) -> str:
        return COLORS[self.style % len(COLORS)]

    @property
    def is_query(self) -> bool:
        return "similarity" not in self.token


def plot_contexts(result: Dict[str, Any], path: Path) -> None:
    """Draw queries and their contexts in two dimensions, a colour and a shape for each query, and
    below the map a line for each of the nearest.

    result (Dict[str, Any]): from `contexts.summarise`.
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL062 without matplotlib.
    """
    require_matplotlib()
    items = _list_items(result["queries"])
    listed = [item for item in items if item.number]
    below = _LINE * len(listed) + _MARGIN
    width, height = _WIDTH + 2 * _MARGIN, _HEIGHT + _TITLE + below + 2 * _MARGIN
    figure = Figure(figsize=(width / 72, height / 72))
    left, bottom = _MARGIN / width, _MARGIN / height
    legend = figure.add_axes((left, bottom, _WIDTH / width, below / height))
    field = figure.add_axes((left, bottom + below / height, _WIDTH / width, _HEIGHT / height))
    _draw_map(field, items, listed)
    _draw_lines(legend, listed, below)
    save_figure(figure, path)


def _list_items(queries: List[Dict[str, Any]]) -> List[_Item]:
    """Queries, each with its contexts after it, numbered as they come."""
    most = max(0, min(_MOST_CONTEXTS, _MOST_LINES // len(queries) - 1))
    found = [token["point"] for query in queries for token in (query, *query["contexts"])]
    points = iter(_spread(np.array(found, dtype=float)))
    items: List[_Item] = []
    number = 0
    for style, query in enumerate(queries):
        for rank, token in enumerate((query, *query["contexts"])):
            number += rank <= most
            items.append(_Item(token, next(points), style, number if rank <= most else 0))
    return items


def _spread(points: NDArray) -> NDArray:
    """points (NDArray): shape (n, 2). RETURNS (NDArray): on the map, away from its frame, each
    axis with a scale of its own."""
    frame = np.array([_WIDTH, _HEIGHT])
    low, extent = points.min(0), np.ptp(points, axis=0)
    shares = np.where(extent > 0, (points - low) / np.where(extent > 0, extent, 1.0), 0.5)
    return (0.08 + 0.84 * shares) * frame  # (n, 2)


def _draw_map(axes: Any, items: List[_Item], listed: List[_Item]) -> None:
    axes.set(xlim=(0, _WIDTH), ylim=(0, _HEIGHT), xticks=[], yticks=[])
    note = "" if len(listed) == len(items) else "; numbers for the nearest"
    axes.set_title(f"Contexts by their vectors: the first two principal components{note}")
    for item in items:
        _draw_mark(axes, item, *item.point)
    size = np.array([measure_text("0" * len(str(listed[-1].number)), _SIZE) + 3, _SIZE + 1])
    places = place_labels(
        np.stack([item.point for item in listed]), size, np.array([_WIDTH, _HEIGHT])
    )
    for item, place in zip(listed, places):
        if np.abs(place - item.point).max() > 2 * _SIZE:
            axes.plot(*zip(item.point, place), color=item.color, linewidth=0.7, zorder=0)
        _write(axes, place, str(item.number), ha="center", bold=item.is_query, bbox=_GROUND)


def _draw_lines(axes: Any, listed: List[_Item], height: float) -> None:
    axes.set(xlim=(0, _WIDTH), ylim=(0, height))
    axes.axis("off")
    for i, item in enumerate(listed):
        y = height - _MARGIN - (i + 0.5) * _LINE
        _draw_mark(axes, item, 8.0, y)
        _write(axes, (_NUMBER, y), str(item.number), ha="right", bold=item.is_query)
        cosine = "" if item.is_query else f"{item.token['similarity']:.2f}  "
        start = _TEXT + measure_text(cosine, _SIZE)
        text = _shorten(item.token, _WIDTH - start, bold=item.is_query)
        _write(axes, (_TEXT, y), cosine + text, ha="left", bold=item.is_query)


def _draw_mark(axes: Any, item: _Item, x: float, y: float) -> None:
    """A full star for a query; contexts are hollow and of several sizes, so that those of two
    queries are seen at one place."""
    if item.is_query:
        axes.scatter(x, y, s=130, color=item.color, marker="*", zorder=3)
        return
    shape = item.style % len(_MARKERS)
    style = {"s": 30 + 16 * shape, "marker": _MARKERS[shape], "linewidths": 1.4}
    axes.scatter(x, y, facecolors="none", edgecolors=item.color, **style)


def _write(axes: Any, place: Sequence[float], text: str, *, bold: bool, **settings: Any) -> None:
    weight = "bold" if bold else "normal"
    style = {"va": "center_baseline", "fontsize": _SIZE, "fontweight": weight, "parse_math": False}
    axes.text(*place, text, **style, **settings)


def _shorten(token: Dict[str, Any], width: float, *, bold: bool) -> str:
    """RETURNS (str): The token with as many words round it as the width has room for."""
    weight = "bold" if bold else "normal"
    width *= _ROUNDING
    words = [" ".join(word[:_N_LETTERS].split()) for word in token["words"]]
    for n_around in range(_N_AROUND, -1, -1):
        text = close_up(mark_word(words, token["position"], n_around=n_around))
        if measure_text(text, _SIZE, weight) <= width:
            return text
    while measure_text(f"{text} …", _SIZE, weight) > width:
        text = text[:-1]
    return f"{text} …"
