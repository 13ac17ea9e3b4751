"""Conduct a sweep: skip what is finished, carry out the rest, write the tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from sim.kernel.component import dump
from sim.kernel.errors import InputError
from sim.sweep import contrasts, results, summary
from sim.sweep.executor import Engine, LocalEngine
from sim.sweep.plan import Plan, Run, read_plan
from sim.sweep.results import Keys
from sim.sweep.store import Store, code_version, run_key, write_whole
from sim.sweep.worker import Outcome, Task

Tell = Callable[[Outcome, str], None]


@dataclass(frozen=True)
class SweepResult:
    """`rounds`: a row per run and round (`results.parquet`); `summary` and `contrasts`: the tables of the same names;
    `outcomes`: what this call did, by run key; `failures`: (run's name, stage, cause) of every run that failed."""

    plan: Plan
    directory: Path
    rounds: pd.DataFrame
    summary: pd.DataFrame
    contrasts: pd.DataFrame
    outcomes: dict[str, Outcome]
    failures: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Work:
    """A plan with the store it lives in: the keys of all runs, and the tasks that are left to do."""

    plan: Plan
    store: Store
    keys: Keys
    names: dict[str, str]  # key -> what a person calls the run
    tasks: list[Task]


def run_sweep(
    sweep: Plan | str | Path,
    out: str | Path | None = None,
    engine: Engine | None = None,
    tell: Tell | None = None,
    shard: tuple[int, int] | None = None,
) -> SweepResult:
    """Run a sweep (a file or a plan) into `out` (default: runs/NAME) and return its tables.

    Runs that are finished there are not done again. `shard=(k, n)` does only every n-th run, for job arrays. A failing
    run is a record in `failures`, not an exception. Raises InputError for bad input.
    """
    plan = sweep if isinstance(sweep, Plan) else read_plan(sweep)
    work = prepare(plan, out, shard)
    outcomes = carry_out(work, engine or LocalEngine(), tell)
    return conclude(work, outcomes)


def prepare(plan: Plan, out: str | Path | None = None, shard: tuple[int, int] | None = None) -> Work:
    """Name every run and find those that are not finished. Raises InputError when a scenario has no observer or the
    folder cannot be made."""
    store = Store(Path(out) if out is not None else Path("runs") / plan.name)
    blind = [point.name for point in plan.points if not point.scenario.observer]
    if blind:
        raise InputError(f"{plan.file}: point {blind[0]!r} has `observer: false`, so there is nothing to summarise")
    if (store.folder / "scenario.yaml").exists():
        raise InputError(f"{store.folder}: this folder already holds a run; choose another --out")
    try:
        (store.folder / "runs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{store.folder}: cannot make the output folder: {error.strerror}") from None
    code, keys, names, tasks = code_version(), {}, {}, []
    for number, run in enumerate(plan.runs()):
        data = dump(run.scenario)
        key = run_key(data, code)
        keys[run.point.name, run.seed] = key
        names[key] = title(run)
        ours = shard is None or number % shard[1] == shard[0] - 1
        if ours and not store.finished(key):
            tasks.append(Task(key, data, str(store.folder.resolve()), str(plan.scenario_folder)))
    unique = {task.key: task for task in tasks}  # two points may be one and the same scenario
    return Work(plan, store, keys, names, list(unique.values()))


def title(run: Run) -> str:
    """What a person calls a run."""
    return f"{run.point.name}, seed {run.seed}"


def carry_out(work: Work, engine: Engine, tell: Tell | None = None) -> dict[str, Outcome]:
    """Do all tasks; those that another sweep holds are waited for at the end."""
    outcomes: dict[str, Outcome] = {}
    tasks = {task.key: task for task in work.tasks}
    while tasks:
        busy = {}
        for outcome in engine.outcomes(list(tasks.values())):
            if outcome.status == "busy":
                busy[outcome.key] = replace(tasks[outcome.key], wait=True)
                continue
            outcomes[outcome.key] = outcome
            if tell is not None:
                tell(outcome, work.names[outcome.key])
        tasks = busy
    return outcomes


def conclude(work: Work, outcomes: dict[str, Outcome]) -> SweepResult:
    """Write the tables of everything that is finished in the folder, each whole file at once."""
    plan, store = work.plan, work.store
    rows = results.collect(plan, store, work.keys)
    summarised, compared = summary.summarise(plan, rows), contrasts.contrast(plan, rows)
    files = {
        "results.parquet": results.parquet(rows),
        "summary.csv": summary.as_csv(plan, summarised).encode("utf-8"),
        "runs.csv": results.index(plan, store, work.keys).encode("utf-8"),
        "sweep.json": (json.dumps(_facts(plan), indent=2) + "\n").encode("utf-8"),
    }
    if plan.references:
        files["contrasts.csv"] = contrasts.as_csv(compared).encode("utf-8")
    for name, content in files.items():
        write_whole(store.folder / name, content)
    failures = [
        (work.names[key], str(record["stage"]), str(record["cause"]))
        for key in dict.fromkeys(work.keys.values())
        if (record := store.failure(key)) is not None
    ]
    tables = (
        pd.DataFrame(summarised, columns=[*plan.axes, *summary.COLUMNS]),
        pd.DataFrame(compared, columns=list(contrasts.COLUMNS)),
    )
    return SweepResult(plan, store.folder, rows, *tables, outcomes, failures)


def _facts(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "axes": list(plan.axes),
        "points": [point.name for point in plan.points],
        "seeds": list(plan.seeds),
        "references": plan.references,
        "equivalence": plan.equivalence,
        "code": code_version(),
    }
