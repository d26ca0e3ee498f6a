"""`spacy elmo weights` and `spacy-elmo.WeightsLogger.v1`."""

import json

import pytest
import spacy
import srsly
from thinc.api import Config

from spacy_elmo.pipeline.weights_logger import LayerWeights, collect_weights

from ..pipeline.test_listeners import ELMO, STOCK, tok2vec
from ..support.helpers import add_elmo, make_nlp
from .test_commands import corpus, run, with_corpus  # noqa: F401


def make_pipeline(**blocks):
    nlp = make_nlp()
    for name, block in blocks.items():
        model = {"@architectures": "spacy.Tagger.v2", "tok2vec": block}
        nlp.add_pipe("tagger", name=name, config={"model": model}).add_label("T")
    nlp.initialize()
    return nlp


def mixes_of(nlp, name):
    return [node for node in nlp.get_pipe(name).model.walk() if node.name == "scalar_mix"]


def test_every_mix_is_found_with_its_place():
    nlp = make_pipeline(stock=STOCK, alone=ELMO, both=tok2vec(output=ELMO))

    found = collect_weights(nlp)

    assert [(mix.component, mix.place) for mix in found] == [
        ("elmo", "shared"),
        ("alone", "alone"),
        ("both", "input"),
        ("both", "output"),
    ]
    assert all(mix.shares == pytest.approx([1 / 3] * 3) and mix.gamma == 1.0 for mix in found)


def test_values_are_those_of_the_mix():
    nlp = make_pipeline(alone=ELMO)
    mix = mixes_of(nlp, "alone")[0]
    factor = mix.attrs["settings"].learn_rate_factor
    mix.set_param("W", mix.ops.asarray1f([0.0, 1.0, 2.0]) / factor)
    mix.set_param("gamma", mix.ops.asarray1f([0.5]))

    assert collect_weights(nlp)[1] == LayerWeights(
        "alone", "alone", pytest.approx([0.09003, 0.24473, 0.66524], abs=1e-4), 0.5
    )


def test_places_survive_saving_and_replacing(tmp_path):
    nlp = make_pipeline(both=tok2vec(output=ELMO))
    places = [mix.place for mix in collect_weights(nlp)]
    nlp.to_disk(tmp_path / "saved")

    loaded = spacy.load(tmp_path / "saved")
    assert [mix.place for mix in collect_weights(loaded)] == places
    paths = ["model.tok2vec.input", "model.tok2vec.output"]
    loaded.replace_listeners("elmo", "both", paths)
    loaded.remove_pipe("elmo")
    assert [mix.component for mix in collect_weights(loaded)] == ["both", "both"]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_command_prints_draws_and_writes(tmp_path, ending):
    make_pipeline(alone=ELMO, both=tok2vec(output=ELMO)).to_disk(tmp_path / "saved")
    picture, figures = tmp_path / f"weights.{ending}", tmp_path / "weights.json"

    printed = run("elmo", "weights", tmp_path / "saved", "--output", picture, "--json", figures)

    assert "output" in printed and "0.333" in printed and "LSTM 2" in printed
    assert "no mix is learned" not in printed
    written = json.loads(figures.read_text())
    assert [mix["component"] for mix in written] == ["elmo", "alone", "both", "both"]
    assert picture.stat().st_size > 5000


def test_layers_side_by_side_are_no_mix(tmp_path):
    make_pipeline(alone={**ELMO, "output": "all"}).to_disk(tmp_path / "saved")
    printed = run("elmo", "weights", tmp_path / "saved", "--output", tmp_path / "w.png")
    assert "Where each share is 1, all layers stand side by side" in printed


def test_components_may_have_other_numbers_of_layers(tmp_path):
    nlp = make_nlp()
    add_elmo(nlp, "other", depth=1)
    nlp.to_disk(tmp_path / "saved")
    figures = tmp_path / "weights.json"
    command = ["elmo", "weights", tmp_path / "saved", "--output", tmp_path / "w.png"]
    printed = run(*command, "--json", figures)
    assert "0.500" in printed and "0.333" in printed
    assert [len(mix["shares"]) for mix in json.loads(figures.read_text())] == [3, 2]


@pytest.mark.parametrize("wrapped", [None, "spacy.ConsoleLogger.v1"])
def test_training_logs_the_mixes(tmp_path, toy_folder, corpus, wrapped):  # noqa: F811
    path, log, output = (tmp_path / name for name in ("config.cfg", "new/mixes.jsonl", "output"))
    weights = ["--options", toy_folder / "options.json", "--weights", toy_folder / "weights.hdf5"]
    run("elmo", "init-config", path, "--preset", "task_mix", "--pipeline", "tagger", *weights)
    run("init", "fill-config", path, path)
    config = Config().from_disk(path, interpolate=False)
    logger = {"@loggers": "spacy-elmo.WeightsLogger.v1", "path": str(log)}
    if wrapped:
        logger["logger"] = {"@loggers": wrapped, "progress_bar": False}
    config["training"]["logger"] = logger
    config["training"]["eval_frequency"] = 1
    config.to_disk(path)

    printed = run(
        "train",
        path,
        *with_corpus(corpus),
        "--output",
        output,
        "--training.max_steps",
        3,
        "--training.optimizer.use_averages",
        "false",
    )

    assert "TAG_ACC" in printed
    lines = list(srsly.read_jsonl(log))
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    tagger = [mix for line in lines for mix in line["mixes"] if mix["component"] == "tagger"]
    assert tagger[0]["gamma"] != tagger[-1]["gamma"]
    last = collect_weights(spacy.load(output / "model-last"))[1]
    # Without averages, what was evaluated is what was saved.
    assert last.gamma == pytest.approx(tagger[-1]["gamma"])
