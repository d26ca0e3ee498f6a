"""Heat maps: how alike a word is in sentences, what the mixes take from the layers. Needs the
extra "plot"."""

import math
from pathlib import Path
from textwrap import fill
from typing import Any, Dict, List, Sequence

from ..drawing import Figure, color_scheme, measure_text, require_matplotlib, save_figure
from ..utils import wrap_evenly
from .figures import name_layers

# Letters of a sentence, and in a line of it, at most; and their size in points.
_MOST_LETTERS, _N_LETTERS = 130, 34
_SIZE = 11.0
# Inches of a column, of a row with one line, of each more line, and round all.
_COLUMN, _ROW, _LINE, _FRAME = 0.65, 0.3, 0.2, (0.4, 0.8)


def plot_similarities(
    cosines: List[List[float]], texts: List[str], word: str, path: Path, *, dark: bool = False
) -> None:
    """Draw a heat map of a word's similarity between sentences.

    cosines (List[List[float]]): shape (n_texts, n_texts).
    texts (List[str]): the sentences.
    word (str): the word.
    path (Path): file to write; its ending chooses the format.
    dark (bool): light letters on a dark ground.
    RAISES (ValueError): EL062 without matplotlib.
    """
    require_matplotlib()
    n = len(texts)
    off_diagonal = [cosines[i][j] for i in range(n) for j in range(n) if i != j]
    low = min(off_diagonal, default=0.0)
    labels = [f"{i + 1}  {_wrap(text)}" for i, text in enumerate(texts)]
    lines = [label.split("\n") for label in labels]
    widest = max(measure_text(line, _SIZE) for parts in lines for line in parts) / 72
    row = _ROW + _LINE * max(1, *(len(parts) - 1 for parts in lines))
    size = (_FRAME[0] + widest + _COLUMN * n, _FRAME[1] + row * n)
    with color_scheme(dark=dark):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        _draw_cells(axes, cosines, low, (low + 1.0) / 2)
        axes.set_yticks(range(n), labels, fontsize=_SIZE, parse_math=False)
        axes.set_xticks(range(n), [str(i + 1) for i in range(n)], fontsize=_SIZE)
        title = f"How alike is “{word}” in these sentences? (cosine, top layer)"
        figure.suptitle(title, parse_math=False)
        save_figure(figure, path)


def _wrap(text: str) -> str:
    cut = text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]} …"
    return wrap_evenly(cut, _N_LETTERS)


def _draw_cells(axes: Any, values: Sequence[Sequence[float]], low: float, bright: float) -> Any:
    """Colours from low to 1.0, and the values; above bright they are dark; nothing for NaN. RETURNS
    (AxesImage): for a bar of colours."""
    image = axes.imshow(values, cmap="viridis", vmin=low, vmax=1.0, aspect="auto")
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if math.isnan(value):
                continue
            color = "black" if value > bright else "white"
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=color, fontsize=_SIZE)
    return image


def plot_weights(mixes: List[Dict[str, Any]], path: Path) -> None:
    """Draw what each mix takes from each layer, as figure 2 of Peters et al. 2018.

    mixes (List[Dict[str, Any]]): fields of `LayerWeights`.
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL062 without matplotlib.
    """
    require_matplotlib()
    n_layers = max(len(mix["shares"]) for mix in mixes)
    # Components may have other numbers of layers.
    shares = [[*mix["shares"], *[math.nan] * (n_layers - len(mix["shares"]))] for mix in mixes]
    figure = Figure(figsize=(2.5 + 1.5 * len(mixes), 2.0 + 0.7 * n_layers), layout="constrained")
    axes = figure.add_subplot()
    # The word layer at the bottom, as it is in the network.
    columns = [[row[layer] for row in shares] for layer in reversed(range(n_layers))]
    image = _draw_cells(axes, columns, 0.0, 0.6)
    axes.set_yticks(range(n_layers), name_layers(n_layers)[::-1])
    labels = [f"{m['component']}\n{fill(m['place'], 14)}\nγ {m['gamma']:.2f}" for m in mixes]
    axes.set_xticks(range(len(mixes)), labels)
    axes.set_title("Share of each layer")
    figure.colorbar(image, ax=axes)
    save_figure(figure, path)
