"""What is private in other packages: all that ours reads of it is in the table of
docs/design.md, with what happens where it is gone, and the test of that."""

import ast
import re
from pathlib import Path

from spacy.pipeline import Pipe, TrainablePipe
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from thinc.api import Model, PyTorchShim
from torch import nn

import spacy_elmo

ROOT = Path(spacy_elmo.__file__).parent
DESIGN = ROOT.parent / "docs" / "design.md"
# Public in spite of their names.
PUBLIC = {"_asdict", "_replace", "_fields", "_exit", "_"}
NAMESPACES = ("torch.ops.", "torch._C.")
# Classes of others that ours are subclasses of, as they are written.
BASES = {"Model": Model, "Tok2Vec": Tok2Vec, "Tok2VecListener": Tok2VecListener, "Pipe": Pipe,
         "TrainablePipe": TrainablePipe, "PyTorchShim": PyTorchShim,
         "nn.Module": nn.Module}  # fmt: skip
INHERITED = {
    name
    for base in BASES.values()
    for name in {*dir(base), *getattr(base, "__annotations__", ()), *getattr(base, "__slots__", ())}
}


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def find_own(tree):
    """Names that a file gives."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            # What is stored elsewhere than in `self` may overwrite another package's.
            if ast.unparse(node.value) == "self":
                yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def find_private(tree, methods):
    """Private attributes of others, private modules, operators without a public name.

    methods: names that our classes give, which other files' subclasses call by `self`.
    """
    own = set(find_own(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            path = ast.unparse(node)
            if path.startswith(NAMESPACES) and path.count(".") > 2:
                yield path
            elif is_private(node.attr) and node.attr not in own:
                is_method = path == f"self.{node.attr}" and node.attr in methods
                yield from () if is_method else (node.attr,)
        elif isinstance(node, ast.ClassDef):
            yield from find_overwritten(node)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if any(map(is_private, node.module.split("."))):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
            yield from (name for name in names if any(map(is_private, name.split("."))))
        elif isinstance(node, ast.JoinedStr) and "_is_mkldnn_" in ast.unparse(node):
            yield "_is_mkldnn_bf16_supported"
            yield "_is_mkldnn_fp16_supported"


def find_overwritten(definition):
    """Private names of another package's class that a subclass of it overwrites."""
    if {ast.unparse(base) for base in definition.bases} & set(BASES):
        for node in ast.walk(definition):
            name = getattr(node, "attr", None) or getattr(node, "name", None)
            if isinstance(name, str) and is_private(name) and name in INHERITED:
                yield name


def read_table():
    """The rows of the table below "What is not public"."""
    section = DESIGN.read_text("utf-8").partition("## What is not public")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_table_of_private_names_is_complete():
    trees = [ast.parse(path.read_text("utf-8")) for path in ROOT.rglob("*.py")]
    methods = {name for tree in trees for name in find_own(tree)}
    used = {name.split(".")[-1] for tree in trees for name in find_private(tree, methods)}

    listed = [name for row in read_table() for name in re.findall(r"`([^`]+)`", row[0])]

    assert {name.split(".")[-1] for name in listed} == used
    assert len(listed) == len(set(listed))


def test_each_private_name_has_a_place_a_guard_and_a_test():
    rows = read_table()

    assert len(rows) > 4
    for name, place, guard, test in rows:
        assert guard, name
        for path in re.findall(r"`([^`]+)`", place):
            assert (ROOT / path).is_file(), path
        paths = re.findall(r"`([^`]+)`", test)
        assert paths and all((ROOT.parent / "tests" / path).is_file() for path in paths), name
