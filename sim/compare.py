"""`graphwarden compare A B`: two runs or two sweeps side by side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from sim.columns import ROUND, TIMING
from sim.document import read
from sim.kernel.errors import InputError

Line = tuple[str, Any, Any]
"""What, its value in A, its value in B."""


def kind_of(folder: str | Path) -> str:
    """`run` or `sweep`. Raises InputError when the folder holds neither, or a run without a finished round."""
    folder = Path(folder)
    if (folder / "sweep.json").exists() and (folder / "summary.csv").exists():
        return "sweep"
    if (folder / "scenario.yaml").exists() and (folder / "rounds.csv").exists():
        return "run"
    raise InputError(f"{folder}: found neither a run (scenario.yaml, rounds.csv) nor a sweep (sweep.json, summary.csv)")


def compare(first: str | Path, second: str | Path) -> tuple[list[Line], list[Line]]:
    """(settings that differ, values of the last round) of two runs, or (points only in one, means by point) of two
    sweeps. Raises InputError when the folders do not hold two things of a kind."""
    kinds = kind_of(first), kind_of(second)
    if kinds[0] != kinds[1]:
        raise InputError(f"{first} is a {kinds[0]} and {second} is a {kinds[1]}; expected two of a kind")
    return _sweeps(Path(first), Path(second)) if kinds[0] == "sweep" else _runs(Path(first), Path(second))


def _runs(first: Path, second: Path) -> tuple[list[Line], list[Line]]:
    scenarios = [_flat(read(folder / "scenario.yaml").data) for folder in (first, second)]
    keys = list(dict.fromkeys([*scenarios[0], *scenarios[1]]))
    settings = [(key, scenarios[0].get(key, "-"), scenarios[1].get(key, "-")) for key in keys]
    ours, theirs = _last_row(first), _last_row(second)
    values = [(c.name, ours.get(c.name), theirs.get(c.name)) for c in ROUND if c.name != "seed"]
    return (
        [line for line in settings if line[1] != line[2]],
        [line for line in values if line[1] is not None or line[2] is not None],
    )


def _last_row(folder: Path) -> dict[str, Any]:
    from sim.sweep.results import read_rows

    rows = read_rows(folder / "rounds.csv")
    if rows.empty:
        raise InputError(f"{folder}: no round is finished here yet")
    return {str(name): None if pd.isna(value) else value for name, value in rows.iloc[-1].to_dict().items()}


def _sweeps(first: Path, second: Path) -> tuple[list[Line], list[Line]]:
    means = []
    for folder in (first, second):
        table = pd.read_csv(folder / "summary.csv")
        means.append({(str(r["point"]), str(r["metric"])): r["mean"] for r in table.to_dict("records")})
    points = [list(dict.fromkeys(point for point, _ in held)) for held in means]
    lonely = [
        (point, "there" if point in points[0] else "-", "there" if point in points[1] else "-")
        for point in dict.fromkeys([*points[0], *points[1]])
        if (point in points[0]) != (point in points[1])
    ]
    both = [key for key in means[0] if key in means[1]]
    return lonely, [(f"{point}: {metric}", means[0][point, metric], means[1][point, metric]) for point, metric in both]


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Nested settings as dotted keys."""
    if isinstance(value, (dict, list)) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for name, inner in items for k, v in _flat(inner, f"{path}.{name}".lstrip(".")).items()}
    return {path: value}


def show(first: str | Path, second: str | Path, everything: bool = False) -> None:
    """Print what differs, with B - A. Equal values and times are left out unless `everything`."""
    import sys

    from rich.console import Console
    from rich.table import Table

    settings, values = compare(first, second)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    title = "what differs in the scenario" if kind_of(first) == "run" else "points that only one has"
    if settings:
        grid = Table("", "A", "B", title=title, title_justify="left", box=None, pad_edge=False)
        for name, a, b in settings:
            grid.add_row(name, str(a), str(b))
        console.print(grid)
    shown = values if everything else [v for v in values if v[0] not in TIMING and not _same(v[1], v[2])]
    if not shown:
        console.print("no value differs")
        return
    grid = Table(title="last round", title_justify="left", box=None, pad_edge=False)
    for column in ("", "A", "B", "B - A"):
        grid.add_column(column, justify="right" if column else "left")
    for name, a, b in shown:
        grid.add_row(name, number(a), number(b), number(difference(a, b), sign=True))
    console.print(grid)
    console.print(f"A: {first}\nB: {second}")
    if kind_of(first) == "run":
        console.print("one run each: a difference may be chance; `graphwarden sweep` compares over seeds")


def _same(a: Any, b: Any) -> bool:
    return a is not None and b is not None and a == b


def difference(a: Any, b: Any) -> float | None:
    """b - a where both are finite numbers."""
    numbers = [v for v in (a, b) if isinstance(v, (int, float)) and math.isfinite(v)]
    return numbers[1] - numbers[0] if len(numbers) == 2 else None


def number(value: Any, sign: bool = False) -> str:
    """A number in at most five significant digits, or a dash."""
    if value is None:
        return "-"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):+,}" if sign else f"{int(value):,}"
    return f"{value:+.5g}" if sign else f"{value:.5g}"
