"""Whole sweeps in this process: folders, skipping, failures as records, resuming, two sweeps on one folder."""

import dataclasses
import json
import os
import threading
import time

import pandas as pd
import pytest
import yaml
from sweeps import SWEEP, Here, write

import sim.sweep.store as store_module
from sim.engine import Simulation
from sim.kernel.component import dump
from sim.kernel.errors import InputError
from sim.records import RunDirectory
from sim.scenario import load_scenario
from sim.sweep import read_plan, run_sweep
from sim.sweep.conduct import carry_out, prepare
from sim.sweep.store import Store, code_version, run_key, write_whole
from sim.sweep.worker import Outcome, execute


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A sweep of two points and three seeds, done once."""
    folder = tmp_path_factory.mktemp("whole")
    return run_sweep(write(folder), folder / "out", Here())


def stamps(folder):
    return {
        f.relative_to(folder): f.stat().st_mtime_ns
        for f in sorted((folder / "runs").rglob("*"))
        if ".locks" not in str(f)
    }


def test_a_sweep_leaves_a_folder_a_run_and_its_tables(whole):
    assert {p.name for p in whole.directory.iterdir()} == {
        "contrasts.csv", "results.parquet", "runs", "runs.csv", "summary.csv", "sweep.json",
    }  # fmt: skip
    runs = pd.read_csv(whole.directory / "runs.csv")
    assert runs["run"].nunique() == 6 and set(runs["state"]) == {"finished"}
    held = load_scenario(whole.directory / "runs" / runs["run"][4] / "scenario.yaml")
    assert held.seed == runs["seed"][4] == 4 and held.population.attackers[0].count == 4
    assert len(whole.rounds) == 12 and not whole.failures
    assert set(whole.summary["point"]) == {"count=0", "count=4"}
    assert (whole.contrasts["reference"] == "count=0").all() and len(whole.contrasts)


def test_a_run_of_a_sweep_is_the_run_that_the_command_makes(whole):
    import sim

    alone = sim.run(
        write(whole.directory / "again").parent / "tiny.yaml", seed=5, **{"population.attackers.0.count": 0}
    )
    ours = whole.rounds.query("point == 'count=0' and seed == 5")
    for column in ("edges", "test_accuracy", "detection_fpr", "suspicion_honest_mean"):
        assert ours[column].tolist() == alone.rounds[column].tolist()


def test_finished_runs_are_skipped_untouched(whole):
    before, summary = stamps(whole.directory), (whole.directory / "summary.csv").read_bytes()
    engine = Here()
    again = run_sweep(whole.plan, whole.directory, engine)
    assert engine.seen == [] and again.outcomes == {}
    assert stamps(whole.directory) == before and (whole.directory / "summary.csv").read_bytes() == summary


def test_a_wider_sweep_on_the_same_folder_does_only_what_is_new(whole, tmp_path):
    file = write(tmp_path, {**SWEEP, "seeds": 4})
    engine = Here()
    run_sweep(file, whole.directory, engine)
    assert len(engine.seen) == 2
    run_sweep(whole.plan, whole.directory, Here())


def test_the_key_depends_on_scenario_seed_code_and_files(tmp_path, monkeypatch):
    plan = read_plan(write(tmp_path))
    data = [dump(run.scenario) for run in plan.runs()]
    assert len({run_key(d, "code") for d in data}) == 6
    assert (
        run_key(data[0], "code") == run_key(json.loads(json.dumps(data[0])), "code") != run_key(data[0], "other code")
    )
    table = tmp_path / "edges.csv"
    table.write_text("0,1\n")
    named = {"graph": {"source": "file", "path": str(table)}}
    first = run_key(named, "code")
    table.write_text("0,2\n")
    assert run_key(named, "code") != first


def test_code_version_changes_with_the_source_but_not_with_presentation(tmp_path, monkeypatch):
    package = tmp_path / "pretend"
    (package / "sweep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "kernel.py").write_text("x = 1\n")
    (package / "sweep" / "closing.py").write_text("y = 1\n")
    monkeypatch.setattr(store_module, "_ROOT", tmp_path)
    monkeypatch.setattr(store_module, "_PACKAGES", ("pretend",))
    monkeypatch.setattr(store_module, "_NO_ROW_DEPENDS_ON", ("pretend/sweep/",))
    version = code_version.__wrapped__
    first = version()
    (package / "sweep" / "closing.py").write_text("y = 2\n")
    assert version() == first
    (package / "kernel.py").write_text("x = 2\n")
    assert version() != first


PLUGIN = """
from server.pruning.base import Pruning

class Explode(Pruning):
    '''Fails at one seed.'''
    seed: int = 4

    def decide(self, *arguments, **named):
        raise ZeroDivisionError("boom")
