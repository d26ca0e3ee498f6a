"""The runs in benchmarks/results are those of the configs of now, so that none is made again."""

from dataclasses import fields

import pytest

from spacy_elmo.experiments.run_settings import RunSettings, read_settings
from spacy_elmo.experiments.runs import Run, hash_config
from spacy_elmo.experiments.variants import choose_variants
from spacy_elmo.files import read_checked_json

from ..support.helpers import ROOT

KEPT = ROOT / "benchmarks" / "results" / "table1"
# These had other settings (docs/tasks.md).
FORMER = {"table3_propbank", "table3_squad"}
FOLDERS = sorted(path.name for path in KEPT.iterdir()) if KEPT.exists() else []


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name not in FORMER])
def test_kept_runs_have_the_configs_of_now(folder, monkeypatch):
    # Where the workflows run.
    monkeypatch.chdir(ROOT)
    stored = read_settings(KEPT / folder)
    names = [field.name for field in fields(RunSettings)]
    settings = RunSettings(**{name: stored[name] for name in names if name in stored})
    suite = "placement" if folder.startswith("table3") else "vectors"
    variants = {variant.name: variant for variant in choose_variants(suite, 2)}
    paths = sorted((KEPT / folder).glob("*_*.json"))
    assert paths
    for path in paths:
        result = read_checked_json(path)
        run = Run(variants[result["variant"]], result["share"], result["seed"])
        assert hash_config(run, settings) == result["config"], path.name
