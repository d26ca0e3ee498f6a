"""The scheduler and its workers: killed processes lose nothing, and nothing comes twice."""

import os
import signal
import threading
import time
from concurrent.futures import Future
from dataclasses import replace

import pytest

from spacy_elmo.bulk import scheduler
from spacy_elmo.bulk.local_engine import run_local
from spacy_elmo.bulk.records import START, Record, Result, Task
from spacy_elmo.bulk.retries import KILLED, Retries
from spacy_elmo.bulk.scheduler import Scheduler
from spacy_elmo.bulk.task_worker import name_marker

from ..support.bulk_jobs import embed
from ..support.helpers import make_nlp


class Killed(Exception):
    """What a pool says of a process that is gone."""


class FakeWorker:
    """A worker whose process is killed by the words that it is told."""

    lost = (Killed,)

    def __init__(self, output, deadly=(), deaths=(), n_bad_starts=0, dies_always=False):
        self.output = output
        self.deadly = deadly
        self.deaths = deaths
        self.n_bad_starts = n_bad_starts
        self.dies_always = dies_always
        self.is_alive = False

    def start(self):
        future = Future()
        self.is_alive = self.n_bad_starts == 0
        if self.is_alive:
            future.set_result(None)
        else:
            self.n_bad_starts -= 1
            future.set_exception(Killed("no memory"))
        return future

    def submit(self, task):
        assert self.is_alive
        future = Future()
        threading.Thread(target=self._compute, args=(task, future)).start()
        return future

    def _compute(self, task, future):
        time.sleep(0.001)
        if task.number in self.deaths:
            self.deaths.remove(task.number)
            return self._die(future)
        for i, record in enumerate(task.records):
            if task.is_careful and i == 0:
                name_marker(self.output, task.number).write_text("")
                if self.dies_always:
                    return self._die(future)
            if task.is_careful and not record.problem:
                name_marker(self.output, task.number).write_text(str(i))
            if record.text in self.deadly and not record.problem:
                return self._die(future)
        n_good = sum(not record.problem for record in task.records)
        rejects = [{"reason": r.problem, "text": r.text} for r in task.records if r.problem]
        result = Result(task.number, START, "", 0, "", n_good, n_good, n_good, rejects)
        return future.set_result(result)

    def _die(self, future):
        self.is_alive = False
        future.set_exception(Killed("killed"))

    def close(self):
        self.is_alive = False


def make_tasks(n=10):
    return iter(
        [Task(i, [Record("x", j, text=f"{i}.{j}") for j in range(4)], START) for i in range(n)]
    )


def run(tmp_path, n_workers=3, **settings):
    workers = [FakeWorker(tmp_path, **settings) for _ in range(n_workers)]
    results = list(Scheduler(workers, Retries(tmp_path)).run(make_tasks()))
    assert sorted(result.number for result in results) == list(range(10))
    assert not any(worker.is_alive for worker in workers)
    return results


@pytest.mark.parametrize("n_workers", [1, 3, 20])
def test_tasks_of_killed_processes_are_computed_again(tmp_path, n_workers):
    results = run(tmp_path, n_workers, deaths=[0, 3, 3, 9])

    assert sum(result.n_rows for result in results) == 40
    assert not any(result.rejects for result in results)


def test_a_record_that_kills_is_set_aside_alone(tmp_path, caplog):
    results = run(tmp_path, deadly={"2.1", "2.3", "7.0"})

    assert sum(result.n_rows for result in results) == 37
    rejects = [reject for result in results for reject in result.rejects]
    assert sorted(reject["text"] for reject in rejects) == ["2.1", "2.3", "7.0"]
    assert {reject["reason"] for reject in rejects} == {KILLED}
    assert "WL051" in caplog.text