"""


def test_a_failing_run_is_a_record_and_the_rest_goes_on(tmp_path):
    (tmp_path / "explosive_plugin.py").write_text(PLUGIN)
    sweep = {
        "scenario": "tiny.yaml",
        "points": {"fine": {}, "broken": {"server.pruning": {"kind": "explosive_plugin:Explode"}}},
    }
    file = write(tmp_path, sweep)
    result = run_sweep(file, tmp_path / "out", Here())
    ((name, stage, cause),) = result.failures
    assert name == "broken, seed 3" and stage.startswith("round 1: ") and cause == "ZeroDivisionError: boom"
    runs = pd.read_csv(tmp_path / "out" / "runs.csv").set_index("point")
    assert runs["state"].to_dict() == {"fine": "finished", "broken": "failed"} and runs["cause"]["broken"] == cause
    record = Store(tmp_path / "out").failure(runs["run"]["broken"])
    assert "decide" in record["traceback"] and set(result.summary["point"]) == {"fine"}
    (tmp_path / "explosive_plugin.py").write_text(PLUGIN.replace('raise ZeroDivisionError("boom")', "return None"))
    engine = Here()
    run_sweep(file, tmp_path / "out", engine)
    assert len(engine.seen) == 1  # the failed one is done again, under the key of the mended file


def test_an_interrupted_run_goes_on_from_its_checkpoint_to_the_same_rows(whole, tmp_path):
    plan = read_plan(write(tmp_path))
    work = prepare(plan, tmp_path / "out")
    first, second = work.tasks[:2]
    for task, spoil in ((first, False), (second, True)):
        directory = RunDirectory.create(work.store.run(task.key), load_scenario(task.scenario))
        simulation = Simulation(load_scenario(task.scenario))
        simulation.step()
        directory.save(simulation.checkpoint())
        simulation.close()
        if spoil:  # a checkpoint that cannot be read: done again from the start
            (directory.path / "checkpoint.pickle").write_bytes(b"half a pick")
        assert work.store.interrupted(task.key)
    result = run_sweep(plan, tmp_path / "out", Here())
    assert (result.directory / "summary.csv").read_bytes() == (whole.directory / "summary.csv").read_bytes()
    assert (result.directory / "contrasts.csv").read_bytes() == (whole.directory / "contrasts.csv").read_bytes()


def test_a_failed_run_is_not_resumed_but_begun_again(tmp_path):
    store = Store(tmp_path)
    store.run("k").mkdir(parents=True)
    (store.run("k") / "checkpoint.pickle").write_bytes(b"x")
    assert store.interrupted("k")
    store.record_failure("k", "round 2: training", "MemoryError: ")
    assert not store.interrupted("k") and store.failure("k")["stage"] == "round 2: training"
    (store.run("k") / "summary.json").write_text("{}")
    assert store.failure("k") is None and store.finished("k")


def test_a_run_that_another_sweep_holds_is_left_and_waited_for_at_the_end(tmp_path):
    work = prepare(read_plan(write(tmp_path)), tmp_path / "out")
    held = work.tasks[0].key
    with work.store.claim(held) as ours, work.store.claim(held) as also:
        assert ours and not also
    seen = []

    def pretend(task):
        with work.store.claim(task.key, task.wait) as ours:
            seen.append((task.key, task.wait))
            return Outcome(task.key, "done" if ours else "busy")

    release = threading.Event()

    def other_sweep():
        with work.store.claim(held):
            release.wait(20)
            time.sleep(0.3)

    thread = threading.Thread(target=other_sweep)
    thread.start()
    while not work.store.folder.joinpath("runs", ".locks", held).exists():
        time.sleep(0.01)
    time.sleep(0.1)
    told = []

    def tell(outcome, name):
        told.append(name)
        if len(told) == len(work.tasks) - 1:
            release.set()

    outcomes = carry_out(work, Here(pretend), tell)
    thread.join()
    assert len(outcomes) == 6 and seen[0] == (held, False) and seen[-1] == (held, True) and len(seen) == 7
    assert told[-1] == work.names[held]


def test_a_run_finished_by_another_sweep_meanwhile_is_skipped(whole):
    work = prepare(whole.plan, whole.directory)
    assert work.tasks == []
    run = whole.plan.runs()[0]
    data = dump(run.scenario)
    key = run_key(data, code_version())
    from sim.sweep.worker import Task

    assert execute(Task(key, data, str(whole.directory), ".")).status == "skipped"


def test_two_sweeps_on_one_folder_at_once_share_the_runs(tmp_path, whole):
    plan, results, errors = read_plan(write(tmp_path)), [], []

    def go():
        try:
            results.append(run_sweep(plan, tmp_path / "out", Here()))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    done = [o.key for r in results for o in r.outcomes.values() if o.status == "done"]
    assert len(done) == len(set(done)) == 6
    assert (tmp_path / "out" / "summary.csv").read_bytes() == (whole.directory / "summary.csv").read_bytes()


def test_shards_part_the_runs_between_them(tmp_path):
    plan = read_plan(write(tmp_path))
    parts = [prepare(plan, tmp_path / "out", (k, 4)).tasks for k in (1, 2, 3, 4)]
    keys = [task.key for part in parts for task in part]
    assert len(keys) == len(set(keys)) == 6 and [len(p) for p in parts] == [2, 2, 1, 1]


def test_points_that_are_one_scenario_are_run_once_and_shown_twice(tmp_path):
    sweep = {"scenario": "tiny.yaml", "points": {"a": {}, "b": {"rounds": 2}}, "reference": "a"}
    engine = Here()
    result = run_sweep(write(tmp_path, sweep), tmp_path / "out", engine)
    assert len(engine.seen) == 1 and set(result.summary["point"]) == {"a", "b"}


def test_a_sweep_needs_the_observer_and_a_folder_to_write_to(tmp_path):
    with pytest.raises(InputError, match="observer"):
        prepare(read_plan(write(tmp_path, SWEEP, observer=False)), tmp_path / "out")
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="cannot make the output folder"):
        prepare(read_plan(write(tmp_path)), tmp_path / "taken")


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "summary.csv"
    write_whole(target, b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["summary.csv"]


def test_scenarios_cross_process_borders_as_plain_data(tmp_path):
    work = prepare(read_plan(write(tmp_path)), tmp_path / "out")
    text = yaml.safe_dump(work.tasks[0].scenario)
    assert load_scenario(yaml.safe_load(text)) == work.plan.runs()[0].scenario
    assert all(isinstance(v, (str, dict, bool)) for v in dataclasses.asdict(work.tasks[0]).values())
