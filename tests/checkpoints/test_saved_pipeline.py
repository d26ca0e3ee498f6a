"""Weights of saved pipelines, read as those of any other checkpoint."""

import pytest
import spacy

from spacy_elmo import load_embedder, pipe_config
from spacy_elmo.checkpoints.native import read_meta
from spacy_elmo.layers.elmo_layers import get_embedder

from ..cli.test_commands import run
from ..support.helpers import add_elmo, assert_close, make_nlp

SENTENCES = [["green", "eggs"], ["ham"]]


@pytest.fixture
def nlp(tmp_path):
    nlp = make_nlp(seed=3)
    nlp.get_pipe("elmo").set_weights_meta({"licence": "CC0"})
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "pipeline")
    return nlp


@pytest.mark.parametrize("place", ["pipeline", "pipeline/elmo"])
def test_a_pipeline_is_a_checkpoint(nlp, tmp_path, place):
    expected = get_embedder(nlp.get_pipe("elmo").model)
    read = load_embedder(tmp_path / place)
    assert_close(read.embed(SENTENCES), expected.embed(SENTENCES), 0)

    other = spacy.blank("en")
    other.add_pipe("elmo", config=pipe_config(tmp_path / place)).load(tmp_path / place)
    assert_close([other("green eggs").tensor], [nlp("green eggs").tensor])


def test_fine_tuned_weights_are_converted(nlp, tmp_path):
    run("elmo", "convert", tmp_path / "pipeline", tmp_path / "weights")
    expected = get_embedder(nlp.get_pipe("elmo").model)
    assert_close(load_embedder(tmp_path / "weights").embed(SENTENCES), expected.embed(SENTENCES), 0)
    # Other notes of the pipeline are left out.
    expected = {"source": "pipeline", "lang": "en", "licence": "CC0"}
    assert read_meta(tmp_path / "weights") == expected


def test_one_of_several_is_named(nlp, tmp_path):
    add_elmo(nlp, "other", seed=4)
    nlp.to_disk(tmp_path / "both")
    with pytest.raises(ValueError, match="EL314.*elmo.*other"):
        load_embedder(tmp_path / "both")
    read = load_embedder(tmp_path / "both" / "other")
    expected = get_embedder(nlp.get_pipe("other").model)
    assert_close(read.embed(SENTENCES), expected.embed(SENTENCES), 0)


def test_pipelines_without_elmo_are_refused(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger").add_label("T")
    nlp.initialize()
    nlp.to_disk(tmp_path / "pipeline")
    for place in ("pipeline", "pipeline/tagger"):
        with pytest.raises(ValueError, match="EL314.*none"):
            load_embedder(tmp_path / place)


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("depth = 2", "depth = 1", "EL020"),
        ("max_chars = ", "max_chars = 9999999", "EL032"),
        ("[components.elmo]", "[components.elmo", "EL032|EL314"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(nlp, tmp_path, old, new, problem):
    path = tmp_path / "pipeline" / "config.cfg"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=problem):
        load_embedder(tmp_path / "pipeline")


def test_no_file_outside_of_the_pipeline_is_read(nlp, tmp_path):
    path = tmp_path / "pipeline" / "config.cfg"
    (tmp_path / "pipeline" / "elmo").rename(tmp_path / "elmo")
    path.write_text(path.read_text().replace("components.elmo", f"components.{tmp_path}/elmo"))
    with pytest.raises(ValueError, match="EL314.*none"):
        load_embedder(tmp_path / "pipeline")


def test_damaged_weights_are_refused(nlp, tmp_path):
    path = tmp_path / "pipeline" / "elmo" / "model"
    content = path.read_bytes()
    for damaged in (content[:-9], b"", content[:1000], b"\x80"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="EL116|EL103"):
            load_embedder(tmp_path / "pipeline")
