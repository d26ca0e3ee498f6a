"""What is seen of runs while they train."""

import pytest

from spacy_elmo.cli.console import Console
from spacy_elmo.cli.run_bars import RunBars
from spacy_elmo.experiments.progress import RunProgress

TOLD = [
    RunProgress("a", 0),
    RunProgress("b", 0),
    RunProgress("a", 0, 0.5, True),
    RunProgress("a", 3, 0.5),
    RunProgress("a", 4, 0.5, True),
    RunProgress("b", 4, None, True),
]


def show(bars):
    for told in TOLD:
        bars.report(told)
    bars.end("a", "dev 50.00%, 3 s")
    bars.close()


def test_lines_without_a_terminal(capsys):
    show(RunBars(2, 1000, Console()))

    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "a: started",
        "b: started",
        "a: update 0 of 1,000, dev 50.00%",
        "a: update 4 of 1,000, dev 50.00%",
        "b: update 4 of 1,000, dev not yet measured",
        "a: dev 50.00%, 3 s",
    ]
    assert not printed.out


def test_bars_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    show(RunBars(2, 1000, Console()))

    printed = capsys.readouterr()
    assert "a:" in printed.err and "4/1000" in printed.err and "dev 50.00%" in printed.err
    assert "1/2" in printed.err and "a: dev 50.00%, 3 s\n" in printed.err
    assert not printed.out


@pytest.mark.parametrize("n", [0, 3])
def test_nothing_is_left_open(n, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bars = RunBars(3, 10, Console())
    for told in TOLD[:n]:
        bars.report(told)
    bars.close()
    assert all(bar.disable for bar in bars._bars.values())
