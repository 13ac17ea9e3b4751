"""The same sweep on a Ray cluster of two nodes on this machine: the same bytes, failures as records."""

import os
from pathlib import Path

import pytest
from sweeps import Here, write

from sim.kernel.errors import InputError
from sim.sweep import ray_engine, run_sweep
from sim.sweep.executor import DIED
from sim.sweep.ray_engine import RayEngine
from sim.sweep.store import Store
from sim.sweep.worker import THREAD_VARIABLES, Outcome, Task

ray = pytest.importorskip("ray", reason="Ray is not installed (extra [ray])")


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one CPU each."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def test_two_nodes_give_the_bytes_of_one_process(cluster, tmp_path):
    engine = RayEngine()
    assert engine.workers == 2
    there = run_sweep(write(tmp_path), tmp_path / "ray", engine)
    here = run_sweep(write(tmp_path), tmp_path / "here", Here())
    assert not there.failures and {o.status for o in there.outcomes.values()} == {"done"}
    for name in ("summary.csv", "contrasts.csv"):
        assert (there.directory / name).read_bytes() == (here.directory / name).read_bytes()
    assert ray.is_initialized()  # a cluster that was connected before stays connected


def where_and_how(task):
    """Tells the node and the thread variables of a task."""
    import time

    time.sleep(1.0)
    Store(task.store).run(task.key).mkdir(parents=True)
    (Store(task.store).run(task.key) / "summary.json").write_text("{}")
    threads = {os.environ.get(name) for name in THREAD_VARIABLES}
    return Outcome(task.key, "done", stage=ray.get_runtime_context().get_node_id(), cause=str(threads))


def troubled(task):
    """Dies, raises, or claims to be done without a trace."""
    if task.key == "dies":
        os.kill(os.getpid(), 9)
    if task.key == "raises":
        raise ValueError("no module here")
    return Outcome(task.key, "done")


def tasks(folder, *keys):
    return [Task(key, {}, str(folder), str(folder)) for key in keys]


def test_runs_spread_over_the_nodes_with_one_thread_each(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr(ray_engine, "execute", where_and_how)
    outcomes = list(RayEngine().outcomes(tasks(tmp_path, *"abcdef")))
    assert len({o.stage for o in outcomes}) == 2 and {o.cause for o in outcomes} == {"{'1'}"}


def test_a_dead_worker_and_a_folder_that_is_not_shared_are_failures(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr(ray_engine, "execute", troubled)
    outcomes = {o.key: o for o in RayEngine(1).outcomes(tasks(tmp_path, "dies", "raises", "elsewhere"))}
    assert outcomes["raises"].cause == "ValueError: no module here"
    assert outcomes["dies"].cause == DIED and "shared by all nodes" in outcomes["elsewhere"].cause
    assert Store(tmp_path).failure("dies")["stage"] == "worker"


def test_without_ray_the_message_says_how_to_get_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'graphwarden\[ray\]'"):
        RayEngine()


def test_the_engine_stays_small():
    assert len(Path(ray_engine.__file__).read_text(encoding="utf-8").splitlines()) < 150
