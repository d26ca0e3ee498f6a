"""The app of the page: who may ask, what is answered, and what every answer carries."""

import json
import threading
import time
from contextlib import contextmanager

import httpx
import pytest

from spacy_elmo.explore.explore_limits import ExploreLimits
from spacy_elmo.explore.explored_pipeline import prepare_pipeline
from spacy_elmo.explore.explorer import Explorer
from spacy_elmo.explore.page_server import make_url, open_socket
from spacy_elmo.explore.request_guard import is_loopback

from ..support.explore_page import serve_page
from ..support.helpers import make_nlp

pytestmark = pytest.mark.filterwarnings("ignore:.*WL003")


@pytest.fixture(scope="module")
def explorer():
    nlp = make_nlp()
    prepare_pipeline(nlp, "toy")
    return Explorer(nlp)


@contextmanager
def open_client(explorer, host="127.0.0.1"):
    with serve_page(explorer, host) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def client(explorer):
    with open_client(explorer) as client:
        yield client


def read_error(response, status):
    assert response.status_code == status
    return response.json()["error"]


def test_the_page_and_its_files_come_from_here(client):
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "http:" not in page.text and "https:" not in page.text and "style=" not in page.text
    for name in ("explore.css", "page.js", "dom.js", "views.js", "scales.js", "icon.svg"):
        assert client.get(f"/static/{name}").status_code == 200
    assert "javascript" in client.get("/static/page.js").headers["content-type"]


def test_no_other_file_is_served(client):
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/docs",
        "/api/read/",
    ):
        assert "EL283" in read_error(client.get(path), 404)
    assert "EL283" in read_error(client.get("/api/read"), 405)


def test_every_answer_carries_a_strict_policy(client):
    for answer in (client.get("/"), client.get("/nowhere"), client.get("/api/pipeline")):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy and "*" not in policy and "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"


def test_answers_are_those_of_the_explorer(client, explorer):
    text = "Green eggs.\nNo eggs!"
    assert client.get("/api/pipeline").json() == explorer.describe()
    assert client.post("/api/read", json={"text": text}).json() == explorer.read(text)
    answer = client.post("/api/compare", json={"text": text, "tokens": [1, 4]})
    assert answer.json() == explorer.compare(text, [1, 4])


BAD = {
    "empty": ("/api/read", {"text": " "}, 400, "EL271"),
    "long": ("/api/read", {"text": "x" * 3000}, 400, "EL272"),
    "no text": ("/api/read", {"txt": "x"}, 422, "EL283.*text: Field required"),
    "half a pair": ("/api/read", '{"text": "\\ud800"}', 422, "EL283"),
    "no JSON": ("/api/read", "{", 422, "EL283"),
    "a letter": ("/api/compare", {"text": "x", "tokens": ["0"]}, 422, "EL283"),
    "no token": ("/api/compare", {"text": "x", "tokens": [7]}, 400, "EL276"),
    "no model": ("/api/substitute", {"text": "x", "token": 0}, 400, "EL274"),
    "no index": ("/api/search", {"text": "x", "token": 0, "layer": 0}, 400, "EL275"),
    "huge": ("/api/read", {"text": "x" * 200_000}, 413, "EL272.*bytes.*--max-chars"),
}


@pytest.mark.parametrize("path, body, status, message", BAD.values(), ids=BAD)
def test_bad_requests_are_told(client, path, body, status, message):
    if isinstance(body, str):
        answer = client.post(path, content=body, headers={"content-type": "application/json"})
    else:
        answer = client.post(path, json=body)
    with pytest.raises(ValueError, match=message):
        raise ValueError(read_error(answer, status))


def test_a_longer_text_fits_into_a_request(explorer):
    # In ASCII: twelve bytes for one such character.
    body = json.dumps({"text": "😀😀😀 " * 4_000})
    limits = ExploreLimits(max_chars=16_000, max_tokens=16_000)
    with open_client(Explorer(explorer.nlp, limits=limits)) as client:
        headers = {"content-type": "application/json"}
        answer = client.post("/api/read", content=body, headers=headers)
        assert answer.status_code == 200
    assert len(body) < limits.max_bytes

    with open_client(explorer) as client:
        answer = client.post("/api/read", content=body, headers=headers)
        assert "EL272" in read_error(answer, 413)


