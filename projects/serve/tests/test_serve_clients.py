"""Clients that leave, are slow, or ask while the server stops."""

import asyncio
import json
import random
import signal
import socket
import struct
import subprocess
import sys

import httpx
import pytest
from toy_service import (
    PIPELINE,
    PROJECT,
    TEXTS,
    is_idle,
    load_pipeline,
    make_request,
    read_metrics,
    send,
    serve,
    wait_until,
)

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:.*WL003")]

TOY = load_pipeline()
LARGE = "a " * 4999
HEAD = b"POST /tags HTTP/1.1\r\nhost: a\r\n"


async def connect(port, content):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(content)
    return reader, writer


def connect_slowly(port):
    """A connection that receives few bytes at a time."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect(("127.0.0.1", port))
    return opened


async def read_answer(port, content):
    """The whole answer to some bytes, which the server ends."""
    reader, writer = await connect(port, content)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer


async def test_a_client_that_leaves_is_not_read():
    nlp = load_pipeline(gate=True)
    gate = nlp.get_pipe("toy_gate")
    async with serve(nlp, batch_texts=1) as (server, port):
        gate.open.clear()
        first = asyncio.create_task(send(port, "a"))
        await wait_until(lambda: len(gate.sizes) == 2)
        _, writer = await connect(port, make_request("b", "c", "d"))
        await wait_until(lambda: read_metrics(server)["elmo_waiting_texts",] == 3)
        writer.close()
        await wait_until(lambda: read_metrics(server)["elmo_waiting_texts",] == 0)
        gate.open.set()
        assert (await first).status_code == 200
        assert read_metrics(server)["elmo_requests_total", "/tags", "499"] == 1
    assert gate.sizes == [1, 1]


async def test_a_slow_body_is_refused_and_delays_nobody():
    async with serve(TOY, body_seconds=0.5) as (_, port):
        slow = asyncio.create_task(read_answer(port, make_request("Eat ham", length=500)))
        assert (await send(port, "Eat ham")).status_code == 200
        answer = await slow
    assert answer.startswith(b"HTTP/1.1 408") and b"EL267" in answer


@pytest.mark.parametrize("beginning", [b"", b"POST /tags HTT", make_request("a") + b"POST /t"])
async def test_slow_headers_end_the_connection(beginning):
    async with serve(TOY, header_seconds=0.3) as (server, port):
        _, writer = await connect(port, beginning)
        for _ in range(80):
            await asyncio.sleep(0.05)
            if is_idle(server):
                break
            if beginning:
                writer.write(b"a")
        assert is_idle(server)
        writer.close()


async def test_unread_answers_are_limited_and_their_clients_disconnected():
    async with serve(TOY, unread_bytes=1_200_000, write_seconds=1) as (server, port):
        with connect_slowly(port) as slow:
            slow.sendall(make_request(LARGE, path="/vectors"))
            await wait_until(lambda: read_metrics(server)["elmo_unread_bytes",] > 0)
            refused = await send(port, LARGE, path="/vectors")
            served = await send(port, "Eat ham", path="/vectors")
            await wait_until(lambda: read_metrics(server)["elmo_unread_bytes",] == 0)
            assert read_metrics(server)["elmo_ended_connections_total", "write_seconds"] == 1
    assert refused.status_code == 503 and "EL311" in refused.text
    assert served.status_code == 200


async def test_more_connections_than_allowed_are_refused_except_for_monitoring():
    async with serve(TOY, connections=3) as (server, port):
        opened = [await connect(port, b"") for _ in range(3)]
        await wait_until(lambda: len(server.server_state.connections) == 3)
        refused = await send(port, "a")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            for path in ("/live", "/ready", "/metrics"):
                assert (await client.get(path)).status_code == 200
        for reader, writer in opened:
            writer.write(make_request("a"))
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()
        await wait_until(lambda: is_idle(server))
    assert refused.status_code == 503 and "EL312" in refused.text
    assert refused.headers["retry-after"] == "1"


NO_HTTP = {
    "garbage": b"garbage\r\n\r\n",
    "a line without end": b"GET /" + b"a" * 70_000,
    "a bad piece": HEAD + b"transfer-encoding: chunked\r\n\r\nZZ\r\n",
}


@pytest.mark.parametrize("content", NO_HTTP.values(), ids=NO_HTTP)
async def test_bytes_that_are_not_http_have_a_reason(content):
    async with serve(TOY) as (server, port):
        head, _, body = (await read_answer(port, content)).partition(b"\r\n\r\n")
        await wait_until(lambda: is_idle(server))
    assert head.startswith(b"HTTP/1.1 400") and json.loads(body)["error"]["code"] == "EL313"


async def test_a_stop_finishes_accepted_requests_and_refuses_new_ones():
    nlp = load_pipeline(gate=True)
    gate = nlp.get_pipe("toy_gate")
    async with serve(nlp, batch_texts=1) as (server, port):
        gate.open.clear()
        accepted = [asyncio.create_task(send(port, f"word {i}")) for i in range(5)]
        await wait_until(lambda: read_metrics(server)["elmo_waiting_texts",] == 4)
        signal.raise_signal(signal.SIGTERM)
        # uvicorn alone would have closed its socket by then.
        await asyncio.sleep(0.4)
        refused = await send(port, "late")
        gate.open.set()
        answers = [answer.json() for answer in await asyncio.gather(*accepted)]
        await wait_until(lambda: not server.server_state.connections)
    words = [answer["results"][0]["tokens"][1]["text"] for answer in answers]
    assert words == ["0", "1", "2", "3", "4"]
    assert refused.status_code == 503 and "EL265" in refused.text


async def misbehave(port, rng):
    """Send part of some requests, read part of the answers, and leave in some way."""
    texts = rng.choice([[" ".join(["eggs"] * 1500)], rng.sample(TEXTS, 2)])
    paths = rng.choices(["/vectors", "/tags", "/nowhere"], k=3)
    content = b"".join(make_request(*texts, path=path) for path in paths)
    content += rng.choice([b"", b"nonsense\r\n\r\n"])
    opened = connect_slowly(port)
    if rng.random() < 0.5:
        # It ends with an RST.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reader, writer = await asyncio.open_connection(sock=opened, limit=4096)
    try:
        writer.write(content[: rng.choice([len(content), rng.randint(0, len(content))])])
        await asyncio.sleep(rng.choice([0, 0.01, 0.1]))
        await asyncio.wait_for(reader.read(rng.choice([1, 4096])), rng.choice([0.01, 0.5]))
    except (OSError, asyncio.TimeoutError):
        pass
    finally:
        writer.transport.abort()


async def test_clients_of_any_kind_leave_nothing():
    rng = random.Random(0)
    limits = {"connections": 16, "unread_bytes": 400_000, "write_seconds": 1, "header_seconds": 1}
    async with serve(TOY, **limits) as (server, port):
        for _ in range(2):
            await asyncio.gather(*(misbehave(port, rng) for _ in range(40)))
        await wait_until(lambda: is_idle(server))
        metrics = read_metrics(server)
        assert metrics["elmo_unread_bytes",] == metrics["elmo_waiting_texts",] == 0
        assert (await send(port, *TEXTS)).status_code == 200


@pytest.mark.slow
async def test_sigterm_under_load_loses_no_accepted_request():
    command = [sys.executable, "-m", "elmo_service", str(PIPELINE), "--port", "0"]
    command += ["--batch-texts", "2", "--log-level", "error"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=PROJECT, **pipes) as process:
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        asking = [asyncio.create_task(send(port, f"ham {i}", "eggs")) for i in range(60)]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        process.send_signal(signal.SIGTERM)
        answers = await asyncio.gather(*asking, return_exceptions=True)
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0 and "Traceback" not in log
    # The socket closes at the end: requests that were not accepted cannot connect.
    answered = [a for a in answers if not isinstance(a, httpx.TransportError)]
    assert {answer.status_code for answer in answered} <= {200, 503}
    served = [answer.json()["results"] for answer in answered if answer.status_code == 200]
    assert served and all(len(results) == 2 for results in served)
