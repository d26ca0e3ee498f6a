"""projects/serve: what is wrong at the start is one line, with an exit code."""

import os
import re
import shutil
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from .support.helpers import ROOT
from .support.toy_service import PIPELINE, Server, cli, find_offers, load_pipeline


def start(*arguments, code, **env):
    """What a server prints that does not start."""
    result = CliRunner().invoke(cli, [str(each) for each in arguments], env=env)
    assert result.exit_code == code and "Traceback" not in result.output, result.output
    # A traceback is the exception's; Typer prints it.
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


def test_an_address_that_cannot_be_had_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        printed = start(PIPELINE, "--port", port, code=1)
    assert re.fullmatch(rf"Cannot listen on 127.0.0.1:{port}: .+\.\n", printed)
    printed = start(PIPELINE, "--host", "a" * 80, code=1)
    assert re.fullmatch(r"Cannot listen on a+:8000: .+\.\n", printed)


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_a_port_that_is_none_is_said(port):
    assert "--port" in start(PIPELINE, "--port", port, code=2)


def test_a_wrong_setting_is_said():
    assert "batch_texts = 0 is not possible" in start(PIPELINE, "--batch-texts", 0, code=2)
    for wrong in ({"ELMO_SERVICE_LOG_LEVEL": "verbose"}, {"ELMO_SERVICE_SECONDS": "inf"}):
        start(PIPELINE, code=2, **wrong)
    printed = start(PIPELINE, "--log-level", "verbose", code=2)
    assert "log_level = 'verbose'" in printed and "debug" in printed


def test_more_connections_than_open_files_are_said(monkeypatch):
    resource = pytest.importorskip("resource")
    limits = {"soft": 256, "hard": 500}

    def set_limits(kind, pair):
        if pair[0] > limits["hard"]:
            raise ValueError("current limit exceeds maximum limit")
        limits["soft"], limits["hard"] = pair

    monkeypatch.setattr(resource, "getrlimit", lambda kind: tuple(limits.values()))
    monkeypatch.setattr(resource, "setrlimit", set_limits)
    printed = start(PIPELINE, "--connections", 300, code=1)
    assert printed.startswith(
        "Cannot have connections = 300: 672 open files are needed, at most 500"
    )
    assert limits == {"soft": 256, "hard": 500}
    # The next mistake.
    assert "Cannot load" in start("no/such", "--connections", 20, "--port", 0, code=1)
    assert limits == {"soft": 392, "hard": 500}


@pytest.mark.parametrize("host, name", [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_the_address_is_one_that_a_client_can_use(host, name, monkeypatch):
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, 0), family=family).close()
    except OSError:
        pytest.skip("no such address on this machine")
    monkeypatch.setattr(Server, "run", lambda self, sockets: None)
    assert f"Serving on http://{name}:" in start(PIPELINE, "--host", host, "--port", 0, code=0)


def truncate(path):
    path.write_bytes(path.read_bytes()[:20])


DAMAGES = {
    "nothing": shutil.rmtree,
    "config": lambda folder: (folder / "config.cfg").write_text("{"),
    "tokenizer": lambda folder: truncate(folder / "tokenizer"),
    "strings": lambda folder: truncate(folder / "vocab" / "strings.json"),
    "weights": lambda folder: truncate(folder / "tagger" / "model"),
    "component": lambda folder: shutil.rmtree(folder / "ner"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_pipeline_is_said(damage, tmp_path):
    folder = tmp_path / "pipeline"
    shutil.copytree(PIPELINE, folder)
    damage(folder)

    printed = start(folder, "--port", 0, code=1)

    (line,) = printed.splitlines()
    assert line.startswith(f"Cannot load '{folder}': ") and len(line) < 800


def test_a_pipeline_that_cannot_read_is_said(tmp_path):
    nlp = load_pipeline()
    nlp.add_pipe("textcat")
    nlp.to_disk(tmp_path)
    (line,) = start(tmp_path, "--port", 0, code=1).splitlines()
    assert line.startswith(f"Cannot load '{tmp_path}': ") and "ValueError" in line


def test_a_detailed_log_says_where_an_error_is_from(capfd, tmp_path):
    with pytest.raises(SystemExit, match="Cannot load"):
        cli([str(tmp_path), "--port", "0", "--log-level", "debug"], standalone_mode=False)
    assert "Traceback" in capfd.readouterr().err


def test_a_missing_package_is_named(tmp_path):
    # A folder before all others, with a uvicorn that is not there.
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError('gone', name='uvicorn')")
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "projects" / "serve")])
    result = subprocess.run(
        [sys.executable, "-m", "elmo_service", "x"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert result.stderr == (
        "There is no package 'uvicorn' here. Install all: `pip install 'spacy-elmo[serve]'`.\n"
    )


def test_a_pipeline_that_takes_its_vectors_away_offers_the_rest():
    nlp = load_pipeline()
    assert find_offers(nlp)[1] > 0
    others, _ = find_offers(nlp)
    nlp.add_pipe("doc_cleaner")
    assert find_offers(nlp) == ([name for name in others if name in ("tags", "entities")], 0)
