"""Run a scenario: in memory or into a run directory, from the start or from a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sim.columns import GROUP, ROUND, Column
from sim.kernel.errors import InputError
from sim.records import RunDirectory
from sim.result import Result
from sim.scenario import Scenario, load, load_scenario

if TYPE_CHECKING:
    from sim.engine import Simulation

Progress = Callable[[int, str], None]


def run(
    scenario: Scenario | str | Path | dict[str, Any],
    out: str | Path | None = None,
    progress: Progress | None = None,
    **overrides: Any,
) -> Result:
    """Run a scenario (a path, plain data, or a loaded one) and return its `Result`.

    `out` names a new run directory; without it nothing is written. Overrides are dotted paths, as with `--set`:
    `sim.run("quickstart.yaml", seed=3, **{"server.pruning.kind": "none"})`. Raises InputError for bad input.
    """
    notes: list[str] = []
    if not isinstance(scenario, Scenario):
        loaded = load(scenario, overrides)
        scenario, notes = loaded.scenario, loaded.notes
    elif overrides:
        raise InputError("overrides go with a path or plain data; this scenario is already loaded")
    if out is not None:
        RunDirectory.refuse_taken(out)
    simulation = _simulation(scenario, progress)  # first, so that a graph that cannot be loaded leaves no folder behind
    directory = RunDirectory.create(out, scenario) if out is not None else None
    try:
        return _execute(simulation, directory, None, notes)
    except InputError:
        if directory is not None and simulation.round <= 1:
            directory.discard()
        raise


def resume(path: str | Path, progress: Progress | None = None) -> Result:
    """Finish an interrupted run in its own directory. The result is the same as that of an unbroken run."""
    directory = RunDirectory.reopen(path)
    scenario = load_scenario(directory.path / "scenario.yaml")
    return _execute(_simulation(scenario, progress), directory, directory.saved(), [])


def _simulation(scenario: Scenario, progress: Progress | None) -> Simulation:
    from sim.engine import Simulation

    return Simulation(scenario, progress)


def _execute(
    simulation: Simulation, directory: RunDirectory | None, state: dict[str, Any] | None, notes: list[str]
) -> Result:
    scenario, observer = simulation.spec, simulation.observer
    try:
        if state is not None:
            simulation.restore(state)
        if directory is not None:
            directory.rewrite(observer.rows if observer else [], observer.groups if observer else [])
        while simulation.round < scenario.rounds:
            done = (len(observer.rows), len(observer.groups)) if observer else (0, 0)
            simulation.step()
            if directory is not None:
                if observer is not None:
                    directory.append(observer.rows[done[0] :], observer.groups[done[1] :])
                if simulation.round < scenario.rounds:
                    directory.save(simulation.checkpoint())
        rows, groups = (observer.rows, observer.groups) if observer else ([], [])
        fates = observer.fates if observer is not None else None
        notes = [*notes, *simulation.notes, *(observer.notes if observer else [])]
    finally:
        simulation.close()
    summary = summarise(scenario, rows, notes)
    if directory is not None:
        directory.finish(summary, fates)
    return Result(
        scenario,
        frame(rows, ROUND),
        frame(groups, GROUP),
        fates if fates is not None else pd.DataFrame(),
        summary,
        directory.path if directory is not None else None,
        tuple(notes),
    )


def frame(rows: list[dict[str, Any]], columns: Sequence[Column]) -> pd.DataFrame:
    """Rows as a table; what does not exist is NaN, and a column of nothing but that is numeric too."""
    table = pd.DataFrame(rows, columns=[c.name for c in columns])
    empty = [name for name in table if table[name].isna().all()]
    return table.astype(dict.fromkeys(empty, float))


def summarise(scenario: Scenario, rows: list[dict[str, Any]], notes: list[str]) -> dict[str, Any]:
    """The last round's values (infinities as text), total seconds by stage, and the notes."""
    last = {
        k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in (rows[-1] if rows else {}).items()
    }
    stages = [c.name for c in ROUND if c.name.startswith("seconds_")]
    return {
        "name": scenario.name,
        "seed": scenario.seed,
        "rounds": scenario.rounds,
        "last_round": last,
        "seconds": {name.removeprefix("seconds_"): sum(row.get(name) or 0.0 for row in rows) for name in stages},
        "notes": notes,
    }
