"""Places are tried before the work."""

import os
from pathlib import Path

import pytest
import spacy

from spacy_elmo.cli.outputs import require_output, require_pipeline_folder, writing


def test_a_place_that_can_be_written_stays_as_it_is(tmp_path):
    (tmp_path / "old.json").write_text("old")
    for path in (None, tmp_path / "new.json", tmp_path / "old.json", tmp_path / "a" / "b.json"):
        require_output(path)
    assert (tmp_path / "old.json").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "old.json"]
    require_output(Path("/dev/stdout"))
    os.mkfifo(tmp_path / "pipe")
    require_output(tmp_path / "pipe")


def test_a_place_that_cannot_is_told(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "x.json", Path("/proc/x.json"), Path("-")):
        with pytest.raises(ValueError, match=f"EL145.*{path}"):
            require_output(path)


def test_what_the_system_says_is_told(tmp_path):
    with pytest.raises(ValueError, match="EL145.*x.json.*No space left"), writing("x.json"):
        Path("/dev/full").write_bytes(b"x")


def test_a_pipeline_takes_the_place_of_a_pipeline_or_of_nothing(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "nlp")
    (tmp_path / "empty").mkdir()
    for name in ("nlp", "empty", "new", "a/b"):
        require_pipeline_folder(tmp_path / name)
    (tmp_path / "nlp" / "mine.txt").touch()
    (tmp_path / "empty" / "meta.json").touch()
    for name in ("nlp", "empty", "nlp/mine.txt"):
        with pytest.raises(ValueError, match=r"EL150.*(mine\.txt|meta\.json)"):
            require_pipeline_folder(tmp_path / name)
    with pytest.raises(ValueError, match="EL145"):
        require_pipeline_folder(Path("/proc/x/nlp"))


def test_a_pipeline_may_have_components_that_are_disabled(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("attribute_ruler")
    nlp.disable_pipe("sentencizer")
    nlp.disable_pipe("attribute_ruler")
    nlp.to_disk(tmp_path / "nlp")
    require_pipeline_folder(tmp_path / "nlp")


def test_what_would_be_removed_beside_a_pipeline_is_looked_at(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "nlp.previous")  # of a writer that was killed
    require_pipeline_folder(tmp_path / "nlp")
    (tmp_path / "nlp.previous" / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"EL150.*nlp\.previous.*notes\.txt"):
        require_pipeline_folder(tmp_path / "nlp")
