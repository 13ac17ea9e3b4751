"""The karate club, small enough to draw."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import sparse

from sim.kernel.graphs._clean import clean
from sim.kernel.graphs.base import Facts, Graph, GraphSource
from sim.kernel.randomness import Streams


class Karate(GraphSource, kind="karate"):
    """Friendships in a karate club that split in two; each member's only feature is who it is."""

    source: ClassVar[str] = "Zachary 1977, from networkx"
    facts: ClassVar[Facts | None] = Facts(34, 78, 34, 2, 0.859, "one-hot identity features; classes are the two clubs")

    def load(self, streams: Streams) -> Graph:
        import networkx

        club = networkx.karate_club_graph()
        ends = np.array(list(club.edges()), dtype=np.int64).T
        sides = np.array([club.nodes[node]["club"] for node in club.nodes()])
        return clean("karate", sparse.eye_array(len(sides), format="csr", dtype=np.float32), ends, sides)
