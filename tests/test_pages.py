"""The code of README and docs/ runs as it stands, links lead somewhere, tables are complete."""

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import srsly
from spacy.tokens import DocBin
from thinc.api import get_current_ops, set_current_ops

from spacy_elmo.pipeline.architectures import build_elmo_v2
from spacy_elmo.pipeline.elmo import make_elmo
from spacy_elmo.pipeline.presets import PRESETS

from .support.helpers import ROOT
from .support.pages import (
    MADE,
    PAGES,
    blocks,
    blocks_in_order,
    find_anchors,
    find_blocks,
    find_links,
    read_page,
)
from .support.toy_corpora import make_docs
from .support.toy_pipelines import write_trained_pipeline, write_vectors_pipeline
from .support.toy_wordnet import make_lines, write_wordnet
from .test_registry import NAMES

# Pages whose code has tests of its own.
OWN = ("docs/embed.md", "docs/serving.md", "docs/tasks.md")
PYTHON = [page for page in PAGES if blocks(page, "python") and page not in OWN]
COMMANDS = [page for page in PAGES if blocks(page, "bash") and page not in OWN]
# Pages with commands that no test runs as they stand, and why.
NOT_RUN = {
    "docs/contributing.md": "the repository has no address yet",
    "docs/embed.md": "they need a cluster; tests/bulk has one of its own",
    "docs/guides/explore.md": "it ends with Ctrl-C; tests/cli starts it",
    "docs/install.md": "they fetch packages; .ci/run installs",
    "docs/model.md": "they install a package; tests/checkpoints load its model",
    "docs/rivals.md": "it takes hours; tests/test_rivals.py takes moments",
    "docs/security.md": "it takes an hour; tests/test_fuzz.py takes moments",
    "docs/tasks.md": "it needs a pipeline with all tasks; tests/cli has one",
    "docs/tour.md": "they fetch a treebank",
}
LANGUAGES = {"", "python", "python skip", "python theirs", "bash", "bash skip", "bash curl", "ini"}
# What is printed somewhere.
PRINTED = {"README.md": "(9, 512)", "docs/tour.md": "(3, 3, 512)"}
QUICK = {"experiment": ["--max-steps", "2", "--seeds", "0"]}


@pytest.fixture
def folder(tmp_path, toy_folder, monkeypatch):
    """A working directory with what the pages name."""
    (tmp_path / "path" / "to").mkdir(parents=True)
    shutil.copytree(toy_folder, tmp_path / "path" / "to" / "weights")
    for name in ("text", "heldout"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text("I like green eggs. The Bank does not!\n" * 30)
    for name in ("text", "heldout"):
        (tmp_path / "korean" / name).mkdir(parents=True)
        (tmp_path / "korean" / name / "x.txt").write_text(
            "항구에 배가 들어왔다 .\n이 배가 달다 .\n" * 30, "utf-8"
        )
    (tmp_path / "sentences.txt").write_text("I like green eggs .\n" * 30)
    write_trained_pipeline(tmp_path / "en_core_web_sm")
    write_vectors_pipeline(tmp_path / "en_core_web_md")
    write_wordnet(tmp_path / "wordnet/dict")
    for name in ("semcor", "held_out"):
        srsly.write_jsonl(tmp_path / f"{name}.jsonl", make_lines())
    (tmp_path / "corpus").mkdir()
    for i, name in enumerate(("train", "dev", "test")):
        DocBin(docs=make_docs(20, i)).to_disk(tmp_path / f"corpus/{name}.spacy")
        shutil.copy(tmp_path / f"corpus/{name}.spacy", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_not_run_has_a_reason():
    found = [(page, *block) for page in PAGES for block in find_blocks(page)]
    assert {language for _, language, _ in found} == {*LANGUAGES, "text"}
    # Commands in an environment that is not this one are "text".
    commands = re.compile(r"(\S*/)?(python|pip|git|make) ")
    skipped = {
        page
        for page, language, code in found
        if language == "bash skip" or (language == "text" and commands.match(code))
    }
    assert skipped == set(NOT_RUN)


@pytest.fixture(autouse=True)
def ops():
    """A page may say which matrix products are faster."""
    before = get_current_ops()
    yield
    set_current_ops(before)


@pytest.mark.parametrize("page", PYTHON)
def test_python_blocks_run_one_after_the_other(page, folder, capsys):
    names = {}
    for code in blocks(page, "python"):
        exec(code, names)

    assert PRINTED.get(page, "") in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMANDS)
def test_commands_run_one_after_the_other(page, folder):
    names, env = {}, dict(os.environ)
    for language, code in blocks_in_order(page):
        if language in ("python", "python skip"):
            exec(code, names)
        for command in code.splitlines() if language == "bash" else ():
            run_command(command, env)


def run_command(command, env):
    program, *words = shlex.split(command)
    if program == "export":
        env.update(word.split("=") for word in words)
    elif program == "make":
        # .ci/run has these two.
        assert words in (["demo"], ["test"])
    # Extras are what the tests are installed with.
    elif program != "pip":
        assert program == "python"
        run([*words, *QUICK.get(words[3], []), *shorten(words)], env)


def shorten(words):
    if words[3] == "pretrain":
        return ["--training.max_steps", "2"]
    if words[2] != "train":
        return []
    return ["--training.max_steps", "2", "--training.eval_frequency", "1"]


def run(words, env=None):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    here = (ROOT / page).parent
    for link in find_links(page):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (here / path).resolve() if path else ROOT / page
        if is_made(target):
            continue
        assert target.exists(), link
        if anchor:
            assert anchor in find_anchors(target.relative_to(ROOT).as_posix()), link


def is_made(target):
    docs = ROOT / "docs"
    if docs not in target.parents or target.exists():
        return False
    return target.relative_to(docs).as_posix().startswith(MADE)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_pages_of_the_site_stay_in_it(page):
    docs = ROOT / "docs"
    outside = [
        link
        for link in find_links(page)
        if not link.startswith(("http", "#"))
        and docs not in ((ROOT / page).parent / link).resolve().parents
    ]
    assert not outside


def test_readme_is_short():
    assert len(read_page("README.md").splitlines()) <= 120


@pytest.mark.parametrize("function", [build_elmo_v2, make_elmo])
def test_settings_are_in_the_tables(function):
    settings = set(inspect.signature(function).parameters) - {"nlp", "name", "model"}
    page = read_page("docs/reference/settings.md")

    assert {name for name in settings if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("name", [*PRESETS, *NAMES["spacy_architectures"], *NAMES["spacy_misc"]])
def test_names_are_mentioned(name):
    assert any(name.removeprefix("spacy-elmo.") in read_page(page) for page in PAGES)
