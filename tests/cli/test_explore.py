"""`spacy elmo explore`."""

import asyncio
import re
import signal
import subprocess
import sys
import webbrowser

import httpx
import pytest
import spacy

from spacy_elmo.explore import app as page

from ..support.helpers import make_nlp
from .test_commands import run


@pytest.fixture
def pipeline(tmp_path):
    make_nlp().to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


@pytest.fixture
def served(monkeypatch):
    """What would be served, instead of doing it."""
    apps = []

    def note(app, opened):
        apps.append(app)
        opened.close()

    monkeypatch.setattr(page, "run_server", note)
    return apps


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_the_page_is_served_until_ctrl_c(pipeline):
    command = [sys.executable, "-m", "spacy", "elmo", "explore", pipeline, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        lines = iter(process.stdout.readline, "")
        url = next(match[0] for line in lines if (match := re.search(r"http://[^ ]+/", line)))
        with httpx.Client(base_url=url, timeout=30) as client:
            assert "spacy-elmo" in client.get("/").text
            answer = client.post("/api/read", json={"text": "I like ham."})
            assert len(answer.json()["lines"][0]["tokens"]) == 4
            # An open connection does not keep it from ending.
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)

    assert process.returncode == 0 and url.startswith("http://127.0.0.1:")
    assert "no longer served" in err and "Traceback" not in err


def test_index_and_language_model_are_taken(pipeline, weights, tmp_path, served, monkeypatch):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("The bank of the river.\n")
    run("elmo", "index", tmp_path / "text", tmp_path / "index", "--weights", weights)
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)

    printed = run(
        "elmo", "explore", pipeline, "--index", tmp_path / "index", "--language-model",
        "en_small", "--port", 0, "--open",
    )  # fmt: skip

    url = re.search(r"http://127.0.0.1:\d+/", printed)[0]
    assert len(served) == 1 and opened == [url]


def test_what_cannot_be_served_is_told(pipeline, weights, tmp_path, served):
    plain = spacy.blank("en")
    plain.add_pipe("sentencizer")
    plain.to_disk(tmp_path / "plain")
    command = ["elmo", "explore", pipeline, "--port", 0]

    assert "EL171" in run("elmo", "explore", tmp_path / "none", "--port", 0, exit_code=1)
    assert "EL270" in run("elmo", "explore", tmp_path / "plain", "--port", 0, exit_code=1)
    assert "EL043" in run(*command, "--index", tmp_path / "none", exit_code=1)
    # Weights without a softmax.
    assert "EL074" in run(*command, "--language-model", weights, exit_code=1)
    run("elmo", "explore", pipeline, "--port", 70000, exit_code=2)
    assert not served


async def ask(app):
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return (await client.get("/api/pipeline")).json()


def test_limits_are_those_of_the_options(pipeline, served):
    names = ("max_chars", "max_lines", "max_tokens", "seconds")
    options = [
        part for i, key in enumerate(names, 30) for part in (f"--{key.replace('_', '-')}", i)
    ]
    run("elmo", "explore", pipeline, "--port", 0, *options)

    limits = asyncio.run(ask(served[0]))["limits"]
    assert [limits[key] for key in names] == [30, 31, 32, 33]


def test_a_page_for_others_is_warned_of(pipeline, served):
    printed = run("elmo", "explore", pipeline, "--host", "0.0.0.0", "--port", 0)
    assert "Everybody" in printed and "'0.0.0.0'" in printed and len(served) == 1
    assert "Everybody" not in run("elmo", "explore", pipeline, "--port", 0)


def test_packages_that_are_missing_are_told(pipeline, served, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    printed = run("elmo", "explore", pipeline, exit_code=1)
    assert "fastapi" in printed and "spacy-elmo[explore]" in printed
    assert "uvicorn" not in printed
