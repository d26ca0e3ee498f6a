"""The parts of a release agree with each other."""

import configparser
import re

import srsly

from .support.helpers import ROOT


def read_setup():
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    return setup["metadata"]


def test_versions_are_the_same():
    version = read_setup()["version"]

    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_all_extras_are_on_the_page():
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    page = (ROOT / "docs/install.md").read_text("utf-8")

    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == set(setup["options.extras_require"])


def test_the_example_of_spacys_universe_runs(capsys):
    entry = srsly.read_json(ROOT / "docs/universe.json")

    assert entry["id"] == entry["pip"] == read_setup()["name"]
    exec("\n".join(entry["code_example"]), {})
    assert "[" in capsys.readouterr().out


def test_workflows_and_templates_can_be_read():
    paths = [*ROOT.glob(".github/**/*.yml"), ROOT / "CITATION.cff"]

    assert paths and all(srsly.read_yaml(path) for path in paths)
