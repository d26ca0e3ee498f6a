"""Every message is raised in some test, and reads well."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo import errors

from .support import message_use

SOURCE = "".join(
    p.read_text("utf-8")
    for p in Path(errors.__file__).parent.rglob("*.py")
    if p.name != "errors.py"
)
GROUPS = errors.Errors, errors.Warnings
MESSAGES = {
    code: vars(group)[code] for group in GROUPS for code in sorted(message_use.find_codes(group))
}


def test_there_are_messages():
    assert len(MESSAGES) > 30


def test_no_code_has_two_meanings():
    root = Path(errors.__file__).parents[1]
    server = (root / "projects/serve/elmo_service/refusals.py").read_text("utf-8")
    own = re.findall(r"^    (\w{2}\d{3}) = ", Path(errors.__file__).read_text("utf-8"), re.M)
    others = re.findall(r'"(EL\d{3})"', server)
    assert len(others) == 14
    assert sorted({*own, *others}) == sorted([*own, *others])


@pytest.mark.parametrize("code", MESSAGES)
def test_messages_are_used(code):
    """That each is raised in some test is for `message_use` to say, at the end of a run."""
    assert re.search(rf"(Errors|Warnings)\.{code}\b", SOURCE), f"{code} is never raised"


@pytest.mark.parametrize("code, text", MESSAGES.items(), ids=MESSAGES)
def test_messages_are_not_glued(code, text):
    # A forgotten space between two pieces: "word.Next", "word,next", or a double one.
    names = r"spacy(-elmo)?\.[A-Z]"
    assert not re.search(r"[a-z][.,;:][A-Z]|[a-z][,;][a-z]|  ", re.sub(names, "", text))
    assert text.endswith((".", "?"))


@pytest.mark.parametrize("code, text", MESSAGES.items(), ids=MESSAGES)
def test_no_message_sends_to_a_file_that_is_not_installed(code, text):
    folders = "docs|docs_build|tests|benchmarks|projects|models|spacy_elmo"
    assert not re.search(rf"\b({folders})/|\.md\b|README", text)


# A number before a plural, where it is never 1. Elsewhere `count_things` makes both words.
ALWAYS_SEVERAL = {
    "EL072", "EL093", "EL099", "EL102", "EL105", "EL107", "EL117", "EL118", "EL160", "EL168",
    "EL200", "EL226", "EL251", "EL253", "EL277", "EL336", "WL003", "WL028", "WL029", "WL052",
    "WL070",
}  # fmt: skip
PLURAL = r"\{(n|n_\w+|number|seconds|size|\w+_(steps|tokens))(:[^}]*)?\} (?!cuts)[a-z]+s\b"


def test_nothing_is_counted_as_1_things():
    assert {code for code, text in MESSAGES.items() if re.search(PLURAL, text)} == ALWAYS_SEVERAL


# ---- the check at the end of a run

CONFTEST = """
import sys
sys.path.insert(0, {root!r})
from spacy.errors import ErrorsWithCodes
from tests.support.message_use import MessageUse
from spacy_elmo_messages import Errors

def pytest_configure(config):
    config.pluginmanager.register(MessageUse(config, Errors))
"""
PACKAGE = """
from spacy.errors import ErrorsWithCodes

class Errors(metaclass=ErrorsWithCodes):
    EL001 = "One {thing}."
    EL002 = "Two."
    EL003 = "Three {thing}."
"""
RAISING = """
from spacy_elmo_messages import Errors

__name__ = "spacy_elmo.raising"

def one():
    raise ValueError(Errors.EL001.format(thing="a"))

def two():
    raise ValueError(Errors.EL002)

def three(template=Errors.EL003, is_wrong=False):
    if is_wrong:
        raise ValueError(template.format(thing="c"))
"""
TESTS = """
import pytest, raising
from spacy_elmo_messages import Errors

def test_one():
    with pytest.raises(ValueError, match="EL001"):
        raising.one()

def test_two():
    with pytest.raises(ValueError, match="EL002"):
        raising.two()

def test_three_is_handed_over_and_never_made():
    raising.three()

def test_looking_is_not_raising():
    assert Errors.EL003.format(thing="x") == "[EL003] Three x."
"""
WORKS = """
def test_four():
    with pytest.raises(ValueError, match="EL003"):
        raising.three(is_wrong=True)
"""


@pytest.fixture
def small_project(tmp_path):
    root = str(Path(__file__).resolve().parent.parent)
    (tmp_path / "tests").mkdir()
    (tmp_path / "setup.cfg").write_text("[tool:pytest]\ntestpaths = tests\nmarkers = slow\n")
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST.format(root=root))
    (tmp_path / "tests" / "spacy_elmo_messages.py").write_text(PACKAGE)
    (tmp_path / "tests" / "raising.py").write_text(RAISING)
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    return tmp_path


def run_pytest(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)


def test_a_whole_run_that_leaves_out_a_message_fails_also_in_processes(small_project):
    done = run_pytest(small_project, "-n", "2")

    assert done.returncode == 1
    assert "messages that no test raises" in done.stdout
    assert "4 passed" in done.stdout and "\nEL003\n" in done.stdout
    # A part of the tests need not raise all.
    assert run_pytest(small_project, "tests/test_it.py").returncode == 0


def test_a_whole_run_that_raises_all_passes(small_project):
    with (small_project / "tests" / "test_it.py").open("a") as file_:
        file_.write(WORKS)

    assert run_pytest(small_project).returncode == 0
