"""Graphs and where they come from. One file a source, or a group of like sources."""

from __future__ import annotations

from typing import Any

from sim.kernel.graphs._clean import clean
from sim.kernel.graphs.base import Facts, Graph, GraphError, GraphSource, Split
from sim.kernel.randomness import Streams

__all__ = ["Facts", "Graph", "GraphError", "GraphSource", "Split", "clean", "describe", "load"]


def load(source: GraphSource | str, streams: Streams | None = None) -> Graph:
    """The graph of a source, or of a source's name with its default settings: `load("cora")`.

    `streams` matters to generated graphs only (default: seed 0). Raises GraphError when the graph cannot be found or
    read, or the name is unknown.
    """
    chosen: Any = source
    if isinstance(source, str):
        try:
            chosen = GraphSource._family.resolve(source)()
        except LookupError as error:
            raise GraphError(str(error)) from error
    return chosen.load(streams or Streams(0))


def describe() -> list[dict[str, object]]:
    """One row per source with its published size, by name, without loading anything; None where a size is chosen."""
    rows: list[dict[str, object]] = []
    for cls in GraphSource._family.classes():
        facts = getattr(cls, "facts", None)
        row: dict[str, object] = {"source": cls.kind}
        for column in ("nodes", "edges", "mean_degree", "dimensions", "classes", "homophily", "note"):
            row[column] = getattr(facts, column) if facts else None
        rows.append(row)
    return rows
