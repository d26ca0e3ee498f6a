"""docs/embed.md: its blocks run one after the other, with all the libraries that it names."""

import re
import shlex

import pytest
import spacy
from spacy.cli import app
from typer.testing import CliRunner

from spacy_elmo.bulk.bulk_inputs import READERS
from spacy_elmo.bulk.bulk_settings import FORMATS, UNITS
from spacy_elmo.bulk.rows import COLUMNS

from ..support.pages import find_blocks, read_page

PAGE = "docs/embed.md"
TEXT = ["A ship sank in a storm.", "The ship sailed through the storm.", "Green eggs and ham."]


@pytest.mark.filterwarnings("ignore")
def test_blocks_run_one_after_the_other(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    spacy.registry.cli.get_all()
    (tmp_path / "text").mkdir()
    lines = TEXT + [f"Line {i} says that {i * i} is a number." for i in range(300)]
    (tmp_path / "text/a.txt").write_text("\n".join(lines))
    names, printed = {}, ""
    for language, code in find_blocks(PAGE):
        if language == "python":
            exec(code, names)
        elif language == "bash":
            for command in code.splitlines():
                result = CliRunner().invoke(app, shlex.split(command)[3:])
                assert result.exit_code == 0, result.output
                printed += result.output

    shown = capsys.readouterr().out
    assert "(303, 512)\n" in shown and "\n(512,)\n" in shown
    assert "[('A ship sank in a storm.', 1.0" in shown
    assert names["rows"][0, 0] == 0 and names["scores"][0, 0] == pytest.approx(1, abs=1e-3)
    assert "303 sentences of 1 source " in " ".join(printed.split())
    assert "ship" in printed


@pytest.mark.parametrize("name", [*READERS, *UNITS, *FORMATS, *sum(COLUMNS.values(), ())])
def test_the_tables_are_complete(name):
    assert re.search(rf"`[^`]*\b{name}\b[^`]*`|\b{name}\b", read_page(PAGE))
