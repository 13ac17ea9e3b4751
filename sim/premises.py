"""What a run starts from: its graph, the public facts, and what attackers are granted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from agents.protocol import Protocol
from agents.strategies.base import Granted
from sim.kernel.errors import InputError
from sim.kernel.graphs import Graph
from sim.kernel.randomness import Streams
from sim.scenario import Scenario

LEAST_EPSILON = 1e-9
"""Local budget of one report below which nothing is simulated."""


def load_graph(scenario: Scenario, streams: Streams) -> Graph:
    """The scenario's graph. Raises InputError when it cannot be found or read, or has less than two nodes."""
    graph = scenario.graph.load(streams)
    if graph.nodes < 2:
        raise InputError(f"graph {graph.name!r} has {graph.nodes} node; expected at least 2, since a tie needs two")
    return graph


def refuse_untrainable(scenario: Scenario, graph: Graph, train: np.ndarray) -> None:
    """Raise InputError when the split leaves nobody to train on, and something is to be trained."""
    if scenario.server.training.kind != "none" and not train.any():
        labelled = int((graph.labels >= 0).sum())
        raise InputError(
            f"graph.split.train: {scenario.graph.split.train:g} of the {labelled} labelled users of graph "
            f"{graph.name!r} is nobody to train on; expected at least one (or server.training: {{kind: none}})"
        )


def with_features(scenario: Scenario, graph: Graph) -> Graph:
    """The graph itself, or with one constant feature where it has none and the scenario leaves features public."""
    if graph.dimensions:
        return graph
    if scenario.privacy.features.kind != "none":
        raise InputError(f"graph {graph.name!r} has no features; set privacy.features: {{kind: none}}")
    return replace(graph, features=sparse.csr_array(np.ones((graph.nodes, 1), dtype=np.float32)))


def public_protocol(scenario: Scenario, graph: Graph, participants: int) -> Protocol:
    """The public facts of a run, with the local budgets of one report. Raises InputError for a budget that rounds away
    beside the noise."""
    privacy = scenario.privacy
    share = 1.0 / scenario.rounds if privacy.across_rounds == "split" else 1.0
    features: Any = privacy.features
    if features.kind != "none":
        features = features.model_copy(update={"epsilon": features.epsilon * share})
    ties = scenario.tie_protocol()
    if ties.form != "none":
        ties = ties.localised(privacy.unit, participants, share)
    for name, part, off in (("features", features, features.kind == "none"), ("ties", ties, ties.form == "none")):
        if not off and part.epsilon < LEAST_EPSILON:
            raise InputError(
                f"privacy.{name}.epsilon: one report gets {part.epsilon:.3g}, which floating point cannot tell from "
                f"nothing beside the noise; allowed: enough for at least {LEAST_EPSILON:g}"
            )
    return Protocol(
        participants, graph.dimensions, graph.classes, features, ties, privacy.unit, scenario.rounds, graph.mean_degree
    )


def grant(knowledge: Sequence[str], graph: Graph, train: np.ndarray, participants: int) -> Granted:
    """Copies of exactly what a group's `knowledge` grants."""
    labels = np.full(participants, -1, dtype=np.int64)
    labels[: graph.nodes][train] = graph.labels[train]
    return Granted(
        degrees=np.diff(graph.ties.indptr).copy() if "degrees" in knowledge else None,
        labels=labels if "labels" in knowledge else None,
        graph=sparse.csr_array(graph.ties.copy()) if "graph" in knowledge else None,
    )
