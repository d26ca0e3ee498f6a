"""`spacy elmo report`: results of any origin as one report."""

import os

import pytest
import srsly

from spacy_elmo.experiments.html_pages import render_report
from spacy_elmo.experiments.report_blocks import Heading, Picture, Section, Table, Text
from spacy_elmo.experiments.report_markdown import to_markdown
from spacy_elmo.experiments.results import read_results, write_result

from ..support.damage import each_mutation, replace_by_others
from .test_commands import run

SETTINGS = {"max_steps": 4, "eval_frequency": 2, "patience": 0}
ROW = {
    "variant": "plain", "title": "without ELMo", "share": 1.0, "seeds": [0], "n_docs": 7,
    "dev": [50.0], "test": [], "curve": [{"step": 0, "scores": [50.0]}], "mixes": [[]],
}  # fmt: skip
GAIN = {
    "score": "tag_acc", "seconds": 3, "settings": SETTINGS,
    "rows": [ROW, {**ROW, "variant": "input", "title": "with ELMo", "dev": [75.0]}],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    for title in ("one", "two <b>"):
        write_result(tmp_path / "results" / title[:3] / "gain.json", "gain", title, GAIN)
    srsly.write_json(tmp_path / "results" / "other.json", {"digest": "sha256:1", "a": 1})
    srsly.write_json(tmp_path / "results" / "list.json", [1])
    # As Python's `json.dump` writes it.
    (tmp_path / "results" / "nan.json").write_text('{"loss": NaN}')
    return tmp_path / "results"


def test_results_are_found_however_deep(folder):
    part = folder / "plain_1_0.partial" / "out"
    part.mkdir(parents=True)
    (part / "meta.json").write_text("{")

    found = read_results(folder)

    assert [path.relative_to(folder).as_posix() for path in found] == [
        "one/gain.json",
        "two/gain.json",
    ]
    assert [result["title"] for result in found.values()] == ["one", "two <b>"]


def test_mutations_are_told_or_harmless(folder):
    expected = list(read_results(folder).values())
    n_told = 0
    for name, kind in each_mutation(folder, folder.parent / "copy", 60):
        try:
            found = read_results(folder.parent / "copy")
        except ValueError as err:
            assert "[EL142]" in str(err) or "[EL103]" in str(err)
            n_told += 1
        else:
            # A flipped name of the digest is one key more.
            kept = [{key: r[key] for key in expected[0]} for r in found.values()]
            assert kept == expected, f"{kind} in {name}"
    assert n_told > 100


def test_other_things_are_said(folder, tmp_path):
    path = folder / "one" / "gain.json"
    for kind in replace_by_others(path):
        if kind != "nothing":
            printed = run("elmo", "report", folder, tmp_path / "x.md", exit_code=1)
            assert "[EL10" in printed and "gain.json" in printed.replace("\n", "")


@pytest.mark.parametrize(
    "changes",
    [
        *({key: None} for key in ("rows", "settings", "versions")),
        {"rows": []},
        {"rows": [1]},
        {"rows": [{}]},
        {"rows": [{**ROW, "dev": "x"}]},
        {"rows": [{**ROW, "dev": []}]},
        {"rows": [{**ROW, "title": {}}]},
        {"title": 3},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_a_result_that_lacks_something_is_said(folder, tmp_path, changes):
    content = {**GAIN, **changes}
    write_result(folder / "gain.json", "gain", "x", content)

    printed = run("elmo", "report", folder, tmp_path / "x.md", exit_code=1)

    assert "[EL149]" in printed and "results/gain.json" in printed.replace("\n", "")
    assert not (tmp_path / "x.md").exists()


def test_places_that_cannot_be_written_are_said_first(folder, tmp_path):
    assert "directory" in run("elmo", "report", folder, tmp_path, exit_code=2)
    assert "EL145" in run("elmo", "report", folder, "/proc/x/report.md", exit_code=1)
    (tmp_path / "x.html").mkdir()
    assert "EL145" in run("elmo", "report", folder, tmp_path / "x.md", exit_code=1)
    assert not (tmp_path / "figures").exists()


def test_long_titles_have_names_that_fit(folder, tmp_path):
    write_result(folder / "gain.json", "gain", "word " * 500, GAIN)
    run("elmo", "report", folder, tmp_path / "x.md")
    assert all(len(name) < 120 for name in os.listdir(tmp_path / "figures"))


def test_words_are_no_markup():
    blocks = [
        Heading("a\n# b <img src=x>"),
        Text("[x](javascript:1) & ![y](http://z)"),
        Table(("<S>", "a|b"), [("x\ny", "1")]),
    ]
    text = to_markdown("t\n<script>", [Section("s", blocks)], None)

    assert text.splitlines()[0] == "# t &lt;script>"
    assert "### a # b &lt;img src=x>" in text
    assert "](" not in text and "&amp;" in text
    assert "| &lt;S> | a\\|b |" in text and "| x y | 1 |" in text


def test_pages_escape_everything(tmp_path):
    (tmp_path / "x.png").write_bytes(b"<png>")
    blocks = [
        Heading("<h>"),
        Text("a & <t>"),
        Table(("<c>",), [("<d>",)]),
        Picture(tmp_path / "x.png", "'\"><script>"),
    ]
    page = render_report("<title>", [Section("<s>", blocks)])

    assert page.count("&lt;title&gt;") == 2
    for text in (
        "<h2>&lt;s&gt;<",
        "<h3>&lt;h&gt;<",
        "<p>a &amp; &lt;t&gt;<",
        ">&lt;c&gt;<",
        ">&lt;d&gt;<",
    ):
        assert text in page
    assert "<script>" not in page and "&#39;&#34;&gt;" in page
    assert "data:image/png;base64,PHBuZz4=" in page
