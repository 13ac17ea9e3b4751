"""The six dimensions of an attack, and a covering array over them."""

import itertools
from collections.abc import Sequence

import agents.strategies.base  # noqa: F401  (registers the families)
from sim.kernel.component import FAMILIES


def kinds(family):
    return [kind.kind for kind in FAMILIES[f"attack.{family}"].classes() if ":" not in kind.kind and kind.kind]


DIMENSIONS = [
    kinds("features"),
    kinds("targets"),
    kinds("ties"),
    kinds("claims"),
    ["compliant", "bypass", "camouflage"],
    kinds("timing"),
]


def covering(dimensions: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Rows such that every two values of two dimensions meet in one of them: greedy, one new row at a time."""
    open_pairs = {
        ((a, x), (b, y))
        for a, b in itertools.combinations(range(len(dimensions)), 2)
        for x in dimensions[a]
        for y in dimensions[b]
    }
    rows = []
    while open_pairs:
        (a, x), (b, y) = min(open_pairs)
        row = {a: x, b: y}
        for c in range(len(dimensions)):
            if c not in row:
                row[c] = max(
                    dimensions[c],
                    key=lambda value: sum(tuple(sorted(((c, value), item))) in open_pairs for item in row.items()),
                )
        open_pairs -= set(itertools.combinations(sorted(row.items()), 2))
        rows.append(tuple(row[c] for c in range(len(dimensions))))
    return rows
