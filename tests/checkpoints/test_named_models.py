"""Models by name: the bundled one, and those of other packages."""

import importlib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import spacy
import srsly

import spacy_elmo
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints import formats
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_name
from spacy_elmo.checkpoints.loaders import build_bundled_loader_v2, read_config
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.language_model.loading import load_language_model

from ..support.helpers import ROOT, assert_close


def get_broken():
    raise FileNotFoundError("its data are gone")


@pytest.fixture
def installed(monkeypatch, toy_folder):
    """A package with the model "toy", and one whose model is broken."""
    functions = {"toy": lambda: toy_folder, "broken": get_broken}
    entries = [EntryPoint(name, f"a_package:{name}", "spacy_elmo_models") for name in functions]
    real = formats.entry_points
    monkeypatch.setattr(formats, "entry_points", lambda group: [*real(group=group), *entries])
    monkeypatch.setattr(formats.models, "get", functions.get)


def test_the_larger_model_of_the_repository(monkeypatch):
    """Its package is not installed: `get_path` finds what lies beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "models" / "en_medium"))
    folder = importlib.import_module("spacy_elmo_en_medium").get_path()

    assert srsly.read_json(folder / "meta.json")["name"] == "en_medium"
    model = load_language_model(CheckpointFiles(folder))
    assert len(model.vocabulary) == 36_676


def test_a_name_stands_for_a_folder_everywhere(installed, toy_folder):
    assert read_config("toy") == read_config(toy_folder)
    words = [["green", "eggs"]]
    expected = spacy_elmo.load_embedder(toy_folder).embed(words)
    assert_close(spacy_elmo.load_embedder("toy").embed(words), expected)

    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo", config=spacy_elmo.pipe_config("toy"))
    elmo.load("toy")
    assert_close([nlp("green eggs").tensor], [expected[0].mean(axis=0)])

    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=spacy_elmo.pipe_config("toy"))
    loader = {"@misc": "spacy-elmo.BundledLoader.v2", "name": "toy"}
    nlp.config["initialize"]["components"] = {"elmo": {"loader": loader}}
    nlp.initialize()
    assert_close([nlp("green eggs").tensor], [expected[0].mean(axis=0)])


def test_paths_take_precedence_over_names(installed, toy_folder, tmp_path, monkeypatch):
    (tmp_path / "here" / "toy").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")

    assert find_name("toy") is None
    assert CheckpointFiles.of("toy").path == Path("toy")
    with pytest.raises(ValueError, match="EL031.*'toy'"):
        spacy_elmo.load_embedder("toy")
    # But a loader of names has no paths.
    assert build_bundled_loader_v2("toy").files.path == toy_folder


def test_unknown_names_are_an_error_with_the_known_ones(installed):
    with pytest.raises(ValueError, match=r"EL030.*'en_large'.*broken, en_small, toy"):
        build_bundled_loader_v2("en_large").files
    with pytest.raises(ValueError, match=r"EL030.*'en_large'.*broken, en_small, toy"):
        spacy_elmo.load_embedder("en_large")


def test_a_broken_package_is_an_error(installed, monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=r"EL189.*'broken'.*its data are gone"):
        spacy_elmo.load_embedder("broken")
    monkeypatch.setattr(formats.models, "get", lambda name: lambda: tmp_path / "gone")
    with pytest.raises(ValueError, match=r"EL189.*'toy'.*no folder '.*gone'"):
        spacy_elmo.load_embedder("toy")


def test_two_packages_with_one_name_are_an_error(installed, monkeypatch, toy_folder):
    real = formats.entry_points
    for value in ("a_package:toy", "another:get_path"):
        entries = [*real(group="spacy_elmo_models"), EntryPoint("toy", value, "spacy_elmo_models")]
        monkeypatch.setattr(formats, "entry_points", lambda group, found=entries: found)
        if value == "a_package:toy":
            assert spacy_elmo.load_embedder("toy")
    with pytest.raises(ValueError, match=r"EL189.*'toy'.*a_package:toy, another:get_path"):
        spacy_elmo.load_embedder("toy")


def test_the_bundled_model_is_known_by_each_of_its_names(tmp_path, monkeypatch):
    monkeypatch.chdir(formats.BUNDLED.parent)
    for name in ("", "en_small", str(formats.BUNDLED), "../data/en_small"):
        assert formats.is_bundled(name)
    for name in ("en_medium", str(tmp_path), "."):
        assert not formats.is_bundled(name)


def test_weights_of_an_installed_model_are_named_in_their_place(installed, tmp_path, monkeypatch):
    def make(**config):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={**spacy_elmo.pipe_config("toy"), **config}).load("toy")
        return nlp

    nlp, whole = make(installed_weights="toy"), make()
    nlp.to_disk(tmp_path / "named")
    whole.to_disk(tmp_path / "whole")

    sizes = [(tmp_path / name / "elmo" / "model").stat().st_size for name in ("named", "whole")]
    assert sizes[0] < 1000 < sizes[1]
    text, words = "green eggs", [["green", "eggs"]]
    expected = [whole(text).tensor]
    assert_close([spacy.load(tmp_path / "named")(text).tensor], expected, 0)
    assert_close([make().from_bytes(nlp.to_bytes())(text).tensor], expected, 0)
    layers = [spacy_elmo.load_embedder(tmp_path / n).embed(words) for n in ("named", "whole")]
    assert_close(*layers, 0)

    config = read_config("toy")
    write_native(BiLM(config), tmp_path / "new")
    monkeypatch.setattr(formats.models, "get", lambda name: lambda: tmp_path / "new")
    with pytest.raises(ValueError, match="EL340.*'toy'.*trained with"):
        spacy.load(tmp_path / "named")
    with pytest.raises(ValueError, match="EL340.*'toy'"):
        nlp.to_disk(tmp_path / "other")
