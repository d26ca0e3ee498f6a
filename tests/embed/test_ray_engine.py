"""Jobs on a Ray cluster of two nodes, both of them on this machine."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from spacy_elmo.embed import ray_engine
from spacy_elmo.embed.pipeline import EmbedSettings, load_embed_pipeline
from spacy_elmo.embed.ray_engine import _Actor, run_ray

from ..support.embed_jobs import embed
from ..support.helpers import make_nlp
from .test_job import assert_same

ray = pytest.importorskip("ray")


def test_a_node_needs_the_output_and_the_same_pipeline(pipeline, tmp_path):
    settings = EmbedSettings(pipeline=pipeline)
    description = load_embed_pipeline(settings).describe()
    with pytest.raises(ValueError, match="does not see the folder"):
        _Actor(settings, tmp_path, False, description).check()
    (tmp_path / "_job.json").touch()
    _Actor(settings, tmp_path, False, description).check()
    make_nlp(seed=1).to_disk(pipeline)
    with pytest.raises(ValueError, match="has another pipeline"):
        _Actor(settings, tmp_path, False, description).check()


def test_a_cluster_that_cannot_be_used_is_told(pipeline, texts, tmp_path, monkeypatch):
    engine = partial(run_ray, n_workers=1, address="127.0.0.1:1")
    with pytest.raises(ValueError, match="'127.0.0.1:1' cannot be reached"):
        embed(texts, tmp_path / "out", pipeline, engine=engine)

    def refuse(**settings):
        raise ray.exceptions.RayError("RAY_AUTH_TOKEN_PATH is set but file cannot be opened")

    monkeypatch.setattr(ray_engine.ray, "init", refuse)
    with pytest.raises(ValueError, match="cannot be reached: RAY_AUTH_TOKEN"):
        embed(texts, tmp_path / "new", pipeline, engine=partial(run_ray, n_workers=1))
    monkeypatch.setattr(ray_engine, "ray", None)
    with pytest.raises(ValueError, match="EL038.*spacy-elmo.ray"):
        ray_engine.require_ray()


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
def test_a_killed_actor_and_an_error_lose_nothing(cluster, pipeline, tmp_path, monkeypatch):
    (tmp_path / "x.txt").write_text("".join(f"Line {i} of many.\n" for i in range(400)) + "\0\n")
    expected = embed(tmp_path / "x.txt", tmp_path / "a", pipeline, shard_chars=500)

    def engine(tasks, worker):
        for n, result in enumerate(run_ray(tasks, worker, n_workers=2)):
            yield result
            if n == 1:
                kill_an_actor()

    found = embed(tmp_path / "x.txt", tmp_path / "b", pipeline, shard_chars=500, engine=engine)
    assert_same(found, expected)
    assert len(list((tmp_path / "b").glob("part-*"))) > 10
    rejects = [(tmp_path / name / "_rejects.jsonl").read_text() for name in "ab"]
    assert rejects[0] == rejects[1] and "NUL" in rejects[0]

    def lose_output(tasks, worker):
        worker.output = tmp_path / "elsewhere"
        yield from run_ray(tasks, worker, n_workers=1)

    with pytest.raises(ValueError, match="^The node .* does not see the folder"):
        embed(tmp_path / "x.txt", tmp_path / "c", pipeline, engine=lose_output)


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
