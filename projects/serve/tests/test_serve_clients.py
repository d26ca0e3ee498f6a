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

pytestmark = pytest.mark.filterwarnings("ignore:.*WL003")

TOY = load_pipeline()
LARGE = "a " * 4999
HEAD = b"POST /tags HTTP/1.1\r\nhost: a\r\n"


def test_a_client_that_leaves_is_not_read():
    nlp = load_pipeline(gate=True)
    gate = nlp.get_pipe("toy_gate")

    async def run():
        async with serve(nlp, batch_texts=1) as (server, port):
            gate.open.clear()
            first = asyncio.create_task(send(port, "a"))
            await wait_until(lambda: len(gate.sizes) == 2)
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(make_request("b", "c", "d"))
            await wait_until(lambda: read_metrics(server)["elmo_waiting_texts",] == 3)
            writer.close()
            await wait_until(lambda: read_metrics(server)["elmo_waiting_texts",] == 0)
            gate.open.set()
            assert (await first).status_code == 200
            assert read_metrics(server)["elmo_requests_total", "/tags", "499"] == 1
        assert gate.sizes == [1, 1]

    asyncio.run(run())


def test_a_slow_body_is_refused_and_delays_nobody():
    async def run():
        async with serve(TOY, body_seconds=0.5) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(make_request("Eat ham", length=500))
            assert (await send(port, "Eat ham")).status_code == 200
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return answer

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 408") and b"EL267" in answer


