"""Processes that cut text: in order, whatever their number, and told of when they are killed."""

import multiprocessing
import os
import signal
import threading
from functools import partial

import pytest

from spacy_elmo.text.texts import Chunk
from spacy_elmo.text.workers import cut_all


class ToyCutter:
    """Words of lines. A text may kill the process, at once or while it answers, or fail."""

    def __call__(self, texts, number):
        (text,) = texts
        if text == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "dies later":
            threading.Timer(0.02, os.kill, [os.getpid(), signal.SIGKILL]).start()
            # More than a pipe holds, or is read in that time.
            return [["x" * 100_000_000]]
        if text == "fails":
            raise ValueError("no such text")
        return [text.split(), [str(number)]]


def cut(texts, n_workers):
    chunks = ((Chunk([text], i), i) for i, text in enumerate(texts))
    return cut_all(chunks, ToyCutter, n_workers)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_any_number_of_workers_cuts_the_same(n_workers):
    texts = [f"text {i}" for i in range(50)]
    assert list(cut(texts, n_workers)) == list(cut(texts, 0))
    assert not multiprocessing.active_children()


@pytest.mark.skipif(os.name == "nt", reason="sends signals")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", ["dies", "dies later"])
def test_a_worker_that_is_killed_is_told(how):
    with pytest.raises(ValueError, match="EL328.*n_workers"):
        list(cut(["a", "b", how, "c"], 1))
    assert not multiprocessing.active_children()


@pytest.mark.timeout(60)
def test_a_worker_that_cannot_start_is_told():
    chunks = [(Chunk(["a"], i), i) for i in range(3)]
    with pytest.raises(ValueError, match="EL337.*exit code 3.*__main__"):
        list(cut_all(iter(chunks), partial(os._exit, 3), 1))
    assert not multiprocessing.active_children()


def test_what_a_cutter_raises_is_raised_here():
    with pytest.raises(ValueError, match="no such text"):
        list(cut(["a", "fails"], 1))


def test_who_stops_reading_leaves_no_process():
    items = cut(["a"] * 100, 2)
    assert next(items) == ([["a"], ["0"]], 0)
    assert multiprocessing.active_children()
    items.close()
    assert not multiprocessing.active_children()