def test_a_body_in_pieces_is_limited_too(client):
    pieces = (b" " * 10_000 for _ in range(100))
    answer = client.post("/api/read", content=pieces, headers={"content-type": "application/json"})
    assert answer.status_code >= 400


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:8080"])
def test_names_of_this_machine_are_served(client, host):
    assert client.get("/api/pipeline", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8080", "", "[::1", "a@b"])
def test_other_names_are_refused(client, host):
    answer = client.get("/", headers={"host": host})
    assert "EL280" in read_error(answer, 403)
    assert "content-security-policy" in answer.headers


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9", "http://["]
)
def test_other_pages_are_refused(client, origin):
    answer = client.post("/api/read", json={"text": "x"}, headers={"origin": origin})
    assert "EL280" in read_error(answer, 403)
    ours = {"origin": str(client.base_url).rstrip("/")}
    assert client.post("/api/read", json={"text": "x"}, headers=ours).status_code == 200


def test_a_form_of_another_page_is_no_json(client):
    headers = {"content-type": "text/plain"}
    answer = client.post("/api/read", content='{"text": "x"}', headers=headers)
    assert "EL283" in read_error(answer, 422)


def test_a_server_for_others_is_asked_by_any_name(explorer):
    with open_client(explorer, "0.0.0.0") as client:
        assert client.get("/", headers={"host": "some.machine:8080"}).status_code == 200


def test_loopback_is_known():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost", "LocalHost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "some.machine")))


@pytest.fixture
def slow():
    """An explorer that reads when `go` is set, and fails for "fail"."""
    go = threading.Event()
    nlp = make_nlp()
    prepare_pipeline(nlp, "toy")

    def read(text):
        if text == "fail":
            raise RuntimeError("broken <b>")
        if text == "value":
            raise ValueError("of a library")
        assert go.wait(20)
        return {}

    explorer = Explorer(nlp, limits=ExploreLimits(seconds=1, max_waiting=2))
    explorer.read = read
    yield explorer, go
    go.set()


def test_a_text_that_takes_too_long_is_told_and_too_many_are_refused(slow):
    explorer, go = slow
    with open_client(explorer) as client:
        answers = []
        threads = [
            threading.Thread(
                target=lambda: answers.append(client.post("/api/read", json={"text": "x"}))
            )
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        assert "EL279" in read_error(client.post("/api/read", json={"text": "x"}), 503)
        for thread in threads:
            thread.join()
        assert all("EL278" in read_error(answer, 503) for answer in answers)

        go.set()
        time.sleep(0.1)
        assert client.post("/api/read", json={"text": "x"}).status_code == 200


def test_a_pipeline_that_fails_is_told(slow):
    with open_client(slow[0]) as client:
        answer = client.post("/api/read", json={"text": "fail"})
        assert "EL284" in read_error(answer, 500) and "broken <b>" in answer.json()["error"]
        answer = client.post("/api/read", json={"text": "value"})
        assert "EL284" in read_error(answer, 500)
        assert client.get("/api/pipeline").status_code == 200


def test_a_port_in_use_is_told():
    opened = open_socket("127.0.0.1", 0)
    port = opened.getsockname()[1]
    with opened:
        assert make_url(opened, "127.0.0.1") == f"http://127.0.0.1:{port}/"
        assert make_url(opened, "::1") == f"http://[::1]:{port}/"
        with pytest.raises(ValueError, match=f"EL282.*'127.0.0.1', port {port}: Address already"):
            open_socket("127.0.0.1", port)
    with pytest.raises(ValueError, match="EL282.*no.such.host.invalid"):
        open_socket("no.such.host.invalid", 0)
