"""A pipeline as a Python package of its own."""

import os
import subprocess
import sys
import venv

import numpy as np
import pytest
import srsly

from .support.helpers import assert_close, make_nlp

CODE = """
import sys, spacy
nlp = spacy.load("en_toy")
sys.stdout.buffer.write(nlp("green eggs and ham").tensor.tobytes())
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_packaged_pipeline_gives_the_same_vectors(tmp_path):
    nlp = make_nlp()
    nlp.meta.update({"name": "toy", "version": "1.2.3"})
    nlp.to_disk(tmp_path / "pipeline")
    package = [sys.executable, "-m", "spacy", "package", tmp_path / "pipeline", tmp_path / "out"]
    (tmp_path / "out").mkdir()
    subprocess.run([*package, "--build", "wheel"], check=True, capture_output=True)

    (folder,) = (tmp_path / "out").iterdir()
    meta = srsly.read_json(folder / "meta.json")
    assert any(name.startswith("spacy-elmo") for name in meta["requirements"])
    (wheel,) = folder.glob("dist/*.whl")
    # Elsewhere: another environment, which sees the packages of this one.
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--no-deps", "--no-index", wheel],
        check=True, capture_output=True,
    )  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    result = subprocess.run([python, "-c", CODE], check=True, capture_output=True, env=environment)

    expected = nlp("green eggs and ham").tensor
    found = np.frombuffer(result.stdout, dtype="float32").reshape(expected.shape)
    assert_close([found], [expected], atol=1e-6)
