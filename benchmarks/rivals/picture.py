"""The picture: accuracy against speed."""

from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from spacy_elmo.drawing import save_figure

# Okabe and Ito's colours, and shapes for those who see none.
_STYLES = {"tok2vec": ("#0072B2", "s"), "ELMo": ("#D55E00", "o"), "transformer": ("#009E73", "^")}
# Between two labels, as a share of the height.
_SPACING = 0.055
_LABELS = 1.04


class Point(NamedTuple):
    """title (str): of a row. family (str): one of three. rate (float): tokens a second.
    score (float): percent."""

    title: str
    family: str
    rate: float
    score: float


def plot_speed(panels: dict[str, list[Point]], path: Path) -> None:
    """Draw accuracy against tokens a second, labels in a column beside.

    panels (dict[str, list[Point]]): by title.
    path (Path): file to write.
    """
    figure = Figure(figsize=(10, 4.6 * len(panels)))
    all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (title, points) in zip(all_axes, panels.items()):
        _draw_panel(axes, title, points)
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=len(labels), frameon=False)
    figure.subplots_adjust(left=0.08, right=0.62, top=0.93, hspace=0.3)
    save_figure(figure, path, bbox_inches="tight")


def _draw_panel(axes: Any, title: str, points: list[Point]) -> None:
    for family, (color, marker) in _STYLES.items():
        xs = [point.rate for point in points if point.family == family]
        ys = [point.score for point in points if point.family == family]
        axes.scatter(xs, ys, c=color, marker=marker, s=55, label=family, zorder=3)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.08, y=0.08)
    axes.set_title(title)
    axes.set_xlabel("tokens per second, whole pipeline (log scale)")
    axes.set_ylabel("test score, %")
    axes.grid(alpha=0.3)
    low, high = axes.get_ylim()
    points = sorted(points, key=lambda point: point.score)
    places = _spread([(point.score - low) / (high - low) for point in points])
    for point, place in zip(points, places):
        axes.annotate(
            point.title,
            xy=(point.rate, point.score),
            xytext=(_LABELS, place),
            textcoords="axes fraction",
            fontsize=9,
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": _STYLES[point.family][0],
                "lw": 0.7,
                "relpos": (0, 0.5),
            },
        )


def _spread(places: list[float]) -> list[float]:
    """RETURNS (list[float]): Rising places that keep their distance, moved as little as a pass
    up and a pass down allow."""
    spread: list[float] = []
    for place in places:
        spread.append(max(place, spread[-1] + _SPACING) if spread else place)
    top = 1.0
    for i in reversed(range(len(spread))):
        spread[i] = min(spread[i], top)
        top = spread[i] - _SPACING
    return spread
