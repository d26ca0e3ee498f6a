"""benchmarks/shape_search.py: what it changes is possible."""

import sys
from pathlib import Path

import pytest

from spacy_elmo.pretraining.config import RunConfig
from spacy_elmo.pretraining.config_files import load_config

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from shape_search import VARIANTS, make_config


@pytest.mark.parametrize("name", VARIANTS)
def test_every_run_has_a_config_of_its_own(name, tmp_path):
    configs = {}
    for key in (name, "nothing changed"):
        path = tmp_path / "run.cfg"
        config = make_config(VARIANTS[key], 100, 4096)
        config["paths"]["train"] = "text.txt"
        config.to_disk(path, interpolate=False)
        configs[key] = load_config(path)
        RunConfig.check(configs[key])
    assert (configs[name] == configs["nothing changed"]) == (name == "nothing changed")
