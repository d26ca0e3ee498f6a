"""Refusals of the server: their status and reason."""

import asyncio
import json
import logging
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys

import pytest
import spacy
from elmo_service import refusals
from elmo_service.cli import cli
from elmo_service.limits import Limits
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_service import (
    PIPELINE,
    PROJECT,
    create_app,
    load_pipeline,
    open_app,
    read_metrics,
    wait_until,
)
from typer.testing import CliRunner

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:.*WL003")]

JSON = {"content-type": "application/json"}
TOY = load_pipeline()
SMALL = {"max_texts": 2, "max_chars": 3000, "max_tokens": 4, "max_bytes": 9000}
BAD_BODIES = {
    "nothing": (b"", 422, "EL261.*body: "),
    "cut off": (b'{"texts": ["a', 400, "EL260.*no JSON in UTF-8"),
    "latin-1": (b'{"texts": ["caf\xe9"]}', 400, "EL260"),
    "deep": (b"[" * 8_000, 400, "EL260"),
    "another key": (b'{"texts": ["a"], "text": "b"}', 422, "EL261.*body.text: Extra inputs"),
    "a number": (b'{"texts": ["a", 3]}', 422, "EL261.*body.texts.1: .*string"),
    "no texts": (b'{"texts": []}', 422, "EL261.*at least 1"),
    "half a character": (b'{"texts": ["\\ud800"]}', 422, "EL261.*surrogate"),
    "bytes": (b"a" * 9_001, 413, "EL262.* 9001 bytes, at most 9000"),
    "texts": (b'{"texts": ["a", "b", "c"]}', 413, "EL262.* 3 texts, at most 2"),
    "characters": (b'{"texts": ["' + b"a" * 3_001 + b'"]}', 413, "EL262.* 3001 characters"),
    "tokens": (b'{"texts": ["a a a", "b b"]}', 413, "EL262.* 5 tokens, at most 4"),
    "punctuation": (b'{"texts": ["a", "' + b"$" * 2000 + b'"]}', 413, "EL263.* text 1 .* 2000"),
}


@pytest.mark.parametrize("content, status, reason", BAD_BODIES.values(), ids=BAD_BODIES)
async def test_bad_and_too_large_bodies_have_a_reason(content, status, reason):
    async with open_app(TOY, **SMALL) as (client, app):
        response = await client.post("/tags", content=content, headers=JSON)
        error = response.json()["error"]
        assert read_metrics(app)["elmo_refusals_total", error["code"]] == 1
    assert response.status_code == status
    assert re.search(reason, f"{error['code']} {error['reason']}")


KEYS = st.sampled_from(["texts", "pairs", "pooling", "a"])
JSON_VALUES = st.recursive(
    st.none() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.binary(max_size=60) | JSON_VALUES.map(json.dumps), max_size=5))
async def test_no_body_makes_the_server_fail(contents):
    async with open_app(TOY) as (client, _):
        for content in contents:
            for path in ("/tags", "/entities", "/vectors", "/similarity"):
                response = await client.post(path, content=content, headers=JSON)
                assert response.status_code in (200, 400, 413, 422), response.text
                assert list(response.json()) in (["results"], ["error"])


async def test_other_paths_methods_and_types_are_refused():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    text = {"content-type": "text/plain"}
    async with open_app(nlp) as (client, _):
        missing, wrong = await client.get("/x"), await client.get("/vectors")
        plain = await client.post("/vectors", content=b'{"texts": ["a"]}', headers=text)
        lacking = await client.post("/entities", json={"texts": ["a"]})
    answers = (missing, wrong, plain, lacking)
    assert [answer.status_code for answer in answers] == [404, 405, 422, 404]
    assert missing.json() == {"error": {"code": "HTTP404", "reason": "Not Found"}}
    assert re.search("EL268.* no entities; its components are: elmo", lacking.text)


async def send(client, *texts):
    return await client.post("/tags", json={"texts": list(texts)})


async def test_a_full_queue_refuses_and_a_stuck_pass_is_not_live():
    nlp = load_pipeline(gate=True)
    gate = nlp.get_pipe("toy_gate")
    async with open_app(nlp, queue_texts=3, stuck_seconds=0.2) as (client, app):
        gate.open.clear()
        first = asyncio.create_task(send(client, "a"))
        await wait_until(lambda: len(gate.sizes) == 2)
        waiting = [asyncio.create_task(send(client, "b")) for _ in range(3)]
        await wait_until(lambda: app.state.batcher.is_full)
        refused = await send(client, "c")
        await asyncio.sleep(0.3)
        states = [(await client.get(path)).status_code for path in ("/ready", "/live")]
        gate.open.set()
        answers = await asyncio.gather(first, *waiting)
        states += [(await client.get(path)).status_code for path in ("/ready", "/live")]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
    assert re.search("EL264.*3 texts wait already, at most 3", refused.text)
    assert states == [503, 503, 200, 200]


