"""The pool of processes: reuse, one thread each, workers that die, work that is broken off, parents that are killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sim.sweep.executor import DIED, LocalEngine, one_thread_each
from sim.sweep.progress import Clock, span
from sim.sweep.store import Store
from sim.sweep.worker import THREAD_VARIABLES, Outcome, Task


def tasks(folder, *keys):
    return [Task(key, {}, str(folder), str(folder)) for key in keys]


def tell_process(task):
    """Reports the worker's process id and its thread variables."""
    time.sleep(0.05)
    threads = ",".join(os.environ.get(name, "-") for name in THREAD_VARIABLES)
    return Outcome(task.key, "done", stage=threads, cause=str(os.getpid()))


def die_of_bad_luck(task):
    """Kills its own process when the task says so."""
    if task.key.startswith("bad"):
        os.kill(os.getpid(), signal.SIGKILL)
    return Outcome(task.key, "done")


def dawdle(task):
    """Leaves a sign of life, then takes far too long."""
    Path(task.store, f"{task.key}.pid").write_text(str(os.getpid()))
    time.sleep(60)
    return Outcome(task.key, "done")


def test_workers_are_reused_and_have_one_thread_each(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    outcomes = list(LocalEngine(2, tell_process).outcomes(tasks(tmp_path, *"abcdefgh")))
    assert sorted(o.key for o in outcomes) == list("abcdefgh")
    assert 1 <= len({o.cause for o in outcomes}) <= 2 and str(os.getpid()) not in {o.cause for o in outcomes}
    assert {o.stage for o in outcomes} == {",".join("1" for _ in THREAD_VARIABLES)}
    assert os.environ["OMP_NUM_THREADS"] == "7" and "MKL_NUM_THREADS" not in os.environ


def test_thread_variables_come_back_after_an_error(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with pytest.raises(KeyError), one_thread_each():
        assert os.environ["OMP_NUM_THREADS"] == "1"
        raise KeyError
    assert os.environ["OMP_NUM_THREADS"] == "3"


def test_a_worker_that_dies_fails_its_own_run_and_no_other(tmp_path):
    outcomes = {o.key: o for o in LocalEngine(2, die_of_bad_luck).outcomes(tasks(tmp_path, "a", "bad", "b", "c"))}
    assert {key: o.status for key, o in outcomes.items()} == {"a": "done", "b": "done", "c": "done", "bad": "failed"}
    assert outcomes["bad"].cause == DIED and Store(tmp_path).failure("bad")["cause"] == DIED
    assert Store(tmp_path).failure("a") is None


def test_work_that_is_broken_off_leaves_no_process(tmp_path):
    before = set(multiprocessing.active_children())
    engine = LocalEngine(2, dawdle).outcomes(tasks(tmp_path, "a", "b"))
    signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(4)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        next(engine)
    signal.alarm(0)
    assert time.monotonic() - start < 30
    assert not set(multiprocessing.active_children()) - before
    for file in tmp_path.glob("*.pid"):
        assert not alive(int(file.read_text()))


def interrupt(*_):
    raise KeyboardInterrupt


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from test_sweep_executor import dawdle, tasks
from sim.sweep.executor import LocalEngine
if __name__ == "__main__":
    list(LocalEngine(1, dawdle).outcomes(tasks({folder!r}, "a")))
"""


def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), folder=str(tmp_path)))
    home = str(Path(__file__).resolve().parents[2])
    parent = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": home})
    sign = tmp_path / "a.pid"
    wait_for(lambda: sign.exists() and sign.read_text())
    worker = int(sign.read_text())
    assert alive(worker)
    parent.kill()
    parent.wait()
    wait_for(lambda: not alive(worker))


def wait_for(condition, seconds=60.0):
    """Poll until the condition holds; fails after `seconds`."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.05)


def test_time_left_is_judged_by_the_median_run():
    clock = Clock(workers=2)
    assert clock.left(Outcome("a", "skipped"), 5) is None
    assert clock.left(Outcome("b", "done", 30.0), 4) == pytest.approx(60.0)
    clock.left(Outcome("c", "done", 2.0), 3)
    assert clock.left(Outcome("d", "done", 2.0), 2) == pytest.approx(2.0)
    assert clock.left(Outcome("e", "failed", 99.0), 1) == pytest.approx(2.0)
    assert [span(s) for s in (44.6, 200, 7500)] == ["45 s", "3 min 20 s", "2 h 5 min"]
