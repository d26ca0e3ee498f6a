"""`spacy elmo benchmark`, through spaCy's own command line."""

import json

import pytest

from .test_commands import run


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("Green eggs and ham.\n\nHam!\n" * 20)
    return path


def test_the_command_prints_draws_and_writes(text, weights, tmp_path):
    picture, figures = tmp_path / "speed.png", tmp_path / "speed.json"

    printed = run(
        "elmo", "benchmark", text, weights, "--batch-sizes", "1,16", "--repeats", 1,
        "--tokens", 30, "--output", picture, "--json", figures,
    )  # fmt: skip

    result = json.loads(figures.read_text())
    assert [(r["precision"], r["batch_size"]) for r in result["rows"]] == [
        ("fp32", 1), ("fp32", 16),
    ]  # fmt: skip
    # The line that passes 30 is the last one.
    assert 30 <= result["n_tokens"] < 35
    for part in ("batch size", "least cosine with fp32", "Fastest here: ", "batch_size=16)"):
        assert part in printed
    assert picture.stat().st_size > 5000
