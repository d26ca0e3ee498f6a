"""projects/serve on a loopback port: clients that leave, are slow, or ask while it stops."""

import asyncio
import json
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from .support.helpers import ROOT
from .support.toy_service import (
    PIPELINE,
    PROJECT,
    RESERVE,
    load_pipeline,
    read_metrics,
    serve,
    wait_until,
)

TOY = load_pipeline()


@pytest.fixture
def gated():
    """A pipeline that waits, and its gate."""
    nlp = load_pipeline(gate=True)
    return nlp, nlp.get_pipe("toy_gate")


def make_request(*texts, path="/tags", length=None):
    body = json.dumps({"texts": texts}).encode()
    headers = f"POST {path} HTTP/1.1\r\nhost: toy\r\ncontent-type: application/json\r\n"
    return f"{headers}content-length: {length or len(body)}\r\n\r\n".encode() + body


async def send(port, *texts):
    url = f"http://127.0.0.1:{port}/tags"
    async with httpx.AsyncClient(timeout=60) as client:
        return await client.post(url, json={"texts": list(texts)})


async def connect(port, n):
    """Clients that send nothing."""
    return [await asyncio.open_connection("127.0.0.1", port) for _ in range(n)]


def get_metrics(server):
    return read_metrics(server.config.app)


def is_idle(server):
    return not server.server_state.connections and not server.server_state.tasks


