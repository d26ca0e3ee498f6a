"""projects/serve: the memory that answers take, of one request and of clients that do not read."""

import asyncio
import json
import socket
import sys
from contextlib import suppress

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support.toy_service import (
    TEXTS,
    Limits,
    call,
    create_app,
    load_pipeline,
    read_metrics,
    serve,
    wait_until,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*WL003")

TOY = load_pipeline()
ENCODINGS = ["json", "base64"]
# In JSON about 140 and 700 kB; the kernel keeps half a megabyte of one that is not read.
SMALL, LARGE = "a " * 1000, "a " * 4999


async def ask(client, text, **body):
    response = await client.post("/vectors", json={"texts": [text], **body})
    if response.status_code == 200:
        return len(response.content)
    error = response.json()["error"]
    return response, f"[{error['code']}] {error['reason']}"


@settings(max_examples=40)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=3),
    st.sampled_from(ENCODINGS),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
def test_no_answer_is_longer_than_it_may_be(texts, encoding, number):
    from elmo_service.answers import make_vectors_reader

    docs = [TOY.make_doc(text) for text in [*texts, *TEXTS]]
    for doc in docs:
        doc.tensor = np.full((len(doc), 8), number, dtype="float32")
    reader = make_vectors_reader("none", encoding, width=8)

    assert len(reader.read(docs)) <= reader.bound(docs)


@pytest.mark.parametrize("number", [-0.0000063184107, -1.17549435e-38, 3.4028235e38, 1 / 3])
def test_nor_with_the_longest_numbers(number):
    from elmo_service.answers import make_vectors_reader

    doc = TOY.make_doc("\x01" * 30 + " \x02" * 900)
    doc.tensor = np.full((len(doc), 64), number, dtype="float32")
    reader = make_vectors_reader("none", "json", width=64)

    assert reader.bound([doc]) / 1.7 < len(reader.read([doc])) <= reader.bound([doc])


def test_an_answer_that_would_be_too_long_is_refused_before_it_is_computed():
    nlp = load_pipeline(gate=True)

    async def use(client, app):
        refused, reason = await ask(client, SMALL)
        assert nlp.get_pipe("toy_gate").sizes == [1]
        assert read_metrics(app)["elmo_refusals_total", "EL310"] == 1
        lengths = [await ask(client, SMALL, **{k: v}) for k, v in SHORTER.items()]
        return refused, reason, lengths

    SHORTER = {"encoding": "base64", "pooling": "mean"}
    refused, reason, lengths = call(nlp, use, max_answer_bytes=150_000)
    assert refused.status_code == 413 and max(lengths) <= 150_000
    with pytest.raises(ValueError, match=r'EL310.* at most 150,000 .*"base64".*"mean"'):
        raise ValueError(reason)


def test_an_answer_whose_length_is_seen_late_is_refused_too():
    async def use(client, app):
        response = await client.post("/tags", json={"texts": [SMALL]})
        assert response.status_code == 413 and "EL310" in response.text
        assert read_metrics(app)["elmo_unread_bytes",] == 0

    call(TOY, use, max_answer_bytes=10_000)


def open_slow(port, text, path="/vectors"):
    """A client that has asked and reads nothing."""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", port))
    slow.setblocking(False)
    body = json.dumps({"texts": [text]}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: toy\r\ncontent-type: application/json\r\n"
    slow.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    return slow


def get_metrics(server):
    return read_metrics(server.config.app)


def test_unread_answers_have_a_limit_together():
    async def run():
        async with (
            serve(TOY, unread_bytes=1_200_000) as (server, port),
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
        ):
            slow = open_slow(port, LARGE)
            # What it is now, not what it may be.
            await wait_until(lambda: 0 < get_metrics(server)["elmo_unread_bytes",] < 900_000)
            response, reason = await ask(client, LARGE)
            # Others are served: no client can make the server useless for all.
            assert await ask(client, "Eat ham") < 10_000
            assert get_metrics(server)["elmo_refusals_total", "EL311"] == 1
            slow.close()
            await wait_until(lambda: get_metrics(server)["elmo_unread_bytes",] == 0)
            assert await ask(client, LARGE) > 600_000
            await wait_until(lambda: get_metrics(server)["elmo_unread_bytes",] == 0)
            return response, reason

    response, reason = asyncio.run(run())
    assert response.status_code == 503 and response.headers["retry-after"] == "1"
    with pytest.raises(ValueError, match="EL311.* bytes of answers are unread, at most 1,200,000"):
        raise ValueError(reason)


def test_who_reads_a_little_now_and_then_is_disconnected():
    async def run():
        async with serve(TOY, write_seconds=1) as (server, port):
            slow = open_slow(port, LARGE)
            await wait_until(lambda: get_metrics(server)["elmo_unread_bytes",] > 0)
            n_bytes = 0
            for _ in range(60):
                await asyncio.sleep(0.05)
                if not server.server_state.connections:
                    break
                with suppress(BlockingIOError):
                    n_bytes += len(slow.recv(300))
            assert not server.server_state.connections and n_bytes > 1000
            assert get_metrics(server)["elmo_ended_connections_total", "write_seconds"] == 1
            await wait_until(lambda: get_metrics(server)["elmo_unread_bytes",] == 0)
            slow.close()

    asyncio.run(run())


def test_an_answer_is_over_when_the_system_has_it():
    async def run():
        async with serve(TOY) as (server, port):
            # Around what the kernel keeps, so that the ends of some wait.
            slow = [open_slow(port, "a " * n) for n in range(2200, 5000, 350)]
            await wait_until(lambda: get_metrics(server)["elmo_texts_total",] == len(slow))
            await asyncio.sleep(0.2)
            connections = list(server.server_state.connections)
            n_over = sum(c.cycle.response_complete for c in connections)
            n_waiting = sum(c.transport.get_write_buffer_size() > 0 for c in connections)
            assert n_over and n_waiting and n_over + n_waiting == len(slow)
            for client in slow:
                client.close()

    asyncio.run(run())


def test_a_long_answer_arrives_whole_and_leaves_nothing():
    async def use(client, app):
        long = await client.post("/vectors", json={"texts": [LARGE, SMALL]})
        assert [r["shape"] for r in long.json()["results"]] == [[4999, 8], [1000, 8]]
        assert (await client.post("/vectors", json={"texts": [""]})).status_code == 200
        assert read_metrics(app)["elmo_unread_bytes",] == 0

    call(TOY, use, max_tokens=6000)


def test_the_server_keeps_no_answer():
    from elmo_service.answers import Reader
    from elmo_service.unread import Unread

    body = b"a" * 1000
    n_here = sys.getrefcount(body)
    app = create_app(TOY, Limits())

    async def run():
        async with app.state.batcher as batcher:
            with Unread(Limits(), app.state.metrics).open_share() as share:
                assert await batcher.submit(["a"], Reader(lambda docs: body), share) is body
            await asyncio.sleep(0.05)
            # The reader itself has one.
            return sys.getrefcount(body)

    assert asyncio.run(run()) == n_here


def test_memory_is_given_back_after_a_long_answer(monkeypatch):
    from elmo_service import unread

    trims = []
    monkeypatch.setattr(unread, "_malloc_trim", trims.append)

    async def use(client, app):
        await ask(client, "Eat ham")
        assert not trims
        await ask(client, LARGE)
        assert trims == [0]
        # A libc without it.
        monkeypatch.setattr(unread, "_malloc_trim", None)
        await ask(client, LARGE)

    call(TOY, use)
