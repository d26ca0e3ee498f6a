"""projects/serve on a loopback port: whatever clients do, in the end nothing of them is held."""

import asyncio
import json
import random
import socket
import struct

import httpx
import pytest

from .support.toy_service import TEXTS, load_pipeline, read_metrics, serve, wait_until

# The toy biLM reads short words only.
pytestmark = pytest.mark.filterwarnings("ignore:.*WL003")

TOY = load_pipeline()
# Of answers of 100 kB and more, so that they are sent in pieces.
LONG = " ".join(["eggs"] * 1500)


def write_request(rng):
    path = rng.choice(["/vectors", "/tags", "/live", "/nowhere"])
    texts = [LONG] if rng.random() < 0.4 else rng.sample(TEXTS, 2)
    body = json.dumps({"texts": texts}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: toy\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def misbehave(port, rng):
    """Send some of some requests, read some of what comes, and leave in some way."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.setblocking(False)
    await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
    if rng.random() < 0.5:
        # Its end is an RST.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reader, writer = await asyncio.open_connection(sock=opened, limit=4096)
    try:
        requests = b"".join(write_request(rng) for _ in range(rng.randint(0, 3)))
        requests += rng.choice([b"", b"", b"nonsense\r\n\r\n"])
        writer.write(requests[: rng.choice([len(requests), rng.randint(0, len(requests))])])
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
            for _ in range(4):
                await asyncio.gather(*(misbehave(port, rng) for _ in range(40)))
            state = server.server_state
            await wait_until(lambda: not state.connections and not state.tasks)
            door = server.config.http_protocol_class.door
            assert not door._regular and not door._reserve
            metrics = read_metrics(server.config.app)
            assert metrics["elmo_unread_bytes",] == metrics["elmo_waiting_texts",] == 0
            # Some were too many, and some left before their answer.
            assert metrics["elmo_refusals_total", "EL312"]
            assert any(labels[-1] == "499" for labels in metrics)
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                assert (await client.post("/tags", json={"texts": TEXTS})).status_code == 200

    asyncio.run(run())
