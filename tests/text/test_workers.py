"""Processes that cut text: in order, whatever their number; an error if one ends."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from spacy_elmo.text.cutting import Chunk, cut_all

pytestmark = pytest.mark.timeout(120)


class ToyCutter:
    """Words of lines. A text may kill the process, or fail."""

    def __call__(self, texts, number):
        (text,) = texts
        if text == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "fails":
            raise ValueError("no such text")
        return [text.split(), [str(number)]]


def cut(texts, n_workers):
    chunks = ((Chunk([text], i), i) for i, text in enumerate(texts))
    return cut_all(chunks, ToyCutter, n_workers)


def test_workers_cut_the_same_and_end_with_an_error():
    texts = [f"text {i}" for i in range(50)]
    found = cut([*texts, "fails"], 2)
    assert [next(found) for _ in texts] == list(cut(texts, 0))
    assert multiprocessing.active_children()
    with pytest.raises(ValueError, match="no such text"):
        next(found)
    assert not multiprocessing.active_children()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends signals")
def test_a_killed_worker_is_an_error():
    with pytest.raises(ValueError, match="EL328.*n_workers"):
        list(cut(["a", "b", "dies", "c"], 1))
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_worker_that_cannot_start_is_an_error():
    chunks = [(Chunk(["a"], i), i) for i in range(3)]
    with pytest.raises(ValueError, match="EL328.*__main__"):
        list(cut_all(iter(chunks), partial(os._exit, 3), 1))


WORKER = """
import os, sys
from spacy_elmo.text.corpus import (Corpus, TextSource, cutter_maker)

def make():
    print(os.getpid(), flush=True)
    return cutter_maker("xx", {})()

if __name__ == "__main__":
    corpus = Corpus({"x": TextSource(sys.argv[1], 0)}, {"x": 1.0}, make, n_workers=1)
    for _ in corpus.read(corpus.start()):
        pass
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_end_when_the_trainer_is_killed(tmp_path):
    (tmp_path / "text.txt").write_text("green eggs and ham .\n" * 100)
    (tmp_path / "worker.py").write_text(WORKER)
    command = [sys.executable, str(tmp_path / "worker.py"), str(tmp_path / "text.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        worker = int(process.stdout.readline())
        process.kill()

    def is_running():
        try:
            with open(f"/proc/{worker}/status") as file:
                return "(zombie)" not in file.read()
        except OSError:
            return False

    while is_running():
        time.sleep(0.1)
