"""docs/experiments.md says what benchmarks/results has."""

import shutil
import sys

import pytest

from spacy_elmo.experiments import paper_report

from .support.helpers import ROOT

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
sys.path.insert(0, str(ROOT / "benchmarks"))
import renew_report

sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Pictures take long; their names say what is in them."""
    for name in [name for name in vars(paper_report) if name.startswith("plot_")]:
        monkeypatch.setattr(paper_report, name, lambda result, path, *rest: path.write_bytes(b""))


def test_the_report_is_that_of_the_runs(tmp_path):
    source = ROOT / "docs" / "experiments.md"
    report = tmp_path / source.name
    shutil.copyfile(source, report)
    renew_report.main(report)

    assert report.read_text("utf-8") == source.read_text("utf-8")
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert len(drawn) > 20
    assert drawn <= {path.name for path in (ROOT / "docs" / "figures").iterdir()}


def test_pictures_that_are_shown_no_more_are_removed(tmp_path, monkeypatch):
    report, figures = tmp_path / "report.md", tmp_path / "figures"
    figures.mkdir()
    for name in ("old.png", "other.png"):
        (figures / name).write_bytes(b"")
    report.write_text(
        "# All\n\n## Where to put ELMo\n\n![Old](figures/old.png)\n\n## Rest\n\n"
        "![Other](figures/other.png)\n"
    )
    monkeypatch.setattr(renew_report, "ALL", renew_report.ALL[-1:])
    renew_report.main(report)

    text = report.read_text()
    assert text.startswith("# All\n\n## Where to put ELMo\n\n") and "old.png" not in text
    assert text.endswith("## Rest\n\n![Other](figures/other.png)\n")
    assert not (figures / "old.png").exists() and (figures / "other.png").exists()
    assert all((figures / name).exists() for name in renew_report.find_figures(text))


def test_runs_are_left_out_where_a_variant_has_none(tmp_path, monkeypatch):
    folder = "table1/table3_squad"
    shutil.copytree(renew_report.RESULTS / folder, tmp_path / folder)
    monkeypatch.setattr(renew_report, "RESULTS", tmp_path)
    compared = renew_report.Compared("placement", folder, "Questions")
    assert len(renew_report.summarise(compared)["rows"]) == 4

    (tmp_path / folder / "both_1_0.json").unlink()
    assert renew_report.summarise(compared) is None
    assert renew_report.summarise(compared._replace(folder="none")) is None
