"""A sweep file becomes a plan: points (settings and the scenarios they lead to), seeds, and comparisons."""

from __future__ import annotations

import copy
import itertools
import json
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from sim import document, overrides
from sim.kernel.component import Path, Problem, build
from sim.kernel.errors import InputError
from sim.scenario import Scenario, load, resolve
from sim.sweep.references import references
from sim.sweep.schema import SweepFile, named_points, problems


@dataclass(frozen=True)
class Point:
    """One combination of settings: the keys that vary, and the resolved scenario with the file's own seed."""

    name: str
    settings: dict[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Run:
    """One run: a point at a seed."""

    point: Point
    seed: int

    @property
    def scenario(self) -> Scenario:
        """The resolved scenario of exactly this run."""
        return self.point.scenario.model_copy(update={"seed": self.seed})


@dataclass(frozen=True)
class Plan:
    """A whole sweep. `axes` are the keys that vary; `references` maps a point's name to its reference point's."""

    name: str
    file: FilePath
    scenario_folder: FilePath
    axes: tuple[str, ...]
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    references: dict[str, str]
    equivalence: dict[str, float]
    notes: tuple[str, ...] = ()

    def runs(self) -> list[Run]:
        """All runs, seed by seed, so that an unfinished sweep already holds paired points."""
        return [Run(point, seed) for seed in self.seeds for point in self.points]


def read_plan(path: str | FilePath) -> Plan:
    """Read a sweep file. Raises InputError that lists every problem: file, line, key, what was found and is allowed."""
    path = document.locate(path)
    paper = document.read(path)
    document.expect(paper, "sweep")
    found: list[Problem] = []
    file = build(SweepFile, paper.data, (), found)
    if not found:
        found = problems(file)
    if found:
        raise InputError(_listed(paper, found))
    source = FilePath(file.scenario)
    source = source if source.is_absolute() else path.resolve().parent / source
    if not source.is_file():
        where = Problem(
            ("scenario",), f"found {file.scenario!r}; no such file ({source}); expected a path relative to the sweep"
        )
        raise InputError(_listed(paper, [where]))
    base = load(source).scenario
    combinations = _combinations(file, base.name)
    names = [name for _, name, _ in combinations]
    twice = next((c for c in combinations if names.count(c[1]) > 1), None)
    if twice is not None:
        raise InputError(
            _listed(paper, [Problem(twice[0], f"two points are both called {twice[1]!r}; give the points names")])
        )
    points, notes = _resolve(paper, source, file, combinations)
    axes = tuple(dict.fromkeys(key for _, _, settings in combinations for key in settings))
    named = [(point.name, point.settings) for point in points]
    compared, trouble = references(file.reference, named, axes)
    if trouble is not None:
        raise InputError(_listed(paper, [trouble]))
    seeds = file.seeds if isinstance(file.seeds, list) else list(range(base.seed, base.seed + file.seeds))
    margins = {name: float(margin) for name, margin in file.equivalence.items()}
    return Plan(
        file.name or path.stem, path, source.parent, axes, tuple(points), tuple(seeds), compared, margins, tuple(notes)
    )


Combination = tuple[Path, str, dict[str, Any]]
"""Where it stands in the sweep file, its name, its settings."""


def _combinations(file: SweepFile, fallback: str) -> list[Combination]:
    if file.points:
        made = named_points(file)
        short = short_keys(dict.fromkeys(key for _, _, settings in made for key in settings))
        return [(place, name or label(settings, short), settings) for place, name, settings in made]
    if not file.axes:
        return [((), fallback, {})]
    walk = zip(*file.axes.values()) if file.zip else itertools.product(*file.axes.values())
    settings = [dict(zip(file.axes, values)) for values in walk]
    short = short_keys(file.axes)
    return [(("axes",), label(s, short), s) for s in settings]


def short_keys(keys: Any) -> dict[str, str]:
    """The shortest ending of each dotted key that tells it from the others, `.kind` left out: `suspicion`, `share`."""
    parts = {key: key.removesuffix(".kind").split(".") for key in keys}
    short = {}
    for key, words in parts.items():
        others = [other for name, other in parts.items() if name != key]
        size = next((k for k in range(1, len(words)) if all(o[-k:] != words[-k:] for o in others)), len(words))
        short[key] = ".".join(words[-size:])
    return short


def label(settings: dict[str, Any], short: dict[str, str]) -> str:
    """A point's name: `share=0.01, suspicion=mean-gap`."""
    return ", ".join(f"{short[key]}={plain(value)}" for key, value in settings.items()) or "as it is"


def plain(value: Any) -> str:
    """A setting as one short text: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _resolve(
    paper: document.Document, source: FilePath, file: SweepFile, combinations: list[Combination]
) -> tuple[list[Point], list[str]]:
    base, folder = document.read(source), source.resolve().parent
    points: list[Point] = []
    notes: dict[str, None] = {}
    complaints: dict[tuple[int, str], None] = {}
    for place, name, settings in combinations:
        data = copy.deepcopy(base.data)
        sources: dict[str, Path] = {key: ("set", key) for key in file.set}
        sources |= {key: _place(file, place, key, value) for key, value in settings.items()}
        try:
            said = overrides.apply(data, copy.deepcopy({**file.set, **settings}), Scenario)
            scenario, found = resolve(data, folder)
        except InputError as error:
            key, _, message = str(error).removeprefix("--set ").partition(": ")
            complaints[_at(paper, sources.get(key, place), f"{key}: {message}")] = None
            continue
        notes.update(dict.fromkeys(said))
        for problem in found:
            complaints[_attribute(paper, base, sources, place, name, problem)] = None
        if scenario is not None and not found:
            points.append(Point(name, settings, scenario))
    if complaints:
        raise InputError("\n".join(message for _, message in sorted(complaints)))
    return points, list(notes)


def _place(file: SweepFile, place: Path, key: str, value: Any) -> Path:
    if place and place[0] == "points":
        return (*place, key)
    return ("axes", key, next((i for i, v in enumerate(file.axes[key]) if v is value), 0))


def _attribute(
    paper: document.Document,
    base: document.Document,
    sources: dict[str, Path],
    place: Path,
    name: str,
    problem: Problem,
) -> tuple[int, str]:
    """The problem of one point, at the line of the setting that caused it; else at the point itself."""
    where = problem.path
    causes = [
        key
        for key in sources
        if where[: len(path := overrides.split(key))] == path
        or (where and where not in base.lines and path[: len(where)] == where)
    ]
    if causes:
        return _at(paper, sources[max(causes, key=len)], f"{problem.where()}: {problem.message}")
    told = f"{problem.where()}: " if where else ""
    return _at(paper, place, f"point {name!r}: {told}{problem.message}")


def _at(paper: document.Document, where: Path, message: str) -> tuple[int, str]:
    line = paper.line(where) or 0
    return line, f"{paper.name}:{line}: {message}" if line else f"{paper.name}: {message}"


def _listed(paper: document.Document, found: list[Problem]) -> str:
    return "\n".join(message for _, message in sorted(_at(paper, p.path, f"{p.where()}: {p.message}") for p in found))