def test_processes_that_die_whatever_they_do_end_the_job(tmp_path):
    with pytest.raises(ValueError, match="EL251.*Shard 4"):
        run(tmp_path, deaths=[4] * 9)
    with pytest.raises(ValueError, match="EL251.*Shard 4"):
        # Not at a record.
        run(tmp_path, deaths=[4, 4], dies_always=True)
    with pytest.raises(ValueError, match="EL253.*no memory"):
        run(tmp_path, n_bad_starts=9)


def test_a_record_is_to_blame_after_two_deaths(tmp_path):
    """Nodes that go at different records, one by one, are no record's fault."""
    retries = Retries(tmp_path)
    task = next(make_tasks(1))
    for _ in range(2):
        task = retries.after_death(task)
    assert task.is_careful
    for i in (1, 3):
        name_marker(tmp_path, 0).write_text(str(i))
        task = retries.after_death(task)
        assert not any(record.problem for record in task.records)
    name_marker(tmp_path, 0).write_text("3")
    task = retries.after_death(task)
    assert [record.problem for record in task.records] == ["", "", "", KILLED]
    assert not name_marker(tmp_path, 0).exists()
    for i in (1, 2):
        name_marker(tmp_path, 0).write_text(str(i))
        task = retries.after_death(task)
    with pytest.raises(ValueError, match="EL251"):
        retries.after_death(task)


def test_an_error_that_is_no_death_ends_the_job(tmp_path):
    full = FakeWorker(tmp_path)
    failed = Future()
    failed.set_exception(OSError(28, "No space left on device"))
    full.submit = lambda task: failed
    workers = [full, FakeWorker(tmp_path)]
    with pytest.raises(OSError, match="No space"):
        list(Scheduler(workers, Retries(tmp_path)).run(make_tasks()))
    assert not any(worker.is_alive for worker in workers)


def test_no_more_is_read_than_workers_take(tmp_path):
    read = []
    tasks = (read.append(task) or task for task in make_tasks())
    results = Scheduler([FakeWorker(tmp_path)], Retries(tmp_path)).run(tasks)
    next(results)
    assert len(read) <= 2
    results.close()


def test_a_cluster_without_room_is_waited_for(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(scheduler, "_PATIENCE", 0.05)
    worker = FakeWorker(tmp_path)
    late = Future()
    worker.start = lambda: late
    timer = threading.Timer(0.2, late.set_result, [None])
    timer.start()
    worker.is_alive = True

    results = list(Scheduler([worker], Retries(tmp_path)).run(make_tasks(2)))
    timer.join()
    assert len(results) == 2 and "WL052" in caplog.text


def test_without_tasks_nothing_is_waited_for(tmp_path):
    assert not list(Scheduler([FakeWorker(tmp_path)], Retries(tmp_path)).run(iter([])))


@pytest.mark.slow
def test_a_killed_process_of_this_machine_loses_nothing(pipeline, tmp_path):
    (tmp_path / "x.txt").write_text("".join(f"Line {i} of many.\n" for i in range(400)))
    expected = embed(tmp_path / "x.txt", tmp_path / "a", pipeline, shard_chars=1000)
    killed = []

    def engine(tasks, worker, retries):
        for result in run_local(tasks, worker, retries, n_processes=2):
            if not killed:
                killed.append(kill_a_child())
            yield result

    found = embed(tmp_path / "x.txt", tmp_path / "b", pipeline, shard_chars=1000, engine=engine)
    assert found == expected and killed


@pytest.mark.slow
def test_a_process_with_another_pipeline_is_refused(pipeline, texts, tmp_path):
    make_nlp(seed=1).to_disk(tmp_path / "other")

    def engine(tasks, worker, retries):
        worker.settings = replace(worker.settings, pipeline=str(tmp_path / "other"))
        yield from run_local(tasks, worker, retries, n_processes=2)

    with pytest.raises(ValueError, match="EL295.*biLM"):
        embed(texts, tmp_path / "out", pipeline, engine=engine)


def kill_a_child():
    import multiprocessing

    process = multiprocessing.active_children()[0]
    os.kill(process.pid, signal.SIGKILL)
    return process
