"""Pictures of experiments and of contexts."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.experiments import plots

pytest.importorskip("matplotlib")
FRAME, SIZE = np.array([640.0, 330.0]), np.array([20.0, 11.0])
SENTENCES = {
    "long": [*["word"] * 30, "bank", *["word"] * 30],
    "formula": ["$", "bank", r"\frac$", "_x"],
}


@pytest.mark.parametrize("plot", [plots.plot_scores, plots.plot_samples, plots.plot_updates])
def test_a_title_is_not_a_formula(plot, tmp_path):
    curve = [{"step": 0, "scores": [1.0]}, {"step": 2, "scores": [3.0]}]
    row = {"title": "with ELMo", "share": 1.0, "dev": [3.0], "test": [2.0], "curve": curve}
    result = {"title": r"$5_$6 10$\foo$", "score": "tag_acc", "rows": [row]}

    plot(result, tmp_path / "plot.png")

    assert (tmp_path / "plot.png").stat().st_size > 1000


@pytest.mark.parametrize("words", SENTENCES.values(), ids=SENTENCES)
@pytest.mark.parametrize("points", [np.eye(4)[:, :2], np.ones((25, 2))], ids=len)
def test_contexts_have_a_number_and_a_line(words, points, tmp_path, monkeypatch):
    token = {"words": words, "position": words.index("bank")}
    contexts = [{**token, "similarity": 0.25, "point": point} for point in points[1:]]
    figures = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, *_, **__: figures.append(figure))

    plots.plot_contexts({"queries": [{**token, "point": points[0], "contexts": contexts}] * 2}, "")

    (axes,) = figures[0].axes
    n_lines = 2 * min(16, len(points))
    assert [text.get_text() for text in axes.texts] == [str(i + 1) for i in range(n_lines)]
    lines = [text.get_text() for text in axes.get_legend().get_texts()]
    assert lines[0].startswith("1  ") and lines[1].startswith("2  0.25  ")
    assert len(lines) == n_lines and all("[bank]" in line for line in lines)
    figures[0].savefig(tmp_path / "x.png", bbox_inches="tight")


@given(st.lists(st.tuples(st.floats(0, 640), st.floats(0, 330)), min_size=1, max_size=20))
def test_labels_are_apart_and_off_the_points(points):
    centres = plots.place_labels(np.array(points))

    assert (centres >= SIZE / 2).all() and (centres <= FRAME - SIZE / 2).all()
    for a, b in combinations(centres, 2):
        assert (np.abs(a - b) >= SIZE - 1e-9).any()
    for centre in centres:
        assert (np.abs(np.array(points) - centre) >= SIZE / 2).any(1).all()
