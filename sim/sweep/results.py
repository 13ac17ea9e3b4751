"""`results.parquet`: a row per run and round, the axes first. `runs.csv`: what became of every run."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pandas as pd

from sim.columns import ROUND
from sim.kernel.component import dump
from sim.overrides import split
from sim.records import table
from sim.sweep.plan import Plan, Point, plain
from sim.sweep.store import Store

Keys = dict[tuple[str, int], str]
"""(point name, seed) -> key of the run's folder."""


def axis_values(plan: Plan) -> dict[str, list[Any]]:
    """Each axis's value at each point: numbers where all are numbers, else text. A point that does not set a key has
    the value of its scenario; None where the scenario has no such key."""
    values: dict[str, list[Any]] = {}
    for axis in plan.axes:
        held = [p.settings[axis] if axis in p.settings else _look_up(p, axis) for p in plan.points]
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in held if v is not None)
        values[axis] = held if numbers else [None if v is None else plain(v) for v in held]
    return values


def _look_up(point: Point, axis: str) -> Any:
    here = dump(point.scenario)
    for part in split(axis):
        if isinstance(here, dict) and part in here:
            here = here[part]  # type: ignore[index]
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        else:
            return None
    return here


def collect(plan: Plan, store: Store, keys: Keys) -> pd.DataFrame:
    """All rows of all finished runs, in the order of the plan's points and seeds, whoever ran them and when."""
    axes = axis_values(plan)
    frames = []
    for index, point in enumerate(plan.points):
        for seed in plan.seeds:
            key = keys[point.name, seed]
            if not store.finished(key):
                continue
            rows = read_rows(store.run(key) / "rounds.csv")
            for place, axis in enumerate(plan.axes):
                rows.insert(place, axis, [axes[axis][index]] * len(rows))
            rows.insert(len(plan.axes), "point", point.name)
            rows.insert(len(plan.axes) + 1, "run", key)
            frames.append(rows)
    columns = [*plan.axes, "point", "run", *(c.name for c in ROUND)]
    if not frames:
        return pd.DataFrame(columns=columns)
    kept = [frame.dropna(axis=1, how="all") for frame in frames]  # an empty column must not decide the type
    return pd.concat(kept, ignore_index=True).reindex(columns=columns)


def read_rows(file: Path) -> pd.DataFrame:
    """A run's `rounds.csv`, every digit kept whatever pandas does with decimal text; empty cells are missing."""
    with open(file, encoding="utf-8", newline="") as lines:
        cells = list(csv.DictReader(lines))
    return pd.DataFrame({c.name: [_number(row.get(c.name)) for row in cells] for c in ROUND})


def _number(text: str | None) -> int | float | None:
    if not text:
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)


def parquet(rows: pd.DataFrame) -> bytes:
    """The rows as a Parquet file."""
    buffer = io.BytesIO()
    rows.to_parquet(buffer, index=False)
    return buffer.getvalue()


def last_rounds(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Point name -> the last round of each of its runs, indexed by seed."""
    if rows.empty:
        return {}
    last = rows.loc[rows.groupby(["point", "run"], sort=False)["round"].idxmax()]
    return {str(name): group.set_index("seed").sort_index() for name, group in last.groupby("point", sort=False)}


def index(plan: Plan, store: Store, keys: Keys) -> str:
    """Every run with its folder and state, as CSV."""
    axes = axis_values(plan)
    rows = []
    for place, point in enumerate(plan.points):
        for seed in plan.seeds:
            key = keys[point.name, seed]
            failure = store.failure(key) or {}
            state = "finished" if store.finished(key) else "failed" if failure else "unfinished"
            told = {"stage": failure.get("stage"), "cause": failure.get("cause")}
            held = {axis: axes[axis][place] for axis in plan.axes}
            rows.append({**held, "point": point.name, "seed": seed, "run": key, "state": state, **told})
    return table(rows, [*plan.axes, "point", "seed", "run", "state", "stage", "cause"])
