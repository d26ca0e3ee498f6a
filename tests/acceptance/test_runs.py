"""Long jobs: killed and resumed, they give what one run would have given."""

import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
import spacy
import srsly

from spacy_elmo import load_embedder, pipe_config

from .toys import RANDOM, SHAPE, run


def kill_when(command, has_begun):
    """Start a command, and kill it as soon as it has begun."""
    process = subprocess.Popen([sys.executable, "-m", "spacy", *map(str, command)])
    end = time.monotonic() + 120
    while not has_begun() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert has_begun()


def write_lines(path, n, word="eggs"):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"Sam number {i % 7} eats green {word} and {'ham' * (1 + i % 3)}." for i in range(n)]
    path.write_text("\n".join(lines))
    return path


def test_a_killed_pretraining_resumes_to_the_same_weights(tmp_path):
    write_lines(tmp_path / "train/a.txt", 150)
    write_lines(tmp_path / "dev/b.txt", 20)
    config = tmp_path / "pretrain.cfg"
    run("elmo", "init-config", config, "--pretraining")
    settings = {
        **{f"bilm.{key}": value for key, value in SHAPE.items()},
        "paths.train": tmp_path / "train",
        "paths.dev": tmp_path / "dev",
        "corpus.buffer_tokens": 600,
        "corpus.min_count": 1,
        "training.batch_tokens": 100,
        "training.softmax.n_samples": 10,
        "training.max_steps": 60,
        "training.save_frequency": 5,
        "training.eval_frequency": 20,
        "training.dropout": 0.1,
    }
    options = [
        part
        for key, value in settings.items()
        for part in (f"--{key}", str(value).lower() if isinstance(value, bool) else value)
    ]
    command = ("elmo", "pretrain", config)
    run(*command, tmp_path / "whole", *options)

    killed = tmp_path / "killed"
    kill_when([*command, killed, *options], lambda: any(killed.glob("checkpoints/step-*")))
    assert not (killed / "model-last" / "model.safetensors").exists()
    run(*command, killed, *options, "--resume")

    expected = safetensors.numpy.load_file(tmp_path / "whole/model-last/model.safetensors")
    found = safetensors.numpy.load_file(killed / "model-last" / "model.safetensors")
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }
    logs = [list(srsly.read_jsonl(tmp_path / each / "log.jsonl")) for each in ("whole", "killed")]
    assert logs[0][-1]["dev_perplexity"] == logs[1][-1]["dev_perplexity"]

    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo", config=pipe_config(killed / "model-last"))
    elmo.load(killed / "model-last")
    doc = nlp("Sam eats eggs")
    embedded = load_embedder(killed / "model-last").embed([[t.text for t in doc]])[0]
    np.testing.assert_allclose(doc.tensor, embedded.mean(0), atol=1e-5)


@pytest.fixture
def weights(tmp_path):
    """Folder of a saved pipeline with a tiny biLM."""
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-elmo.Elmo.v2", **SHAPE}
    nlp.add_pipe("elmo", config={"model": model})
    nlp.config["initialize"]["components"]["elmo"] = {"loader": RANDOM}
    nlp.initialize()
    nlp.to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def read_rows(folder):
    rows = [
        row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()
    ]
    return sorted(rows, key=lambda row: str(sorted((k, str(v)) for k, v in row.items())))


@pytest.mark.parametrize("engine", [[], pytest.param(["--engine", "ray"], marks=pytest.mark.slow)])
def test_a_killed_embedding_resumes_to_the_same_rows(weights, tmp_path, engine):
    write_lines(tmp_path / "text/a.txt", 300)
    write_lines(tmp_path / "text/b.txt", 100, word="bread")
    (tmp_path / "text/c.txt").write_bytes(b"not UTF-8: \xff\xfe\n")
    command = ["elmo", "embed", tmp_path / "text"]
    options = ["--weights", weights, "--unit", "tokens", "--shard-chars", 400, *engine]
    run(*command, tmp_path / "whole", *options)

    killed = tmp_path / "killed"
    kill_when([*command, killed, *options], lambda: any(killed.rglob("*.parquet")))
    run(*command, killed, *options, "--resume")

    expected, found = read_rows(tmp_path / "whole"), read_rows(killed)
    assert len(expected) > 400 and found == expected
    rejects = [
        list(srsly.read_jsonl(next((tmp_path / each).glob("*rejects*"))))
        for each in ("whole", "killed")
    ]
    assert len(rejects[0]) == len(rejects[1]) == 1
