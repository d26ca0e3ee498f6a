"""Imports point downwards: the table of docs/design.md, held against the source."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spacy_elmo

ROOT = Path(spacy_elmo.__file__).parent

# Rank of each room. A file may import lower ranks and its own room.
RANKS = {
    "errors": 0,
    "registry": 0,
    "util": 1,
    "activation_store": 1,
    "activation_cache": 2,
    "characters": 1,
    "sentences": 1,
    "batch": 2,
    "bilm": 3,
    "checkpoints": 4,
    "spans": 4,
    "doc_arrays": 3,
    "token_keys": 3,
    "extensions": 4,
    "figures": 4,
    "pretraining": 5,
    "corpora": 5,
    "layers": 5,
    "similarity": 5,
    "loaders": 5,
    "speed": 5,
    "architectures": 6,
    "presets": 6,
    "pretraining_config": 6,
    "language_model": 6,
    "pending": 5,
    "teachers": 6,
    "languages": 6,
    "saved_tok2vec": 7,
    "listening": 6,
    "pipeline": 8,
    "layer_weights": 7,
    "neighbors": 7,
    "lm_pipe": 7,
    "lm_scores": 6,
    "lm_extensions": 4,
    "evaluation": 7,
    "results": 5,
    "search": 7,
    "senses": 7,
    "senses_pipe": 8,
    "experiments": 9,
    "run_parts": 8,
    "run_words": 9,
    "pretrain": 10,
    "corpus_report": 10,
    "report": 10,
    "cli": 11,
}
TORCH = {
    "bilm",
    "checkpoints",
    "loaders",
    "layers",
    "pretraining",
    "language_model",
    "teachers",
    "pretrain",
    "run_parts",
    "corpus_report",
    "speed",
    "lm_pipe",
    "lm_scores",
    "experiments",
}
NO_SPACY = {
    "util",
    "registry",
    "activation_store",
    "activation_cache",
    "characters",
    "sentences",
    "batch",
    "bilm",
    "checkpoints",
    "loaders",
    "figures",
    "pretraining",
    "language_model",
    "speed",
}

FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def room(path):
    return path.parts[0].removesuffix(".py")


def imports(path, top_level_only=False):
    """(module names, whether relative) that a file imports."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")
        elif isinstance(node, ast.ImportFrom):
            base = list(path.parts[: len(path.parts) - node.level])
            names = [*base, *(node.module.split(".") if node.module else [])]
            if names:
                yield ["spacy_elmo", *names]
            else:
                yield from (["spacy_elmo", alias.name] for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_point_downwards(path):
    if path.name == "__init__.py" and len(path.parts) == 1:
        return
    for names in imports(path):
        if names[0] == "spacy_elmo":
            assert RANKS[names[1]] < RANKS[room(path)] or names[1] == room(path), names
        if names[0] == "torch":
            assert room(path) in TORCH or room(path) == "cli"
        if names[0] == "spacy":
            assert room(path) not in NO_SPACY


@pytest.mark.parametrize("path", FILES, ids=str)
def test_functions_import_nothing_but_in_the_commands(path):
    top = list(imports(path, top_level_only=True))
    lazy = [names for names in imports(path) if names not in top]
    # A `try` around an optional package is at the top, too.
    optional = {"h5py", "matplotlib", "compression", "backports", "resource", "faiss", "nltk"}
    optional |= {"transformers"}
    assert room(path) in ("cli", "__init__") or {names[0] for names in lazy} <= optional


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
