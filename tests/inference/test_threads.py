"""Tasks side by side, many callers at once, and forked children."""

import os
import subprocess
import sys
import threading
import time

import pytest
import spacy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference import engine as inference
from spacy_elmo.inference import threads
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.threads import CACHE_LOCK, LOAD_LOCK, run_parallel, share_at_fork

from ..support.helpers import SHAPE, assert_close

SENTENCES = [["a", "b", "c"], ["d"]]
BUNDLED = {"@architectures": "spacy-elmo.Elmo.v2"}


def make_bilm():
    torch.manual_seed(0)
    return BiLM(BiLMConfig(**SHAPE))


def test_tasks_run_without_gradients_on_one_thread_each_and_in_order():
    before = torch.get_num_threads()

    def look(i):
        return i, torch.get_num_threads(), torch.is_grad_enabled()

    found = run_parallel([lambda i=i: look(i) for i in range(7)], 3)

    assert found == [(i, 1, False) for i in range(7)]
    assert torch.get_num_threads() == before
    assert torch.is_grad_enabled()


def test_greenlets_are_no_threads(monkeypatch):
    """After gevent's monkey patch, all have the native id of the caller."""
    monkeypatch.setattr(threads, "_pools", {})
    monkeypatch.setattr(threads, "get_native_id", lambda: 1)

    found = run_parallel([threading.get_ident] * 4, 2)

    assert found == [threading.get_ident()] * 4
    assert torch.is_grad_enabled()


INSTALLED = """
import os, spacy, torch
torch.set_num_threads(2)
nlp = spacy.blank("en")
if {}:
    nlp.add_pipe("elmo")
if not os.fork():
    print(torch.get_num_threads(), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("used", [False, True])
def test_only_programs_that_use_elmo_change_their_forks(used):
    code = INSTALLED.format(used)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert done.stdout == ("1\n" if used else "2\n"), done.stderr


def test_threads_of_others_keep_torchs_default():
    found = []

    def look():
        thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        thread.start()
        thread.join()

    before = torch.get_num_threads()
    run_parallel([look, look], 5)
    look()

    assert found == [before] * 3


@pytest.mark.parametrize("n_threads", [1, 3])
def test_many_callers_at_once(monkeypatch, n_threads):
    monkeypatch.setattr(inference, "_LEAST_ROWS", 1)
    bilm = make_bilm()
    # Small: the cache changes all the time.
    embedder = Embedder(bilm, n_threads=n_threads, word_cache=5, batch_tokens=20)
    texts = [[[f"w{(i + k) % 9}" for k in range(1 + i % 7)] for i in range(9)]] * 6
    expected = Embedder(bilm, n_threads=1).embed(texts[0])
    found = [None] * len(texts)

    def embed(i):
        for _ in range(3):
            found[i] = embedder.embed(texts[i])

    callers = [threading.Thread(target=embed, args=(i,)) for i in range(len(texts))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)

    for arrays in found:
        assert_close(arrays, expected, 1e-6)


class Noted(TorchDispatchMode):
    """Note torch's operations in the calling thread."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.names.add(operator.overloadpacket.__name__)
        return operator(*args, **(kwargs or {}))


def test_a_short_text_does_not_wake_torchs_own_threads(monkeypatch):
    """Once started, they wait for more work on a processor that the two directions need. torch
    starts them for an index from 3,000 numbers on, for others from 32,768."""
    # With one, the caller may do everything.
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo", config={"model": {**BUNDLED, "n_threads": 2}})
    doc = nlp.make_doc(" ".join(["The quick brown fox jumped over the lazy dog ."] * 12))

    # Builds the engine. After it, all words are new, then known.
    elmo(nlp.make_doc("Ham"))
    rows = {"index", "index_put_", "index_select", "index_copy_"}
    for avoided in (rows, {*rows, "clone", "copy_", "cat"}):
        with Noted() as noted:
            elmo(doc)
        assert noted.names and not noted.names & avoided


# ---- forks

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def run_child(work, seconds=60):
    """Whether work comes to its end, in a forked child, and is true."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            os._exit(2)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


def are_free():
    """Whether another thread gets the locks."""
    found = []

    def take():
        for lock in (LOAD_LOCK, CACHE_LOCK):
            found.append(lock.acquire(timeout=10))
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join(30)
    return found == [True, True]


class Failing:
    def prepare(self):
        raise ValueError("no")


@needs_fork
def test_an_object_that_cannot_be_prepared_does_no_harm():
    failing = Failing()
    share_at_fork(failing)

    assert run_child(lambda: are_free() and torch.get_num_threads() == 1)
    assert are_free()


@needs_fork
def test_a_fork_prepares_an_embedder_before():
    calls = []

    def load(bilm):
        calls.append(os.getpid())

    embedder = Embedder(make_bilm(), loader=load)

    assert run_child(lambda: len(embedder.embed(SENTENCES)) == 2)
    assert calls == [os.getpid()]


@needs_fork
@pytest.mark.parametrize("n_threads", [1, 2])
def test_children_compute_while_the_parents_threads_do(n_threads):
    bilm = make_bilm()
    expected = Embedder(bilm).embed(SENTENCES)
    embedder = Embedder(bilm, word_cache=3, n_threads=n_threads)
    is_over, errors = threading.Event(), []

    def predict():
        try:
            while not is_over.is_set():
                assert_close(embedder.embed(SENTENCES), expected, 1e-6)
        except BaseException as err:
            errors.append(err)

    def is_exact():
        assert_close(embedder.embed(SENTENCES), expected, 1e-6)
        return True

    callers = [threading.Thread(target=predict) for _ in range(3)]
    for caller in callers:
        caller.start()
    try:
        assert all(run_child(is_exact) for _ in range(8))
    finally:
        is_over.set()
        for caller in callers:
            caller.join(60)
    assert not errors
