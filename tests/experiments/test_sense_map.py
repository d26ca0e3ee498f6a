"""The map of a word's senses, drawn from a result."""

import pytest

from spacy_elmo.experiments.figures import plot_senses
from spacy_elmo.experiments.results import write_result

from ..cli.test_commands import run

pytest.importorskip("matplotlib")
RESULT = {
    "lemma": "bank$",
    "senses": [{"gloss": f"sense ${i}$ _x" * (9 * i + 1), "count": 2} for i in range(9)],
    "layer": 1,
    "points": [[float(i), float(i % 4)] for i in range(18)],
    "sense_of_point": [i // 2 for i in range(18)],
    "neighbors": [0.25, 0.75],
    "most_frequent": 0.5,
    "seconds": 1.0,
    "biLM": "0123",
}


def test_more_senses_than_colors_and_any_letters_are_drawn(tmp_path):
    plot_senses(RESULT, tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"


def test_the_report_has_the_map_and_its_shares(tmp_path):
    write_result(tmp_path / "map.json", "sense_map", "bank, toy", RESULT)
    run("elmo", "report", tmp_path, tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "| LSTM 1 | 75.0 |" in text and "| words | 25.0 |" in text
    assert len(list((tmp_path / "figures").glob("sense_map_bank*.png"))) == 1
