"""projects/serve: what is refused, with which reason, and that nobody else suffers for it."""

import asyncio
import json
import logging
import socket
import time

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from .support.helpers import make_nlp
from .support.toy_service import (
    Limits,
    call,
    load_pipeline,
    open_socket,
    read_metrics,
    wait_until,
)

# The toy biLM reads short words only.
pytestmark = pytest.mark.filterwarnings("ignore:.*WL003")

JSON = {"content-type": "application/json"}
TOY = load_pipeline()


def ask(content, path="/tags", headers=JSON, nlp=TOY, **limits):
    """Status, code and reason of the answer to a body of bytes."""

    async def use(client, app):
        response = await client.post(path, content=content, headers=headers)
        error = response.json()["error"]
        metrics = read_metrics(app)
        assert metrics["elmo_requests_total", path, str(response.status_code)] == 1
        assert metrics["elmo_refusals_total", error["code"]] == 1
        return response.status_code, f"[{error['code']}] {error['reason']}"

    return call(nlp, use, **limits)


BAD_BODIES = {
    "nothing": (b"", 422, "EL261.*body: "),
    "cut off": (b'{"texts": ["a', 400, "EL260.*no JSON in UTF-8"),
    "a NUL byte": (b'{"texts": ["\x00"]}', 400, "EL260"),
    "latin-1": (b'{"texts": ["caf\xe9"]}', 400, "EL260"),
    "UTF-16": ('{"texts": [3]}'.encode("utf-16"), 422, "EL261"),
    "deep": (b"[" * 100_000, 400, "EL260"),
    "a long number": (b'{"texts": ' + b"9" * 10_000 + b"}", 400, "EL260"),
    "no object": (b'["a"]', 422, "EL261"),
    "another key": (b'{"texts": ["a"], "text": "b"}', 422, "EL261.*body.text: Extra inputs"),
    "a number": (b'{"texts": ["a", 3]}', 422, "EL261.*body.texts.1: .*string"),
    "a string": (b'{"texts": "abc"}', 422, "EL261.*body.texts: .*list"),
    "no texts": (b'{"texts": []}', 422, "EL261.*at least 1"),
    "null": (b'{"texts": [null]}', 422, "EL261"),
    "half a character": (b'{"texts": ["\\ud800"]}', 422, "EL261.*surrogate"),
}


@pytest.mark.parametrize("content, status, reason", BAD_BODIES.values(), ids=BAD_BODIES)
def test_bad_bodies_have_a_reason(content, status, reason):
    answer = ask(content)

    assert answer[0] == status
    with pytest.raises(ValueError, match=reason):
        raise ValueError(answer[1])


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["texts", "pairs", "pooling", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=25)
@given(st.lists(st.binary(max_size=60) | JSON_VALUES.map(json.dumps), max_size=5))
def test_no_body_makes_the_server_fail(contents):
    async def use(client, app):
        for content in contents:
            for path in ("/tags", "/entities", "/vectors", "/similarity"):
                response = await client.post(path, content=content, headers=JSON)
                assert response.status_code in (200, 400, 413, 422), response.text
                assert list(response.json()) in (["results"], ["error"])

    call(TOY, use)


def test_a_form_is_no_json():
    assert ask(b'{"texts": ["a"]}', headers={"content-type": "text/plain"})[0] == 422


TOO_LARGE = {
    "bytes": (b'{"texts": ["aaaaa"]}', {"max_bytes": 19}, "EL262.* 20 bytes, at most 19"),
    "many bytes": (b"a" * 300, {"max_bytes": 19}, "EL262.* 300 bytes, at most 19"),
    "texts": (b'{"texts": ["a", "b"]}', {"max_texts": 1}, "EL262.* 2 texts, at most 1"),
    "characters": (b'{"texts": ["aa", "b"]}', {"max_chars": 2}, "EL262.* 3 characters"),
    "tokens": (b'{"texts": ["a a", "b"]}', {"max_tokens": 2}, "EL262.* 3 tokens, at most 2"),
    "punctuation": (
        b'{"texts": ["a", "' + b"$" * 2000 + b'"]}',
        {},
        "EL263.* text 1 .* 2000 characters, 2000",
    ),
}


@pytest.mark.parametrize("content, limits, reason", TOO_LARGE.values(), ids=TOO_LARGE)
def test_too_large_requests_have_a_reason(content, limits, reason):
    status, text = ask(content, **limits)

    assert status == 413
    with pytest.raises(ValueError, match=reason):
        raise ValueError(text)


def test_as_much_as_is_allowed_is_read():
    async def use(client, app):
        text = "a " * 20_000 + "-" * 1400
        response = await client.post("/tags", json={"texts": [text[:-1400]]})
        assert response.status_code == 413 and "20000 tokens" in response.text
        assert (await client.post("/tags", json={"texts": [text[-3000:]]})).status_code == 200

    call(TOY, use)


@pytest.mark.parametrize("run", ["$", "'s", ":)", "_", "\U0001f600"])
def test_what_is_allowed_is_tokenized_in_a_moment(run):
    """Punctuation without a space takes time with the square of its length."""
    nlp = spacy.blank("en")
    text = (run * 1400)[:1400]

    started = time.process_time()
    with nlp.memory_zone():
        nlp.make_doc(text)

    assert time.process_time() - started < 2