def test_a_request_that_is_cut_off_leaves_nothing(gated):
    nlp, gate = gated

    async def run():
        async with serve(nlp) as (server, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(make_request("Eat ham", length=500))
            await wait_until(lambda: server.server_state.tasks)
            writer.close()
            await wait_until(lambda: is_idle(server))
            assert get_metrics(server)["elmo_requests_total", "/tags", "499"] == 1
            assert (await send(port, "Eat ham")).status_code == 200
        # The first look and the second request.
        assert gate.sizes == [1, 1]

    asyncio.run(run())


def test_who_leaves_is_not_read(gated):
    nlp, gate = gated

    async def run():
        async with serve(nlp, batch_texts=1) as (server, port):
            gate.open.clear()
            first = asyncio.create_task(send(port, "a"))
            await wait_until(lambda: len(gate.sizes) == 2)
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(make_request("b", "c", "d"))
            await wait_until(lambda: get_metrics(server)["elmo_waiting_texts",] == 3)
            writer.close()
            await wait_until(lambda: get_metrics(server)["elmo_waiting_texts",] == 0)
            gate.open.set()
            assert (await first).status_code == 200
            assert get_metrics(server)["elmo_dropped_texts_total",] == 3
            assert get_metrics(server)["elmo_requests_total", "/tags", "499"] == 1
        assert gate.sizes == [1, 1]

    asyncio.run(run())


def test_a_slow_body_has_a_reason_and_holds_nobody_up():
    async def run():
        async with serve(TOY, body_seconds=0.5) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(make_request("Eat ham", length=500))
            assert (await send(port, "Eat ham")).status_code == 200
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return answer

    answer = asyncio.run(run())
    assert answer.startswith(b"HTTP/1.1 408")
    with pytest.raises(ValueError, match="EL267.*within 0.5 seconds"):
        raise ValueError(answer.decode())


@pytest.mark.parametrize("beginning", [b"", b"POST /tags HTT", make_request("a") + b"POST /t"])
def test_slow_headers_end_the_connection(beginning):
    async def run():
        async with serve(TOY, header_seconds=0.3) as (server, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(beginning)
            for _ in range(80):
                # A byte now and then, for as long as it is let.
                await asyncio.sleep(0.05)
                if is_idle(server):
                    break
                if beginning:
                    writer.write(b"a")
            assert is_idle(server)
            writer.close()

    asyncio.run(run())


def test_a_body_that_is_far_too_large_has_its_reason_while_it_is_sent():
    async def run():
        async with serve(TOY, max_bytes=100_000) as (_, port):
            return [await send(port, "a" * n) for n in (500_000, 1_500_000)]

    near, far = asyncio.run(run())
    assert near.status_code == far.status_code == 413
    assert "EL262" in near.text and "EL262" in far.text


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has it")
def test_an_answer_that_nobody_reads_ends_the_connection():
    async def run():
        async with serve(TOY, write_seconds=1) as (server, port):
            slow = socket.socket()
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", port))
            # Larger than what the kernel buffers.
            requests = make_request(*["a b c d " * 150] * 8) * 30
            slow.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(slow, requests)
            await wait_until(lambda: get_metrics(server)["elmo_tokens_total",] >= 4800)
            assert server.server_state.connections
            assert (await send(port, "Eat ham")).status_code == 200
            await wait_until(lambda: is_idle(server), seconds=40)
            slow.close()

    asyncio.run(run())


def test_more_connections_than_allowed_are_refused():
    async def run():
        async with serve(TOY, connections=3) as (server, port):
            opened = await connect(port, 3)
            await wait_until(lambda: len(server.server_state.connections) == 3)
            refused = await send(port, "a")
            assert get_metrics(server)["elmo_refusals_total", "EL312"] == 1
            for _, writer in opened:
                writer.close()
            await wait_until(lambda: is_idle(server))
            assert (await send(port, "a")).status_code == 200
            return refused

    refused = asyncio.run(run())
    assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
    assert refused.headers["connection"] == "close"
    with pytest.raises(ValueError, match="EL312.*3 connections are open already"):
        raise ValueError(refused.json()["error"].values())


def test_who_watches_the_server_is_answered_whoever_else_is_connected():
    """More wait in silence than all that the server keeps open."""

    async def run():
        async with serve(TOY, connections=3) as (server, port):
            # The first ones have their place: none of them is closed for others.
            first = await connect(port, 3)
            await wait_until(lambda: len(server.server_state.connections) == 3)
            silent = await connect(port, 60)
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                for path in ("/live", "/ready", "/metrics"):
                    answer = await client.get(path)
                    assert answer.status_code == 200 and answer.headers["connection"] == "close"
            assert len(server.server_state.connections) <= 3 + RESERVE
            n_closed = get_metrics(server)["elmo_ended_connections_total", "connections"]
            assert 60 - RESERVE <= n_closed <= 63 - RESERVE
            for reader, writer in first:
                assert not reader.at_eof()
                writer.write(make_request("a"))
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            for _, writer in [*first, *silent]:
                writer.close()

    asyncio.run(run())


HEAD = b"POST /tags HTTP/1.1\r\nhost: a\r\n"
NO_HTTP = {
    "garbage": b"garbage\r\n\r\n",
    "two lengths": HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\n",
    "a line without end": b"GET /" + b"a" * 70_000,
    "a bad piece": HEAD + b"transfer-encoding: chunked\r\n\r\nZZ\r\n",
}


@pytest.mark.parametrize("request_", NO_HTTP.values(), ids=NO_HTTP)
def test_what_is_no_http_has_a_reason_of_the_same_shape(request_):
    async def run():
        async with serve(TOY) as (server, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request_)
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            await wait_until(lambda: is_idle(server))
            assert get_metrics(server)["elmo_refusals_total", "EL313"] == 1
            return answer.partition(b"\r\n\r\n")

    head, _, body = asyncio.run(run())
    assert head.startswith(b"HTTP/1.1 400") and b"application/json" in head
    with pytest.raises(ValueError, match="EL313.*no request in HTTP"):
        raise ValueError(json.loads(body)["error"].values())


def test_no_http_after_an_answer_has_begun_ends_the_connection(caplog):
    """A body that is refused while it is sent, and then is none."""

    async def run():
        async with serve(TOY, body_seconds=0.2) as (server, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 408")
            writer.write(b"ZZ\r\n")
            await wait_until(lambda: is_idle(server))
            writer.close()

    asyncio.run(run())
    assert "Traceback" not in caplog.text and "Fatal" not in caplog.text


def test_a_stop_finishes_what_was_accepted_and_refuses_what_comes(gated):
    nlp, gate = gated

    async def run():
        async with serve(nlp, batch_texts=1) as (server, port):
            gate.open.clear()
            accepted = [asyncio.create_task(send(port, f"word {i}")) for i in range(5)]
            await wait_until(lambda: get_metrics(server)["elmo_waiting_texts",] == 4)
            signal.raise_signal(signal.SIGTERM)
            # uvicorn alone would have closed its socket by then.
            await asyncio.sleep(0.4)
            refused = await send(port, "late")
            async with httpx.AsyncClient() as client:
                base = f"http://127.0.0.1:{port}"
                ready, live = [await client.get(f"{base}/{name}") for name in ("ready", "live")]
            gate.open.set()
            answers = await asyncio.gather(*accepted)
            await wait_until(lambda: not server.server_state.connections)
            return [answer.json() for answer in answers], refused, ready, live

    answers, refused, ready, live = asyncio.run(run())
    words = [answer["results"][0]["tokens"][1]["text"] for answer in answers]
    assert words == ["0", "1", "2", "3", "4"]
    assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
    with pytest.raises(ValueError, match="EL265.*stopping"):
        raise ValueError(refused.text)
    assert (ready.status_code, live.status_code) == (503, 200)


def test_a_stop_does_not_wait_for_ever(gated):
    nlp, gate = gated

    async def run():
        async with serve(nlp, grace_seconds=0.3) as (server, port):
            gate.open.clear()
            asking = asyncio.create_task(send(port, "a"))
            await wait_until(lambda: len(gate.sizes) == 2)
            server.handle_exit(signal.SIGTERM, None)
            await wait_until(lambda: server.should_exit)
            gate.open.set()
            await asking

    asyncio.run(run())


GATED = """
from tests.support import toy_service
from elmo_service import cli

nlp = toy_service.load_pipeline(gate=True)
cli.spacy.load = lambda path: nlp
cli.cli()
"""


def start_server(*arguments, start=("-m", "elmo_service"), cwd=PROJECT):
    """A server in a process of its own, as a user starts it: (process, port)."""
    command = [sys.executable, *start, str(PIPELINE), "--port", "0", *arguments]
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    line = process.stdout.readline()
    assert line.startswith("Serving on http://127.0.0.1:"), process.stderr.read()
    return process, int(line.rsplit(":", 1)[1])


@pytest.mark.slow
def test_sigterm_under_load_loses_nothing_that_was_accepted():
    process, port = start_server("--batch-texts", "2", "--log-level", "error")

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
    # The socket closes at the end: whoever was not accepted cannot connect, or is not read.
    unheard = [a for a in answers if isinstance(a, httpx.TransportError)]
    assert served and len(served) + len(refused) + len(unheard) == 60
    assert all("EL265" in answer.text for answer in refused)
    assert all(len(answer.json()["results"]) == 2 for answer in served)
    assert "Traceback" not in log and "ERROR" not in log


@pytest.mark.slow
def test_a_pass_without_end_does_not_keep_the_process():
    process, port = start_server("--grace-seconds", "0.5", start=("-c", GATED), cwd=ROOT)

    async def run():
        asking = asyncio.create_task(send(port, "sleepy"))
        await asyncio.sleep(1)
        process.send_signal(signal.SIGTERM)
        return await asyncio.gather(asking, return_exceptions=True)

    try:
        asyncio.run(run())
        assert process.wait(20) == 1
    finally:
        process.kill()
        process.communicate()