async def test_a_late_request_is_refused_and_not_read():
    nlp = load_pipeline(gate=True)
    gate = nlp.get_pipe("toy_gate")
    async with open_app(nlp, seconds=0.2, batch_texts=1) as (client, app):
        gate.open.clear()
        late = await asyncio.gather(send(client, "a"), send(client, "b", "c"))
        gate.open.set()
        assert (await send(client, "d")).status_code == 200
        assert read_metrics(app)["elmo_dropped_texts_total",] == 3
    assert [answer.status_code for answer in late] == [504, 504]
    assert re.search("EL266.*within 0.2 seconds", late[0].text)
    # At the start, the first text, and the last one.
    assert gate.sizes == [1, 1, 1]


async def test_a_text_that_fails_fails_its_own_request_only(caplog):
    texts = ["a", "b", "poison", "c", *(f"huge {i}" for i in range(8))]
    with caplog.at_level(logging.ERROR):
        async with open_app(load_pipeline(gate=True)) as (client, _):
            found = await asyncio.gather(*(send(client, text) for text in texts))
    answers = dict(zip(texts, found, strict=True))
    refused = answers.pop("poison")
    assert refused.status_code == 500
    assert "EL269" in refused.text and "poison" not in refused.text
    # A batch that needs too much memory is halved.
    assert {answer.status_code for answer in answers.values()} == {200}
    assert "RuntimeError: poison" in caplog.text


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_limits_are_finite_and_positive(seconds):
    with pytest.raises(ValueError, match=f"write_seconds = {seconds} is not possible"):
        Limits(write_seconds=seconds)


def start(*arguments, code, **env):
    """Output of a server that does not start."""
    result = CliRunner().invoke(cli, [str(each) for each in arguments], env=env)
    assert result.exit_code == code and "Traceback" not in result.output, result.output
    return result.output


def test_wrong_options_and_addresses_are_reported_in_a_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        printed = start(PIPELINE, "--port", port, code=1)
    assert re.fullmatch(rf"Cannot listen on 127.0.0.1:{port}: .+\.\n", printed)
    assert "--port" in start(PIPELINE, "--port", 99_999, code=2)
    assert "batch_texts = 0 is not possible" in start(PIPELINE, "--batch-texts", 0, code=2)
    start(PIPELINE, code=2, ELMO_SERVICE_LOG_LEVEL="verbose")


@pytest.mark.parametrize("name", [".", "config.cfg", "tagger/model", "vocab/strings.json"])
def test_a_damaged_pipeline_is_reported_in_a_line(name, tmp_path):
    folder = tmp_path / "pipeline"
    shutil.copytree(PIPELINE, folder)
    if name == ".":
        shutil.rmtree(folder)
    else:
        (folder / name).write_bytes((folder / name).read_bytes()[:20])

    (line,) = start(folder, "--port", 0, code=1).splitlines()

    assert line.startswith(f"Cannot load '{folder}': ") and len(line) < 800


@pytest.mark.slow
def test_a_missing_package_is_named(tmp_path):
    # A folder before all others, with a uvicorn that is not there.
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError('gone', name='uvicorn')")
    path = os.pathsep.join([str(tmp_path), str(PROJECT)])
    command = [sys.executable, "-m", "elmo_service", "x"]
    result = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "'uvicorn'" in result.stderr and "pip install 'spacy-elmo[serve]'" in result.stderr


def test_a_pipeline_is_not_replaced_by_the_bundled_one(tmp_path, capsys):
    spacy.blank("de").to_disk(tmp_path / "pipeline")
    runpy.run_path(str(PROJECT / "make_pipeline.py"))["main"](tmp_path / "pipeline")
    assert "Kept" in capsys.readouterr().out
    assert spacy.load(tmp_path / "pipeline").lang == "de"


def test_the_page_lists_all_reasons_metrics_and_paths():
    page = (PROJECT / "README.md").read_text("utf-8")
    for reason in (r for r in vars(refusals).values() if isinstance(r, refusals.Reason)):
        assert f"| {reason.status} | {reason.code} |" in page
    app = create_app(load_pipeline())
    names = {family.name for family in app.state.metrics.registry.collect()}
    for name in [*(n for n in names if n.startswith("elmo_")), *app.openapi()["paths"]]:
        assert f"`{name}" in page, name
