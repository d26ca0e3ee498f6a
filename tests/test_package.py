"""A pipeline as a Python package: the commands of the page about it, in a fresh environment."""

import os
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
import spacy

from .support.helpers import ROOT, assert_close
from .support.pages import blocks_in_order

CODE = """
import sys, spacy
nlp = spacy.load("en_elmo_vectors")
assert nlp.meta["license"].startswith("CC BY-SA 4.0") and len(nlp.meta["sources"]) == 3
sys.stdout.buffer.write(nlp("green eggs and ham").tensor.tobytes())
"""


@pytest.fixture
def run_fresh(tmp_path):
    """Run Python in an environment with all packages but this one and pip, without a network."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for path in Path(spacy.__file__).parent.parent.iterdir():
        if not path.name.lower().startswith(("pip", "__editable__", "spacy_elmo")):
            (packages / path.name).symlink_to(path)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    # pip reads "0" as --no-build-isolation.
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    environment = {**os.environ, **pip, "PYTHONPATH": str(packages)}

    def run(*arguments):
        command = [python, *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout

    return run


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_package_is_installed_in_a_fresh_environment(run_fresh, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clone = tmp_path / "path/to/spacy-elmo"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "spacy_elmo", clone / "spacy_elmo", ignore=ignore)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "docs/data.md"):
        (clone / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, clone / name)

    (_, code), (_, package), (_, wheels), (_, install) = blocks_in_order("docs/guides/deploy.md")[
        :4
    ]
    names = {}
    exec(code, names)
    subprocess.run([sys.executable, *shlex.split(package)[1:]], check=True)
    for command in (wheels, install):
        run_fresh("-m", *shlex.split(command))
    vectors = run_fresh("-c", CODE)

    expected = names["nlp"]("green eggs and ham").tensor
    found = np.frombuffer(vectors, dtype="float32").reshape(expected.shape)
    assert_close([found], [expected], atol=1e-6)
    assert "`CC BY-SA 4.0" in Path("en_elmo_vectors-0.0.0/README.md").read_text("utf-8")