@pytest.mark.parametrize("beginning", [b"", b"POST /tags HTT", make_request("a") + b"POST /t"])
def test_slow_headers_end_the_connection(beginning):
    async def run():
        async with serve(TOY, header_seconds=0.3) as (server, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(beginning)
            for _ in range(80):
                await asyncio.sleep(0.05)
                if is_idle(server):
                    break
                if beginning:
                    writer.write(b"a")
            assert is_idle(server)
            writer.close()

    asyncio.run(run())


def test_unread_answers_are_limited_and_their_clients_disconnected():
    async def run():
        limits = {"unread_bytes": 1_200_000, "write_seconds": 1}
        async with serve(TOY, **limits) as (server, port):
            slow = socket.socket()
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", port))
            slow.sendall(make_request(LARGE, path="/vectors"))
            await wait_until(lambda: read_metrics(server)["elmo_unread_bytes",] > 0)
            url = f"http://127.0.0.1:{port}/vectors"
            async with httpx.AsyncClient(timeout=60) as client:
                refused = await client.post(url, json={"texts": [LARGE]})
                served = await client.post(url, json={"texts": ["Eat ham"]})
            await wait_until(lambda: read_metrics(server)["elmo_unread_bytes",] == 0)
            assert read_metrics(server)["elmo_ended_connections_total", "write_seconds"] == 1
            slow.close()
            return refused, served

    refused, served = asyncio.run(run())
    assert refused.status_code == 503 and "EL311" in refused.text
    assert served.status_code == 200


def test_more_connections_than_allowed_are_refused_except_for_monitoring():
    async def run():
        async with serve(TOY, connections=3) as (server, port):
            opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
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
            return refused

    refused = asyncio.run(run())
    assert refused.status_code == 503 and "EL312" in refused.text
    assert refused.headers["retry-after"] == "1"


NO_HTTP = {
    "garbage": b"garbage\r\n\r\n",
    "two lengths": HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\n",
    "a line without end": b"GET /" + b"a" * 70_000,
    "a bad piece": HEAD + b"transfer-encoding: chunked\r\n\r\nZZ\r\n",
}


@pytest.mark.parametrize("request_", NO_HTTP.values(), ids=NO_HTTP)
def test_bytes_that_are_not_http_have_a_reason(request_):
    async def run():
        async with serve(TOY) as (server, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request_)
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            await wait_until(lambda: is_idle(server))
            return answer.partition(b"\r\n\r\n")

    head, _, body = asyncio.run(run())
    assert head.startswith(b"HTTP/1.1 400") and json.loads(body)["error"]["code"] == "EL313"


def test_a_stop_finishes_accepted_requests_and_refuses_new_ones():
    nlp = load_pipeline(gate=True)
    gate = nlp.get_pipe("toy_gate")

    async def run():
        async with serve(nlp, batch_texts=1) as (server, port):
            gate.open.clear()
            accepted = [asyncio.create_task(send(port, f"word {i}")) for i in range(5)]
            await wait_until(lambda: read_metrics(server)["elmo_waiting_texts",] == 4)
            signal.raise_signal(signal.SIGTERM)
            # uvicorn alone would have closed its socket by then.
            await asyncio.sleep(0.4)
            refused = await send(port, "late")
            gate.open.set()
            answers = await asyncio.gather(*accepted)
            await wait_until(lambda: not server.server_state.connections)
            return [answer.json() for answer in answers], refused

    answers, refused = asyncio.run(run())
    words = [answer["results"][0]["tokens"][1]["text"] for answer in answers]
    assert words == ["0", "1", "2", "3", "4"]
    assert refused.status_code == 503 and "EL265" in refused.text


def make_bad_requests(rng):
    texts = [" ".join(["eggs"] * 1500)] if rng.random() < 0.4 else rng.sample(TEXTS, 2)
    paths = ["/vectors", "/tags", "/nowhere"]
    requests = b"".join(make_request(*texts, path=rng.choice(paths)) for _ in range(3))
    requests += rng.choice([b"", b"nonsense\r\n\r\n"])
    return requests[: rng.choice([len(requests), rng.randint(0, len(requests))])]


async def misbehave(port, rng):
    """Send part of some requests, read part of the answers, and leave in some way."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.setblocking(False)
    await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
    if rng.random() < 0.5:
        # It ends with an RST.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reader, writer = await asyncio.open_connection(sock=opened, limit=4096)
    try:
        writer.write(make_bad_requests(rng))
        await asyncio.sleep(rng.choice([0, 0.01, 0.1]))
        await asyncio.wait_for(reader.read(rng.choice([1, 4096])), rng.choice([0.01, 0.5]))
    except (OSError, asyncio.TimeoutError):
        pass
    finally:
        writer.transport.abort()


def test_clients_of_any_kind_leave_nothing():
    rng = random.Random(0)
    limits = {"connections": 16, "unread_bytes": 400_000, "write_seconds": 1, "header_seconds": 1}

    async def run():
        async with serve(TOY, **limits) as (server, port):
            for _ in range(2):
                await asyncio.gather(*(misbehave(port, rng) for _ in range(40)))
            await wait_until(lambda: is_idle(server))
            metrics = read_metrics(server)
            assert metrics["elmo_unread_bytes",] == metrics["elmo_waiting_texts",] == 0
            assert (await send(port, *TEXTS)).status_code == 200

    asyncio.run(run())


@pytest.mark.slow
def test_sigterm_under_load_loses_no_accepted_request():
    command = [sys.executable, "-m", "elmo_service", str(PIPELINE), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--batch-texts", "2", "--log-level", "error"],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    port = int(process.stdout.readline().rsplit(":", 1)[1])

    async def run():
        asking = [asyncio.create_task(send(port, f"ham {i}", "eggs")) for i in range(60)]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        process.send_signal(signal.SIGTERM)
        return await asyncio.gather(*asking, return_exceptions=True)

    try:
        answers = asyncio.run(run())
        assert process.wait(30) == 0
    finally:
        process.kill()
        _, log = process.communicate()
    served = [a for a in answers if getattr(a, "status_code", None) == 200]
    refused = [a for a in answers if getattr(a, "status_code", None) == 503]
    # The socket closes at the end: requests that were not accepted cannot connect.
    lost = [a for a in answers if isinstance(a, httpx.TransportError)]
    assert served and len(served) + len(refused) + len(lost) == 60
    assert all(len(answer.json()["results"]) == 2 for answer in served)
    assert "Traceback" not in log
