"""Children end with their parent."""

import os
import signal
import subprocess
import sys
import time

import pytest

WORK = """
import multiprocessing, os, sys, time
from spacy_elmo.utils import end_with_parent

def work(stopped, ready):
    end_with_parent(stopped)
    ready.put(os.getpid())
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    stopped, stop = context.Pipe(duplex=False)
    ready = context.SimpleQueue()
    children = [context.Process(target=work, args=(stopped, ready)) for _ in range(2)]
    for child in children:
        child.start()
    print(ready.get(), ready.get(), flush=True)
    if sys.stdin.readline() == "stop\\n":
        stop.close()
    for child in children:
        child.join()
    print(*(child.exitcode for child in children), flush=True)
"""


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as status:
        return status.read().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.fixture
def parent(tmp_path):
    (tmp_path / "work.py").write_text(WORK)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, tmp_path / "work.py"], **pipes) as process:
        yield process


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_children_end_when_their_parent_is_killed(parent):
    children = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(children) == 2 and all(map(is_alive, children))
    for pid in children:
        os.kill(pid, signal.SIGINT)  # which is their parent's

    assert all(map(is_alive, children))
    parent.kill()
    deadline = time.monotonic() + 30
    while any(map(is_alive, children)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(is_alive, children))


def test_children_end_when_their_parent_says_so(parent):
    parent.stdout.readline()
    parent.stdin.write("stop\n")
    parent.stdin.flush()
    assert parent.stdout.readline().split() == ["1", "1"]
