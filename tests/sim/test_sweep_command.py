"""`graphwarden sweep` from outside: exit codes, a dry run, Ctrl-C, kill -9 and a rerun, one worker and two."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import yaml
from sweeps import SCENARIO, SWEEP, Here, write

from sim.cli import guarded
from sim.sweep import run_sweep
from sim.sweep.executor import LocalEngine

HOME = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from sim.cli import main; main()", "sweep"]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Two points, three seeds, two worker processes."""
    folder = tmp_path_factory.mktemp("unbroken")
    return run_sweep(write(folder), folder / "out", LocalEngine(2))


def start(*arguments):
    """The command in a process group of its own, as a terminal would start it."""
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finished(out):
    return sorted(out.glob("runs/*/summary.json"))


def wait_for(condition, seconds=120.0):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)


def test_one_worker_two_workers_and_none_at_all_agree(unbroken, tmp_path):
    tables = ["summary.csv", "contrasts.csv"]
    assert guarded(["sweep", str(write(tmp_path)), "--out", str(tmp_path / "one"), "--workers", "1"]) == 0
    run_sweep(write(tmp_path), tmp_path / "here", Here())
    for other in ("one", "here"):
        for name in tables:
            assert (tmp_path / other / name).read_bytes() == (unbroken.directory / name).read_bytes(), (other, name)
        rows = [pd.read_parquet(folder / "results.parquet") for folder in (tmp_path / other, unbroken.directory)]
        plain = [r.drop(columns=[c for c in r if c.startswith("seconds_") or c == "peak_memory_mb"]) for r in rows]
        pd.testing.assert_frame_equal(*plain)


def test_kill_9_with_two_of_six_done_then_the_same_command(unbroken, tmp_path):
    file, out = write(tmp_path), tmp_path / "out"
    process = start(file, "--out", out, "--workers", 1)
    wait_for(lambda: len(finished(out)) >= 2)
    process.kill()
    process.communicate()
    done = finished(out)
    assert 2 <= len(done) < 6
    before = {f: f.stat().st_mtime_ns for d in done for f in d.parent.iterdir()}
    again = start(file, "--out", out, "--workers", 2)
    _, said = again.communicate(timeout=240)
    assert again.returncode == 0 and f"6 runs, {6 - len(done)} to do here" in said
    assert {f: f.stat().st_mtime_ns for f in before} == before
    for name in ("summary.csv", "contrasts.csv"):
        assert (out / name).read_bytes() == (unbroken.directory / name).read_bytes()


def test_ctrl_c_leaves_finished_runs_and_says_how_to_go_on(tmp_path):
    file, out = write(tmp_path), tmp_path / "out"
    process = start(file, "--out", out, "--workers", 1)
    wait_for(lambda: len(finished(out)) >= 1)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "the same command goes on" in said and "Traceback" not in said
    assert 1 <= len(finished(out)) < 6 and not (out / "summary.csv").exists()


def test_a_failing_run_ends_with_1_and_a_list(tmp_path, capsys):
    graph = {"source": "synthetic", "nodes": 60, "dimensions": 30, "classes": 3}
    (tmp_path / "failing_plugin.py").write_text(
        "from server.pruning.base import Pruning\n\nclass Fail(Pruning):\n    '''Fails.'''\n\n"
        "    def decide(self, *arguments, **named):\n        raise ValueError('as asked')\n"
    )
    points = {"fine": {"graph": graph}, "broken": {"server.pruning": {"kind": "failing_plugin:Fail"}}}
    file = write(tmp_path, {"scenario": "tiny.yaml", "points": points})
    assert guarded(["sweep", str(file), "--out", str(tmp_path / "out"), "--workers", "1"]) == 1
    told = capsys.readouterr()
    assert re.search(r"failed: broken, seed 3 \(round 1: \w+\): ValueError: as asked", told.err)
    assert re.search(r"fine +1 of 1", told.out) and re.search(r"broken +0 of 1", told.out)


def test_a_dry_run_prints_points_runs_and_an_estimate_and_keeps_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guarded(["sweep", str(write(tmp_path)), "--dry-run", "--workers", "2"]) == 0
    told = capsys.readouterr().out
    assert "count=4   (compared with count=0)" in told and "2 points x 3 seeds (3, 4, 5) = 6 runs" in told
    assert re.search(r"one run \(count=0, seed 3\) took \d+ s; all of them about \d+ s with 2 workers", told)
    assert {p.name for p in tmp_path.iterdir()} == {"tiny.yaml", "sweep.yaml"}


BAD = {
    "an unknown key": ({"axes": {"server.suspicoin.kind": ["none"]}}, [], "did you mean 'suspicion'"),
    "an empty list": ({"axes": {"rounds": []}}, [], "empty list"),
    "a clash with set": ({"set": {"rounds": 1}, "axes": {"rounds": [1, 2]}}, [], "clashes with `set`"),
    "no workers": ({}, ["--workers", "0"], "--workers: found 0"),
    "a bad shard": ({}, ["--shard", "5/4"], "--shard: found '5/4'"),
    "an unknown engine": ({}, ["--engine", "dask"], "'dask' is not one of"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_2_and_a_message(name, tmp_path, capsys):
    changes, options, message = BAD[name]
    file = write(tmp_path, {**SWEEP, "reference": None, **changes})
    assert guarded(["sweep", str(file), "--out", str(tmp_path / "out"), *options]) == 2
    told = capsys.readouterr().err
    assert message in told and "Traceback" not in told
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_sixty_runs_in_one_worker_keep_its_memory_flat(tmp_path):
    data = {**SCENARIO, "rounds": 1, "server": {**SCENARIO["server"], "training": {"epochs": 2}}}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(data))
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump({"scenario": "tiny.yaml", "seeds": 60}))
    memory = []
    run_sweep(
        tmp_path / "sweep.yaml", tmp_path / "out", LocalEngine(1), lambda outcome, _: memory.append(outcome.memory_mb)
    )
    assert len(memory) == 60 and max(memory[5:]) < 1.1 * memory[5], memory