def test_a_pipeline_says_what_it_does_not_offer():
    status, text = ask(b'{"texts": ["a"]}', "/entities", nlp=make_nlp())

    assert status == 404
    with pytest.raises(ValueError, match="EL268.* no entities; its components are: elmo"):
        raise ValueError(text)


def test_other_paths_and_methods_have_the_same_shape():
    async def use(client, app):
        # No redirect, which would name the host that the client has named.
        slash = await client.post("/tags/", json={"texts": ["a"]}, headers={"host": "evil.example"})
        assert slash.status_code == 404 and "location" not in slash.headers
        missing, wrong = await client.get("/x"), await client.get("/tags")
        assert (missing.status_code, wrong.status_code) == (404, 405)
        assert missing.json() == {"error": {"code": "HTTP404", "reason": "Not Found"}}
        metrics = read_metrics(app)
        assert [metrics["elmo_refusals_total", f"HTTP{n}"] for n in (404, 405)] == [2, 1]

    call(TOY, use)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_limits_that_refuse_or_accept_everything_are_refused(seconds):
    with pytest.raises(ValueError, match=f"write_seconds = {seconds} is not possible"):
        Limits(write_seconds=seconds)


@pytest.mark.parametrize("seconds", [1e-9, 1e-3, 30, 1e12])
def test_any_time_to_read_an_answer_is_one_for_the_kernel(seconds):
    with open_socket("127.0.0.1", 0, Limits(write_seconds=seconds).write_seconds) as opened:
        # Before anybody accepts it.
        socket.create_connection(opened.getsockname(), timeout=9).close()
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) >= 1


@pytest.fixture
def gated():
    """A pipeline that waits, and its gate."""
    nlp = load_pipeline(gate=True)
    return nlp, nlp.get_pipe("toy_gate")


async def send(client, *texts, path="/tags"):
    return await client.post(path, json={"texts": list(texts)})


def test_a_full_queue_refuses_and_says_when_to_try_again(gated):
    nlp, gate = gated

    async def use(client, app):
        gate.open.clear()
        batcher = app.state.batcher
        first = asyncio.create_task(send(client, "a"))
        await wait_until(lambda: len(gate.sizes) == 2)
        waiting = [asyncio.create_task(send(client, "b")) for _ in range(3)]
        await wait_until(lambda: batcher.is_full)
        refused = await send(client, "c")
        ready = await client.get("/ready")
        gate.open.set()
        answers = await asyncio.gather(first, *waiting)
        assert [answer.status_code for answer in answers] == [200] * 4
        assert (await client.get("/ready")).status_code == 200
        assert ready.status_code == 503
        return refused

    refused = call(nlp, use, queue_texts=3)
    assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
    with pytest.raises(ValueError, match="EL264.*3 texts wait already, at most 3"):
        raise ValueError(refused.text)


def test_a_late_request_is_told_so_and_not_read(gated):
    nlp, gate = gated

    async def use(client, app):
        gate.open.clear()
        late = await asyncio.gather(send(client, "a"), send(client, "b", "c"))
        gate.open.set()
        assert (await send(client, "d")).status_code == 200
        assert read_metrics(app)["elmo_dropped_texts_total",] == 3
        return late

    late = call(nlp, use, seconds=0.2, batch_texts=1)
    assert [answer.status_code for answer in late] == [504, 504]
    with pytest.raises(ValueError, match="EL266.*within 0.2 seconds"):
        raise ValueError(late[0].text)
    # The first was read in vain, the second never.
    assert gate.sizes == [1, 1, 1]


def test_a_pass_without_end_is_not_live(gated):
    nlp, gate = gated

    async def use(client, app):
        assert (await client.get("/live")).status_code == 200
        gate.open.clear()
        request = asyncio.create_task(send(client, "a"))
        # A busy machine may begin late.
        await wait_until(lambda: gate.sizes)
        await asyncio.sleep(0.3)
        assert (await client.get("/live")).status_code == 503
        gate.open.set()
        await request
        assert (await client.get("/live")).status_code == 200

    call(nlp, use, stuck_seconds=0.2)


def test_one_bad_text_fails_its_own_request_alone(gated, caplog):
    nlp, _ = gated

    async def use(client, app):
        texts = ["a", "b", "poison", "c", "d"]
        answers = await asyncio.gather(*(send(client, text) for text in texts))
        return dict(zip(texts, answers))

    with caplog.at_level(logging.ERROR):
        answers = call(nlp, use)
    refused = answers.pop("poison")
    assert refused.status_code == 500 and "poison" not in refused.text
    with pytest.raises(ValueError, match="EL269"):
        raise ValueError(refused.text)
    assert {answer.status_code for answer in answers.values()} == {200}
    # The log has the cause.
    assert "RuntimeError: poison" in caplog.text


def test_a_batch_that_does_not_fit_into_memory_is_halved(gated):
    nlp, gate = gated

    async def use(client, app):
        answers = await asyncio.gather(*(send(client, f"huge {i}") for i in range(8)))
        for i, answer in enumerate(answers):
            assert [t["text"] for t in answer.json()["results"][0]["tokens"]] == ["huge", str(i)]
        assert read_metrics(app)["elmo_texts_total",] == 8

    call(nlp, use)
    assert max(gate.sizes) > 2
