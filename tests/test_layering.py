"""Imports point downwards: the table of docs/design.md, held against the source."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from .support.rooms import FILES, PICTURE, draw, find_imports, get_room
from .support.rooms import PACKAGE as ROOT

TESTS = Path(__file__).parent
DESIGN = ROOT.parent / "docs" / "design.md"


class Room(NamedTuple):
    """A row of the table: how low it lies, and which heavy packages it may import."""

    rank: int
    torch: bool
    spacy: bool


def read_rooms():
    """The table below "Rooms" in docs/design.md."""
    section = DESIGN.read_text("utf-8").partition("## Rooms")[2].partition("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].isdigit():
            for name in re.findall("`([a-z_]+)`", cells[1]):
                yield name, Room(int(cells[0]), bool(cells[3]), bool(cells[4]))


ROOMS = dict(read_rooms())


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_point_downwards(path):
    if path.name == "__init__.py" and len(path.parts) == 1:
        return
    for names in find_imports(path):
        if names[0] == "spacy_elmo":
            assert ROOMS[names[1]].rank < ROOMS[get_room(path)].rank or names[1] == get_room(
                path
            ), names
        if names[0] in ("torch", "spacy"):
            assert getattr(ROOMS[get_room(path)], names[0]), names


def test_tasks_know_nothing_of_each_other():
    for path in (path for path in FILES if get_room(path) == "tasks"):
        own = {path.parts[1], "shared"} if path.parts[1] != "shared" else {"shared"}
        for names in find_imports(path):
            if names[:2] == ["spacy_elmo", "tasks"]:
                assert names[2] in own, (path, names)


def test_the_table_has_all_rooms_and_no_other():
    assert set(ROOMS) == {get_room(path) for path in FILES} - {"__init__"}
    rooms = {path.parts[0] for path in FILES if len(path.parts) > 1}
    assert all((ROOT / name / "__init__.py").is_file() for name in rooms)


def test_the_drawing_is_that_of_the_code():
    assert PICTURE.read_text("utf-8") == draw()
    assert "(figures/rooms.svg)" in DESIGN.read_text("utf-8")


def test_one_name_means_one_file():
    # A command has the name of what it runs.
    names = Counter(path.stem for path in FILES if get_room(path) != "cli" and path.stem[0] != "_")
    assert [name for name, n in names.items() if n > 1] == []


@pytest.mark.parametrize("path", FILES, ids=str)
def test_functions_import_nothing_but_in_the_commands(path):
    top = list(find_imports(path, top_level_only=True))
    lazy = [names for names in find_imports(path) if names not in top]
    # A `try` around an optional package is at the top, too.
    optional = {"h5py", "matplotlib", "compression", "backports", "resource", "faiss", "nltk"}
    optional |= {"transformers", "pyarrow", "ray"}
    assert get_room(path) in ("cli", "__init__") or {names[0] for names in lazy} <= optional


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, spacy_elmo; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'spacy', 'thinc', 'numpy')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files_are_short():
    # The table of messages is as long as there are messages.
    for path in (path for path in FILES if path.name != "errors.py"):
        assert len((ROOT / path).read_text("utf-8").splitlines()) <= 400, path


def test_tests_have_the_same_rooms():
    folders = {path.parent.name for path in TESTS.glob("*/test_*.py")}
    assert folders == {path.parts[0] for path in FILES if len(path.parts) > 1}


@pytest.mark.parametrize("page", sorted((ROOT.parent / "docs").glob("*.md")), ids=lambda p: p.name)
def test_files_that_docs_name_are_there(page):
    for path in re.findall(r"`([\w/]+\.py)`", page.read_text("utf-8")):
        places = (
            ROOT / path,
            TESTS / path,
            ROOT.parent / path,
            ROOT.parent / "benchmarks" / path,
            *ROOT.glob(f"*/{path}"),
        )
        assert any(place.is_file() for place in places), path
