"""The scripts of benchmarks/ that compare settings: what they compare differs, in what they say."""

import sys

import pytest
import srsly

from spacy_elmo.experiments.run_settings import RunSettings
from spacy_elmo.experiments.runs import Run, make_run_config
from spacy_elmo.experiments.variants import Variant

from .support.helpers import ROOT

pytest.importorskip("typer")
sys.path.insert(0, str(ROOT / "benchmarks"))
import baselines
import mix_rates
import table1_tasks
import word_match

sys.path.remove(str(ROOT / "benchmarks"))


def test_learned_mixes_are_mixes_and_no_two_choices_are_one():
    settings = RunSettings("corpus", "tagger")
    listeners = []
    for title, mix, _ in mix_rates.list_choices([1.0, 32.0]):
        config = make_run_config(Run(Variant("run", title, ("input",), mix), 1.0, 0), settings)
        listener = config["components"]["tagger"]["model"]["tok2vec"]["input"]
        assert (listener["output"] == "mix") == title.startswith("learned")
        listeners.append(srsly.json_dumps(listener, sort_keys=True))
    *fixed, first, second = listeners
    assert len({*fixed, first}) == len(fixed) + 1 and first == second


@pytest.mark.parametrize("task", word_match.TASKS)
def test_elmo_stands_before_the_encoder_alone(task, tmp_path):
    settings = table1_tasks.make_settings(task, tmp_path)
    blocks = set()
    for choice in word_match.CHOICES:
        config = word_match.make_choice(choice, settings, tmp_path)
        model = config["components"][settings.component]["model"]
        tok2vec = model["tok2vec"]
        assert tok2vec.get("output") is None and bool(tok2vec.get("input")) == choice.has_elmo
        assert model["word_match"] == choice.word_match
        blocks.add(srsly.json_dumps(model, sort_keys=True))
    assert len(blocks) == len(word_match.CHOICES)


@pytest.mark.parametrize("side", baselines.SIDES)
@pytest.mark.parametrize("task", table1_tasks.TASKS)
def test_a_baseline_differs_in_one_setting(side, task, tmp_path):
    settings = table1_tasks.make_settings(task, tmp_path)
    made = {
        title: baselines.make_choice(side, change, settings, tmp_path)
        for title, change in baselines.CHOICES.items()
    }
    base = made.pop("the config")
    for changed in made.values():
        assert count_changes(base, changed) == 1


def count_changes(block, other):
    if not (isinstance(block, dict) and isinstance(other, dict)):
        return int(block != other)
    return sum(count_changes(block.get(key), other.get(key)) for key in {*block, *other})
