"""The map of contexts."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.experiments import plots

FigureCanvasAgg = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg
FRAME, SIZE = np.array([640.0, 330.0]), np.array([18.0, 11.0])
SENTENCES = {
    "short": ["the", "bank", "."],
    "long": [*["word"] * 30, "bank", *["word"] * 30],
    "formula": ["$", "bank", r"\frac$", "_x"],
}


def make_query(words, points):
    query = {"words": words, "position": words.index("bank"), "point": points[0]}
    contexts = [{**query, "similarity": 0.25, "point": point} for point in points[1:]]
    return {**query, "contexts": contexts}


def draw(queries, path, monkeypatch):
    """Return the figure that is saved, drawn."""
    figures = []
    save = plots.save_figure
    monkeypatch.setattr(plots, "save_figure", lambda f, p: figures.append(f) or save(f, p))
    plots.plot_contexts({"queries": queries}, path)
    FigureCanvasAgg(figures[0]).draw()
    return figures[0]


@pytest.mark.parametrize("words", SENTENCES.values(), ids=SENTENCES)
@pytest.mark.parametrize("points", [np.eye(4)[:, :2], np.ones((25, 2))], ids=len)
def test_numbers_are_apart_and_each_has_a_line(words, points, tmp_path, monkeypatch):
    queries = [make_query(words, points), make_query(SENTENCES["short"], points + 0.001)]
    legend, field = draw(queries, tmp_path / "x.png", monkeypatch).axes

    n_lines = 2 * min(16, len(points))
    numbers = [str(i + 1) for i in range(n_lines)]
    assert [text.get_text() for text in field.texts] == numbers
    assert [text.get_text() for text in legend.texts][::2] == numbers
    assert "[bank]" in legend.texts[1].get_text()
    assert legend.texts[3].get_text().startswith("0.25  ")
    boxes = [text.get_window_extent().extents for text in field.texts]
    for a, b in combinations(boxes, 2):
        assert min(min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])) <= 2


POINT = st.tuples(st.floats(0, FRAME[0]), st.floats(0, FRAME[1]))


@given(st.lists(POINT, min_size=1, max_size=20))
def test_labels_are_apart_and_off_the_points(points):
    centres = plots.place_labels(np.array(points), SIZE)

    assert (centres >= SIZE / 2).all() and (centres <= FRAME - SIZE / 2).all()
    for a, b in combinations(centres, 2):
        assert (np.abs(a - b) >= SIZE - 1e-9).any()
    for centre in centres:
        assert (np.abs(np.array(points) - centre) >= SIZE / 2).any(1).all()
