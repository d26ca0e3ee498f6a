"""The server over a toy pipeline, in this process: by ASGI, or on a loopback port."""

import asyncio
import json
import sys
import threading
import time
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import spacy
from spacy.language import Language

PROJECT = Path(__file__).parents[1]
sys.path.append(str(PROJECT))

from elmo_service.app import create_app  # noqa: E402
from elmo_service.limits import Limits  # noqa: E402
from elmo_service.server import make_server, open_socket  # noqa: E402

PIPELINE = PROJECT.parents[1] / "tests/data/toy_pipeline"
TEXTS = [
    "I like green eggs .",
    "",
    "  Eat ham \n \n and eggs",
    "the river bank in green . my money banks in green .",
    "Ünsäglich langewörter in 北京 , \U0001f468\u200d\U0001f373 !",
    "nul \x00 and \x07bell",
    " ",
]


class Gate:
    """A component that waits until it is open, and fails or sleeps for some words."""

    def __init__(self):
        self.open = threading.Event()
        self.open.set()
        self.sizes = []

    def __call__(self, doc):
        raise NotImplementedError

    def pipe(self, docs, batch_size=None):
        docs = list(docs)
        self.sizes.append(len(docs))
        assert self.open.wait(10)
        for doc in docs:
            if "sleepy" in doc.text:
                time.sleep(60)
            if "poison" in doc.text:
                raise RuntimeError("poison")
            if "huge" in doc.text and len(docs) > 2:
                raise MemoryError
            yield doc


@Language.factory("toy_gate")
def make_gate(nlp, name):
    return Gate()


def load_pipeline(gate=False):
    nlp = spacy.load(PIPELINE)
    if gate:
        nlp.add_pipe("toy_gate", first=True)
    return nlp


@asynccontextmanager
async def open_app(nlp, *, zones=True, **limits):
    """An app in this process, without a network: (client, app)."""
    app = create_app(nlp, Limits(**limits), zones=zones)
    transport = httpx.ASGITransport(app)
    async with (
        app.state.batcher,
        httpx.AsyncClient(transport=transport, base_url="http://toy", timeout=60) as client,
    ):
        yield client, app
        await app.state.batcher.drain()


@asynccontextmanager
async def serve(nlp, **limits):
    """A server on a free loopback port of this process: (server, port)."""
    limits = Limits(**limits)
    server = make_server(create_app(nlp, limits), limits, log_level="error")
    opened = open_socket("127.0.0.1", 0, limits.write_seconds)
    running = asyncio.create_task(server.serve(sockets=[opened]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield server, opened.getsockname()[1]
    finally:
        # The next test may use the same pipeline.
        await server.batcher.drain()
        server.should_exit = server.force_exit = True
        await running


def make_request(*texts, path="/tags", length=None):
    """The bytes of a request; its length may be a wrong one."""
    body = json.dumps({"texts": texts}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: toy\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {length or len(body)}\r\n\r\n".encode() + body


async def send(port, *texts, path="/tags"):
    async with httpx.AsyncClient(timeout=60) as client:
        url = f"http://127.0.0.1:{port}{path}"
        return await client.post(url, json={"texts": list(texts)})


def read_metrics(app):
    """Each sample's name and labels, and its number. app: an app, or a server."""
    app = app.config.app if hasattr(app, "config") else app
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in app.state.metrics.registry.collect()
        for sample in metric.samples
        if sample.name.startswith("elmo_")
    }


async def wait_until(is_true, seconds=10):
    for _ in range(int(100 * seconds)):
        if is_true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("did not happen")


def is_idle(server):
    return not server.server_state.connections and not server.server_state.tasks
