"""Graphs of a few users and runs on them, for tests that follow single reports through the engine."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from sim.engine import Simulation
from sim.kernel.graphs import Graph, GraphSource
from sim.kernel.graphs._clean import clean
from sim.kernel.randomness import Streams
from sim.scenario import load_scenario


class Written(GraphSource):
    """A graph as written in the scenario: pairs of ends, feature rows (each user's own column when omitted), labels."""

    nodes: int
    ties: list[list[int]]
    rows: list[list[float]] | None = None
    labels: list[int] | None = None

    def load(self, streams: Streams) -> Graph:
        ends = np.array(self.ties, dtype=np.int64).reshape(-1, 2).T
        labels = np.arange(self.nodes) % 2 if self.labels is None else np.array(self.labels)
        return clean("written", np.eye(self.nodes) if self.rows is None else np.array(self.rows), ends, labels)


def scenario(ties: list[list[int]], nodes: int, graph: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    """Plain data of a run on a written graph: every tie at the highest level, no attackers, nothing trained."""
    data: dict[str, Any] = {
        "name": "tiny",
        "graph": {"source": "tiny_worlds:Written", "nodes": nodes, "ties": ties, **(graph or {})},
        "privacy": {"features": {"kind": "none"}},
        "population": {"honest": {"trust": {"kind": "maximal"}}},
        "server": {
            "suspicion": {"kind": "none"},
            "pruning": {"kind": "none"},
            "refinement": {"kind": "none"},
            "denoising": {"kind": "none"},
            "training": {"kind": "none"},
        },
        "anchors": "none",
    }
    for name, section in deepcopy(sections).items():
        data[name] = {**data[name], **section} if isinstance(data.get(name), dict) else section
    return data


def simulation(*args: Any, **sections: Any) -> Simulation:
    """The run of a `scenario`."""
    return Simulation(load_scenario(scenario(*args, **sections)))
