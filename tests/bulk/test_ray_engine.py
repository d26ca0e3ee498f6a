"""Jobs on a Ray cluster of several nodes, all of them on this machine."""

import os
import platform
import re
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from spacy_elmo.bulk import ray_engine
from spacy_elmo.bulk.bulk_pipeline import load_bulk_pipeline
from spacy_elmo.bulk.bulk_settings import BulkSettings
from spacy_elmo.bulk.ray_engine import RayWorker, _Actor, require_output, run_ray
from spacy_elmo.bulk.task_worker import TaskWorker

from ..support.bulk_jobs import embed
from ..support.helpers import make_nlp

ray = pytest.importorskip("ray")


def test_ray_is_an_extra(monkeypatch):
    monkeypatch.setattr(ray_engine, "ray", None)
    with pytest.raises(ValueError, match="EL241"):
        ray_engine.require_ray()


def test_a_node_has_to_see_the_output(tmp_path):
    with pytest.raises(ValueError, match="EL252"):
        require_output(tmp_path)
    (tmp_path / "_job.json").touch()
    require_output(tmp_path)


def test_an_actor_with_another_pipeline_is_refused(pipeline, tmp_path, monkeypatch):
    settings = BulkSettings(pipeline=pipeline)
    description = load_bulk_pipeline(settings).describe()
    (tmp_path / "_job.json").touch()
    assert _Actor(settings, tmp_path, False, description).load() == os.getpid()
    make_nlp(seed=1).to_disk(pipeline)
    err = _Actor(settings, tmp_path, False, description).load()

    shown = f"EL295.*'{platform.node()}'.*biLM is .*expected .{description['biLM']}"
    assert re.search(shown, str(err)), err


def test_an_actor_gets_paths_that_are_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_nlp().to_disk(tmp_path / "pipe")
    worker = RayWorker(TaskWorker(BulkSettings(pipeline="pipe"), Path("out")), {"num_gpus": 0})

    settings, output, _, _ = worker._arguments
    assert settings.pipeline == str(tmp_path / "pipe") and output == tmp_path / "out"


@pytest.fixture
def cluster():
    """A head without processors, and two nodes with one each."""
    from ray.cluster_utils import Cluster

    settings = {"include_dashboard": False, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **settings})
    cluster.nodes = [cluster.add_node(num_cpus=1, object_store_memory=80_000_000) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_and_a_lost_node_lose_nothing(cluster, pipeline, tmp_path):
    (tmp_path / "x.txt").write_text("".join(f"Line {i} of many.\n" for i in range(600)) + "\0\n")
    expected = embed(tmp_path / "x.txt", tmp_path / "a", pipeline, shard_chars=500)
    faults = [kill_an_actor, lambda: cluster.remove_node(cluster.nodes[0])]

    def engine(tasks, worker, retries):
        results = run_ray(tasks, worker, retries, n_workers=2)
        for n, result in enumerate(results):
            yield result
            if n in (1, 6):
                faults.pop(0)()

    found = embed(tmp_path / "x.txt", tmp_path / "b", pipeline, shard_chars=500, engine=engine)
    assert found == expected and not faults
    assert len(list((tmp_path / "b").glob("part-*"))) > 15
    rejects = [(tmp_path / name / "_rejects.jsonl").read_text() for name in "ab"]
    assert rejects[0] == rejects[1] and "NUL" in rejects[0]


def kill_an_actor():
    """Kill -9 the process of one of our actors."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            title = path.read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::_Actor"):
            os.kill(int(path.parent.name), signal.SIGKILL)
            return
    raise AssertionError("there is no actor")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_errors_of_actors_are_those_of_one_process(cluster, pipeline, texts, tmp_path):
    engine = partial(run_ray, n_workers=1)

    def lose_output(tasks, worker, retries):
        worker.output = tmp_path / "elsewhere"
        yield from engine(tasks, worker, retries)

    with pytest.raises(ValueError, match="^.EL252"):
        embed(texts, tmp_path / "out", pipeline, engine=lose_output)
    make_nlp(seed=1).to_disk(tmp_path / "other")

    def load_another(tasks, worker, retries):
        worker.settings = replace(worker.settings, pipeline=str(tmp_path / "other"))
        yield from engine(tasks, worker, retries)

    with pytest.raises(ValueError, match="^.EL295"):
        embed(texts, tmp_path / "new", pipeline, engine=load_another)


def test_a_cluster_that_is_not_there_is_said(pipeline, texts, tmp_path):
    engine = partial(run_ray, n_workers=1, address="127.0.0.1:1")
    with pytest.raises(ValueError, match="EL255"):
        embed(texts, tmp_path / "out", pipeline, engine=engine)


def test_a_cluster_without_its_token_is_said(pipeline, texts, tmp_path, monkeypatch):
    def refuse(**settings):
        raise ray.exceptions.RayError("RAY_AUTH_TOKEN_PATH is set but file cannot be opened")

    monkeypatch.setattr(ray_engine.ray, "init", refuse)
    with pytest.raises(ValueError, match="EL255.*AUTH_TOKEN"):
        embed(texts, tmp_path / "out", pipeline, engine=partial(run_ray, n_workers=1))
