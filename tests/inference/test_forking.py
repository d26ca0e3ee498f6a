"""Children get what is whole, whatever other threads do and whatever goes wrong."""

import os
import signal
import threading
import time

import pytest
import torch

from spacy_elmo.bilm.build_lock import BUILD_LOCK
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference import threads as forking
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.threads import CACHE_LOCK, share_at_fork

from ..support.helpers import SHAPE, assert_close

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SENTENCES = [["a", "b", "c"], ["d"]]


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
        for lock in (BUILD_LOCK, CACHE_LOCK):
            found.append(lock.acquire(timeout=10))
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join(30)
    return found == [True, True]


def make_bilm():
    torch.manual_seed(0)
    return BiLM(BiLMConfig(**SHAPE))


class Failing:
    def __init__(self, error):
        self.error = error

    def prepare(self):
        raise self.error


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), RuntimeError("no"), KeyError("no"), OSError(28, "no"), MemoryError()],
    ids=repr,
)
def test_what_cannot_be_prepared_does_no_harm(error):
    failing = Failing(error)
    share_at_fork(failing)
    try:
        assert run_child(lambda: are_free() and torch.get_num_threads() == 1)
        assert are_free()
    finally:
        forking._shared.discard(failing)


def test_an_interrupt_of_the_preparation_comes_after_the_fork():
    failing = Failing(KeyboardInterrupt())
    share_at_fork(failing)
    child = None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            child = os.fork()
            if child == 0:
                os._exit(0 if are_free() else 1)
            time.sleep(30)
    finally:
        signal.signal(signal.SIGINT, before)
        forking._shared.discard(failing)
    assert os.waitpid(child, 0)[1] == 0
    assert are_free()


def test_locks_that_the_forking_thread_holds_are_held_after_it():
    with BUILD_LOCK, CACHE_LOCK:
        assert run_child(lambda: True)
        found = []
        thread = threading.Thread(target=lambda: found.append(BUILD_LOCK.acquire(timeout=0.1)))
        thread.start()
        thread.join()
    assert found == [False]
    assert are_free()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_children_compute_while_the_parents_threads_do(n_threads):
    bilm = make_bilm()
    expected = Embedder(bilm).embed(SENTENCES)
    # Small: the cache changes all the time.
    embedder = Embedder(bilm, word_cache=3, n_threads=n_threads)
    is_over, errors = threading.Event(), []

    def predict():
        try:
            while not is_over.is_set():
                assert_close(embedder.embed(SENTENCES), expected, 1e-6)
                bilm.load_state_dict(bilm.state_dict())
        except BaseException as err:
            errors.append(err)

    def is_exact():
        assert_close(embedder.embed(SENTENCES), expected, 1e-6)
        return True

    threads = [threading.Thread(target=predict) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert all(run_child(is_exact) for _ in range(15))
    finally:
        is_over.set()
        for thread in threads:
            thread.join(60)
    assert not errors


def test_embedders_may_be_made_while_others_fork():
    is_over = threading.Event()

    def make():
        while not is_over.is_set():
            Embedder(make_bilm())

    thread = threading.Thread(target=make)
    thread.start()
    try:
        assert all(run_child(are_free) for _ in range(15))
    finally:
        is_over.set()
        thread.join(60)
