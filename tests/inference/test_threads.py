"""Tasks side by side: threads that are bounded, and never in the way."""

import subprocess
import sys
import threading
import time

import pytest
import spacy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from spacy_elmo.inference import threads as parallel

BUNDLED = {"@architectures": "spacy-elmo.Elmo.v2"}


@pytest.fixture
def no_workers(monkeypatch):
    """As in a process that has not run anything yet."""
    workers = []
    monkeypatch.setattr(parallel, "_workers", workers)
    yield
    for jobs in workers:
        jobs.put(None)


def test_tasks_run_without_gradients_on_one_thread_each_and_in_order():
    before = torch.get_num_threads()

    def look(i):
        return i, torch.get_num_threads(), torch.is_grad_enabled()

    found = parallel.run_parallel([lambda i=i: look(i) for i in range(7)], 3)

    assert found == [(i, 1, False) for i in range(7)]
    assert torch.get_num_threads() == before
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("failing", [0, 3])
def test_an_error_of_a_task_is_raised(failing):
    def work(i):
        if i == failing:
            raise ValueError("no")

    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="no"):
        parallel.run_parallel([lambda i=i: work(i) for i in range(5)], 2)
    assert torch.get_num_threads() == before


def test_tasks_go_to_whoever_is_free():
    workers = set()
    both = threading.Barrier(2, timeout=60)

    def work(i):
        # The first two tasks meet: neither waits behind the other.
        if i < 2:
            both.wait()
        workers.add(threading.current_thread().name)

    parallel.run_parallel([lambda i=i: work(i) for i in range(2)], 2)

    assert len(workers) == 2


def test_no_more_threads_than_asked_for():
    running, most, lock = 0, 0, threading.Lock()

    def work():
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    parallel.run_parallel([work] * 8, 8)
    assert most > 2
    most = 0
    parallel.run_parallel([work] * 8, 2)
    assert most <= 2


def test_threads_born_meanwhile_keep_torchs_default():
    found = []

    def work():
        thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        thread.start()
        thread.join()

    before = torch.get_num_threads()
    parallel.run_parallel([work, work], 2)

    assert found == [before, before]


def find_threads():
    return {thread for thread in threading.enumerate() if thread.name.startswith("elmo")}


def refuse_threads(monkeypatch, n_allowed):
    """Have the system start some threads of ours and no more."""
    start, left = threading.Thread.start, n_allowed

    def start_or_refuse(thread):
        nonlocal left
        if thread.name.startswith("elmo"):
            left -= 1
            if left < 0:
                raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_refuse)


def look():
    return threading.current_thread(), torch.get_num_threads()


def test_when_no_thread_can_be_started_the_caller_works(no_workers, monkeypatch):
    refuse_threads(monkeypatch, 0)
    before = torch.get_num_threads()

    # On one thread, as the tasks were promised.
    found = parallel.run_parallel([look, look], 2)

    assert found == [(threading.current_thread(), 1)] * 2
    assert torch.get_num_threads() == before


def test_when_the_second_thread_cannot_be_started_the_first_works(no_workers, monkeypatch):
    refuse_threads(monkeypatch, 1)
    before, found = torch.get_num_threads(), []
    caller = threading.Thread(
        target=lambda: found.extend(parallel.run_parallel([look] * 5, 3)), daemon=True
    )

    caller.start()
    caller.join(30)

    assert not caller.is_alive()
    assert len(found) == 5 and {n for _, n in found} == {1}
    assert torch.get_num_threads() == before


def test_there_are_no_more_threads_than_the_largest_number_asked_for(no_workers):
    before = find_threads()

    for n_threads in [*range(1, 17), *range(16, 0, -1)]:
        parallel.run_parallel([lambda: None] * n_threads, n_threads)

    assert len(find_threads() - before) == 16


def test_callers_at_once_share_the_threads(no_workers):
    before, found = find_threads(), []

    def call(i):
        tasks = [lambda k=k: (time.sleep(0.001), i, k)[1:] for k in range(20)]
        found.append(parallel.run_parallel(tasks, 2) == [(i, k) for k in range(20)])

    callers = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)

    assert found == [True] * 8
    assert len(find_threads() - before) == 2


@pytest.mark.parametrize("line", ["run()", "import atexit; atexit.register(run)"])
def test_a_process_with_workers_comes_to_its_end(line):
    code = f"""
from spacy_elmo.inference.threads import run_parallel
def run():
    print(run_parallel([lambda: 1, lambda: 2], 2))
{line}
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=120, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 2]\n", "")


def test_threads_are_chosen_as_torch_has_them_and_one_in_a_child(monkeypatch):
    assert parallel.choose_n_threads(3) == 3
    assert parallel.choose_n_threads(0) == torch.get_num_threads()

    monkeypatch.setattr(parallel, "parent_process", lambda: object())

    assert parallel.choose_n_threads(0) == 1
    assert parallel.choose_n_threads(2) == 2


class Noted(TorchDispatchMode):
    """Note what torch does in the calling thread."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.names.add(operator.overloadpacket.__name__)
        return operator(*args, **(kwargs or {}))


def test_a_short_text_does_not_wake_torch_s_own_threads():
    """Once begun, they wait for more work with a processor in their hands, and the two directions
    need both. torch begins them for an index from 3,000 numbers on, for a copy from 32,768."""
    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo", config={"model": {**BUNDLED, "n_threads": 2}})
    doc = nlp.make_doc(" ".join(["The quick brown fox jumped over the lazy dog ."] * 12))

    # Begins the engine. After it, all words are new, then known.
    elmo(nlp.make_doc("Ham"))
    with Noted() as noted:
        elmo(doc)
    assert not noted.names & {"index", "index_put_", "_index_put_impl_"}

    with Noted() as noted:
        elmo(doc)

    assert "index_select" in noted.names and "index_copy_" in noted.names
    assert not noted.names & {"index", "index_put_", "_index_put_impl_", "clone", "copy_", "cat"}
