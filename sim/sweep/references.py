"""Which point each point is compared with."""

from __future__ import annotations

from typing import Any

from sim.kernel.component import Problem, nearest, show
from sim.sweep.schema import same

Named = list[tuple[str, dict[str, Any]]]
"""(name, settings) of every point."""


def references(reference: Any, points: Named, axes: tuple[str, ...]) -> tuple[dict[str, str], Problem | None]:
    """Point name -> name of its reference point, and what is wrong, if anything.

    A text names one point. A mapping fixes some axes: each point is then compared with the one that has these values
    and otherwise its own, so `{server.suspicion.kind: none}` compares every defence with none under the same attack.
    """
    if reference is None:
        return {}, None
    names = [name for name, _ in points]
    if isinstance(reference, str):
        if reference not in names:
            told = f"found {reference!r}; allowed: the name of a point: {', '.join(names)}{nearest(reference, names)}"
            return {}, Problem(("reference",), told)
        return {name: reference for name in names if name != reference}, None
    for key, value in reference.items():
        if key not in axes:
            told = f"unknown key {key!r}; allowed: a key that varies: {', '.join(axes)}{nearest(key, axes)}"
            return {}, Problem(("reference", key), told)
        if not any(key in settings and same(settings[key], value) for _, settings in points):
            told = f"found {show(value)}; allowed: a value that some point has"
            return {}, Problem(("reference", key), told)
    compared = {}
    for name, settings in points:
        twin = _twin({**settings, **reference}, points)
        if twin is not None and twin != name:
            compared[name] = twin
    if not compared:
        return {}, Problem(
            ("reference",), "no other point shares the remaining settings with such a point; name a point instead"
        )
    return compared, None


def _twin(wanted: dict[str, Any], points: Named) -> str | None:
    for name, settings in points:
        if settings.keys() == wanted.keys() and all(same(settings[key], wanted[key]) for key in wanted):
            return name
    return None
