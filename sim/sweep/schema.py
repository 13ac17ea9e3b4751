"""The sweep file: its keys, and every check that needs no scenario."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from sim.columns import ROUND, TIMING
from sim.kernel.component import Path, Problem, Section, nearest, show

METRICS = tuple(c.name for c in ROUND if c.name not in TIMING and c.name not in ("round", "seed"))
"""Columns that a sweep summarises: all but the counters of a row and what differs from run to run."""


class SweepFile(Section):
    """What varies around one scenario.

    `axes` is a grid (or, with `zip: true`, lists walked side by side); `points` lists settings one by one instead,
    named if it is a mapping. `set` holds for every point. `seeds` is a list, or a number: that many from the
    scenario's own seed on. `reference` names the point that the others are compared with; `equivalence` gives margins
    by column.
    """

    scenario: str
    name: str | None = Field(None, min_length=1)
    seeds: int | list[int] = 1
    set: dict[str, Any] = Field(default_factory=dict)
    axes: dict[str, Any] = Field(default_factory=dict)
    zip: bool = False
    points: dict[str, Any] | list[Any] = Field(default_factory=dict)
    reference: str | dict[str, Any] | None = None
    equivalence: dict[str, Any] = Field(default_factory=dict)


def problems(file: SweepFile) -> list[Problem]:
    """Everything wrong with a sweep file as such."""
    found = [*_seeds(file), *_axes(file), *_points(file), *_equivalence(file)]
    varied: list[tuple[Path, str]] = [(("axes", key), key) for key in file.axes]
    varied += [((*place, key), key) for place, _, settings in named_points(file) for key in settings]
    found += _clashes(file, varied)
    return found


def named_points(file: SweepFile) -> list[tuple[Path, str, dict[str, Any]]]:
    """(place in the file, name, settings) of every explicit point that is a mapping; unnamed ones get an empty name."""
    items = file.points.items() if isinstance(file.points, dict) else enumerate(file.points)
    return [
        (("points", key), key if isinstance(key, str) else "", value)
        for key, value in items
        if isinstance(value, dict) and all(isinstance(k, str) for k in value)
    ]


def _seeds(file: SweepFile) -> list[Problem]:
    where = ("seeds",)
    if isinstance(file.seeds, int):
        return (
            [] if file.seeds >= 1 else [Problem(where, f"found {file.seeds}; allowed: a whole number >= 1, or a list")]
        )
    if not file.seeds:
        return [Problem(where, "found an empty list; allowed: at least one seed")]
    found = [
        Problem((*where, i), f"found {s}; allowed: 0 <= seed < 2^63")
        for i, s in enumerate(file.seeds)
        if not 0 <= s < 2**63
    ]
    twice = sorted({s for s in file.seeds if file.seeds.count(s) > 1})
    if twice:
        found.append(Problem(where, f"found {', '.join(map(str, twice))} more than once; allowed: distinct seeds"))
    return found


def _axes(file: SweepFile) -> list[Problem]:
    found = []
    for key, values in file.axes.items():
        where = ("axes", key)
        if not isinstance(values, list):
            found.append(Problem(where, f"found {show(values)}; allowed: a list of values"))
        elif not values:
            found.append(Problem(where, "found an empty list; allowed: at least one value"))
        else:
            twice = [v for i, v in enumerate(values) if any(same(v, w) for w in values[:i])]
            if twice:
                found.append(Problem(where, f"found {show(twice[0])} more than once; allowed: distinct values"))
    lengths = {key: len(values) for key, values in file.axes.items() if isinstance(values, list) and values}
    if file.zip and len(set(lengths.values())) > 1:
        told = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        found.append(
            Problem(("zip",), f"found lists of different lengths ({told}); allowed: equal lengths with `zip: true`")
        )
    return found


def _points(file: SweepFile) -> list[Problem]:
    if file.points and file.axes:
        return [Problem(("points",), "found both `axes` and `points`; allowed: one of them")]
    items = file.points.items() if isinstance(file.points, dict) else enumerate(file.points)
    found = []
    for key, value in items:
        if not isinstance(value, dict) or not all(isinstance(k, str) for k in value):
            found.append(Problem(("points", key), f"found {show(value)}; allowed: a mapping of keys to values"))
    settings = [s for _, _, s in named_points(file)]
    if isinstance(file.points, list) and any(same(s, t) for i, s in enumerate(settings) for t in settings[:i]):
        found.append(Problem(("points",), "found the same settings twice; allowed: distinct points"))
    return found


def _clashes(file: SweepFile, varied: list[tuple[Path, str]]) -> list[Problem]:
    found: list[Problem] = []
    for where, key in [*((("set", key), key) for key in file.set), *varied]:
        if key == "seed":
            found.append(Problem(where, "found a seed; allowed: seeds stand under `seeds`"))
    for where, key in varied:
        for other in file.set:
            if overlap(key, other):
                found.append(
                    Problem(where, f"clashes with `set`, which fixes {other!r}; allowed: a key varies or is fixed")
                )
    groups = [list(file.axes), *(list(settings) for _, _, settings in named_points(file)), list(file.set)]
    for keys in groups:
        for index, key in enumerate(keys):
            for other in keys[:index]:
                if overlap(key, other):
                    place = next((where for where, name in varied if name == key), ("set", key))
                    found.append(Problem(place, f"clashes with {other!r}, of which one is part of the other"))
    return found


def overlap(a: str, b: str) -> bool:
    """Whether two dotted keys name the same value, or one a part of the other's."""
    return a == b or a.startswith(b + ".") or b.startswith(a + ".")


def _equivalence(file: SweepFile) -> list[Problem]:
    found = []
    if file.equivalence and file.reference is None:
        found.append(
            Problem(("equivalence",), "found margins without a `reference`; allowed: name the reference point too")
        )
    for name, margin in file.equivalence.items():
        where = ("equivalence", name)
        if name not in METRICS or name == "gain_retained":
            found.append(
                Problem(where, f"unknown column {name!r}; allowed: `graphwarden list columns`{nearest(name, METRICS)}")
            )
        elif isinstance(margin, bool) or not isinstance(margin, (int, float)) or not 0 < margin < float("inf"):
            found.append(Problem(where, f"found {show(margin)}; allowed: a number > 0"))
    return found


def same(a: Any, b: Any) -> bool:
    """Equality that keeps 1, 1.0 and true apart where YAML does, for booleans; 1 and 1.0 are the same number."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
