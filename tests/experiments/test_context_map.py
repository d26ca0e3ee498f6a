"""The map of contexts: nothing on it lies on anything else or leaves the picture."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.experiments import context_map
from spacy_elmo.experiments.label_places import place_labels

FigureCanvasAgg = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg
FRAME, SIZE = np.array([640.0, 330.0]), np.array([18.0, 11.0])
SHORT, LONG = ["the", "bank", "."], [*["word"] * 30, "bank", *["word"] * 30]
SENTENCES = {
    "short": SHORT,
    "long": LONG,
    "wide": ["W" * 300, "bank", "W" * 300],
    "formula": ["$", "bank", r"\frac$", "_x"],
    "korean": ["하나는", "bank", "헤어지는", "경우이고", ","] * 20,
}


def make_query(words, token, points, similarity=0.5):
    query = {"words": words, "position": words.index(token)}
    context = {**query, "similarity": similarity}
    return {
        **query,
        "point": points[0],
        "contexts": [{**context, "point": point} for point in points[1:]],
    }


def draw(queries, path, monkeypatch):
    """The picture of the queries, as it was saved."""
    figures = []
    save = context_map.save_figure
    monkeypatch.setattr(
        context_map,
        "save_figure",
        lambda figure, path: figures.append(figure) or save(figure, path),
    )
    context_map.plot_contexts({"queries": queries}, path)
    # Saving has its own resolution: the places of texts are those of this drawing.
    FigureCanvasAgg(figures[0]).draw()
    return figures[0]


def find_boxes(figure):
    """Of each text with letters: text, left, bottom, right and top, in pixels."""
    texts = [text for axes in figure.axes for text in (*axes.texts, axes.title)]
    return [
        (text.get_text(), *text.get_window_extent().extents) for text in texts if text.get_text()
    ]


@pytest.mark.filterwarnings("ignore:.*WL009", "ignore:Glyph")
@pytest.mark.parametrize("words", SENTENCES.values(), ids=SENTENCES)
@pytest.mark.parametrize("points", [np.eye(4)[:, :2], np.ones((25, 2))], ids=len)
def test_texts_are_apart_and_inside(words, points, tmp_path, monkeypatch):
    queries = [make_query(words, "bank", points), make_query(SHORT, "bank", points + 0.001)]
    figure = draw(queries, tmp_path / "x.png", monkeypatch)
    width, height = figure.bbox.size

    boxes = find_boxes(figure)

    for text, left, bottom, right, top in boxes:
        assert left >= 0 and bottom >= 0 and right <= width and top <= height, text
    for (text, *a), (other, *b) in combinations(boxes, 2):
        # Lines stand 15 points apart: letters that hang may reach the next box, not its letters.
        overlap = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        assert min(overlap) <= 2, (text, other)


def test_a_long_token_of_a_query_is_cut(tmp_path, monkeypatch):
    queries = [make_query(["W" * 1000], "W" * 1000, np.eye(2))]
    figure = draw(queries, tmp_path / "x.png", monkeypatch)

    cut = [box for box in find_boxes(figure) if "WWW" in box[0]]
    assert [text[-1] for text, *_ in cut] == ["…", "…"]
    assert all(0.8 < right / figure.bbox.width < 1 for *_, right, _ in cut)


def test_every_line_has_its_number_on_the_map(tmp_path, monkeypatch):
    queries = [make_query(SHORT, "bank", np.eye(20)[:, :2], 0.25)] * 2
    legend, field = draw(queries, tmp_path / "x.png", monkeypatch).axes

    numbers = [str(i) for i in range(1, 33)]  # two queries, each with its 15 nearest contexts
    assert [text.get_text() for text in field.texts] == numbers
    assert [text.get_text() for text in legend.texts][::2] == numbers
    assert legend.texts[1].get_text() == "the [bank]."
    assert legend.texts[3].get_text() == "0.25  the [bank]."
    assert len(field.collections) == 40 and "nearest" in field.get_title()


@pytest.mark.slow
def test_many_queries_make_no_endless_picture(tmp_path, monkeypatch):
    figure = draw(
        [make_query(SHORT, "bank", np.eye(4)[:, :2])] * 60, tmp_path / "x.png", monkeypatch
    )
    assert figure.get_size_inches()[1] < 60
    assert (tmp_path / "x.png").exists()


POINT = st.tuples(st.floats(0, FRAME[0]), st.floats(0, FRAME[1]))


@given(st.lists(POINT, min_size=1, max_size=20))
def test_labels_are_apart_near_and_off_the_points(points):
    centres = place_labels(np.array(points), SIZE, FRAME)

    assert centres.shape == (len(points), 2)
    assert (centres >= SIZE / 2).all() and (centres <= FRAME - SIZE / 2).all()
    for a, b in combinations(centres, 2):
        assert (np.abs(a - b) >= SIZE - 1e-9).any()
    for centre in centres:
        assert (np.abs(np.array(points) - centre) >= SIZE / 2).any(1).all()


def test_labels_without_room_are_at_their_points():
    points = np.full((5, 2), 10.0)
    centres = place_labels(points, SIZE, np.array([60.0, 12.0]))
    assert len(centres) == 5 and (centres[-1] == points[-1]).all()
