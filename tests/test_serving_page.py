"""projects/serve/README.md: its code runs against a server, its tables are complete."""

import asyncio
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import fields

import httpx
import pytest
import srsly

from .support.helpers import ROOT
from .support.pages import SERVER as PAGE
from .support.pages import blocks, read_page
from .support.toy_service import (
    PROJECT,
    Limits,
    create_app,
    load_pipeline,
    make_server,
    open_socket,
    read_metrics,
)

ADDRESS = "127.0.0.1:8000"


def find_blocks(language, address=ADDRESS):
    return [code.replace(ADDRESS, address) for code in blocks(PAGE, language)]


@contextmanager
def serve_toy():
    """A server in a thread: its address and app."""
    app = create_app(load_pipeline(), Limits())
    server = make_server(app, Limits(), log_level="error")
    opened = open_socket("127.0.0.1", 0, 10)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[opened])))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"127.0.0.1:{opened.getsockname()[1]}", app
    finally:
        server.should_exit = True
        thread.join()


def test_clients_are_answered(capsys):
    with serve_toy() as (address, app):
        names = {}
        for code in find_blocks("python", address):
            exec(code, names)
        names["server"].close()
        (curl,) = find_blocks("bash curl", address)
        n_curl = 0
        if shutil.which("curl"):
            for command in curl.splitlines():
                result = subprocess.run(
                    shlex.split(command), capture_output=True, text=True, check=True
                )
                assert '{"results":[{"vector":[' in result.stdout or "# HELP" in result.stdout
                n_curl += 1
        # A request is counted when its answer is out.
        for _ in range(500):
            counts = {k: n for k, n in read_metrics(app).items() if k[0] == "elmo_requests_total"}
            if sum(counts.values()) == 4 + n_curl:
                break
            time.sleep(0.01)

    printed = capsys.readouterr().out
    assert "{'text': 'bank', 'start': 14, 'end': 18}" in printed
    assert "[9, 8] 9" in printed or "[8, 8] 8" in printed
    assert (
        isinstance(names["packed"], str)
        and names["mean"].shape == (8,)
        and "'similarity'" in printed
    )
    assert sum(counts.values()) == 4 + n_curl


def test_all_that_is_counted_and_refused_is_on_the_page():
    from elmo_service import refusals

    reasons = [r for r in vars(refusals).values() if isinstance(r, refusals.Reason)]
    assert len(reasons) == 14
    for reason in reasons:
        assert f"| {reason.status} | {reason.code} |" in read_page(PAGE)
    app = create_app(load_pipeline())
    names = {family.name for family in app.state.metrics.registry.collect()}
    for name in (name for name in names if name.startswith("elmo_")):
        assert f"`{name}" in read_page(PAGE), name
    for path in app.openapi()["paths"]:
        assert f"`{path}`" in read_page(PAGE), path
    assert {limit.name for limit in fields(Limits)} - set(
        re.findall(r"`(\w+)`", read_page(PAGE))
    ) == set()


def test_the_image_has_what_the_server_needs():
    lines = (PROJECT / "Dockerfile").read_text("utf-8")
    for name in re.findall(r"^COPY (\w+)", lines, flags=re.MULTILINE):
        assert f"!{name}\n" in (PROJECT / ".dockerignore").read_text("utf-8")
    assert '"elmo_service", "pipeline"' in lines and "ARG TORCH_INDEX" in lines
    project = srsly.read_yaml(PROJECT / "project.yml")
    assert [command["name"] for command in project["commands"]] == [
        "install", "pipeline", "serve", "load-test", "soak", "image",
    ]  # fmt: skip


@pytest.fixture
def project(tmp_path):
    """A copy of the project, as a user makes one."""
    shutil.copytree(
        PROJECT,
        tmp_path / "projects" / "serve",
        ignore=shutil.ignore_patterns("pipeline", "wheels", "__pycache__"),
    )
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks")
    return tmp_path


@pytest.mark.slow
def test_the_first_commands_serve_the_bundled_model(project):
    (code,) = find_blocks("bash")
    change, make, serve = code.splitlines()
    folder = project / change.removeprefix("cd ")
    subprocess.run([sys.executable, *shlex.split(make)[1:]], cwd=folder, check=True)
    command = [sys.executable, *shlex.split(serve.replace("8000", "0"))[1:]]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().split()[-1]
        answer = httpx.post(f"{url}/vectors", json={"texts": ["Hi there."]}, timeout=30).json()
        assert answer["results"][0]["shape"] == [3, 512]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
