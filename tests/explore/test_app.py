"""The app of the page: requests, answers, errors."""

import threading
from contextlib import contextmanager

import httpx
import pytest

from spacy_elmo.explore.app import is_loopback, make_url, open_socket
from spacy_elmo.explore.explorer import ExploreLimits, Explorer, prepare_pipeline

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


def test_the_page_loads_nothing_from_elsewhere(client):
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "http:" not in page.text and "https:" not in page.text
    for name in ("explore.css", "page.js", "icon.svg"):
        assert name in page.text and client.get(f"/{name}").status_code == 200
    for path in ("/../app.py", "/%2e%2e/app.py", "//etc/passwd", "/docs"):
        assert client.get(path).status_code == 404


def test_answers_are_those_of_the_explorer(client, explorer):
    text = "Green eggs.\nNo eggs!"
    assert client.get("/api/pipeline").json() == explorer.describe()
    assert client.post("/api/read", json={"text": text}).json() == explorer.read(text)
    answer = client.post("/api/compare", json={"text": text, "tokens": [1, 4]})
    assert answer.json() == explorer.compare(text, [1, 4])


BAD = {
    "empty": ("read", '{"text": ""}', 400, "EL272"),
    "no text": ("read", '{"txt": "x"}', 422, "required"),
    "half a pair": ("read", '{"text": "\\ud800"}', 400, "surrogates"),
    "not JSON": ("read", "{", 422, "json"),
    "no token": ("compare", '{"text": "x", "tokens": [7]}', 400, "Token 7"),
    "no model": ("substitute", '{"text": "x", "token": 0}', 400, "elmo_lm"),
    "no index": ("search", '{"text": "x", "token": 0, "layer": 0}', 400, "--index"),
}


@pytest.mark.parametrize("name, body, status, message", BAD.values(), ids=BAD)
def test_bad_requests_are_refused(client, name, body, status, message):
    headers = {"content-type": "application/json"}
    answer = client.post(f"/api/{name}", content=body, headers=headers)
    assert answer.status_code == status and message in answer.text


HOSTS = {"127.0.0.1:8080": 200, "localhost:1": 200, "[::1]:8080": 200, "evil.example": 400}
HOSTS.update({"127.0.0.1.evil.example:8080": 400, "": 400})


def test_only_names_of_this_machine_are_served_unless_the_page_is_for_others(client, explorer):
    for host, status in HOSTS.items():
        assert client.get("/", headers={"host": host}).status_code == status, host
    with open_client(explorer, "0.0.0.0") as other:
        assert all(other.get("/", headers={"host": h}).status_code == 200 for h in HOSTS)
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost", "LocalHost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "some.machine")))


def test_a_form_of_another_page_is_not_read(client):
    headers = {"content-type": "text/plain"}
    answer = client.post("/api/read", content='{"text": "x"}', headers=headers)
    assert answer.status_code == 422


def test_one_text_is_read_at_a_time_and_failures_are_reported():
    nlp = make_nlp()
    prepare_pipeline(nlp, "toy")
    started, go = threading.Event(), threading.Event()

    def read(text):
        if text == "fail":
            raise RuntimeError("broken")
        started.set()
        assert go.wait(20)
        return {}

    explorer = Explorer(nlp, limits=ExploreLimits(seconds=1))
    explorer.read = read
    with open_client(explorer) as client:

        def post(text):
            return client.post("/api/read", json={"text": text})

        assert post("fail").status_code == 500 and "broken" in post("fail").json()["error"]
        thread = threading.Thread(target=post, args=["x"])
        thread.start()
        assert started.wait(20)
        busy = post("y")
        go.set()
        thread.join()
        assert busy.status_code == 503 and "other texts" in busy.json()["error"]
        assert post("x").status_code == 200


def test_a_port_in_use_is_reported():
    opened = open_socket("127.0.0.1", 0)
    port = opened.getsockname()[1]
    with opened:
        assert make_url(opened, "127.0.0.1") == f"http://127.0.0.1:{port}/"
        assert make_url(opened, "::1") == f"http://[::1]:{port}/"
        with pytest.raises(ValueError, match=f"EL282.*'127.0.0.1', port {port}: "):
            open_socket("127.0.0.1", port)
    with pytest.raises(ValueError, match="EL282.*no.such.host.invalid"):
        open_socket("no.such.host.invalid", 0)
