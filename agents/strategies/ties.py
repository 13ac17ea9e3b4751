"""Which attackers are tied to each other. Fixed over the rounds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.strategies.base import TieStrategy, View

Pairs = tuple[np.ndarray, np.ndarray]


class NoTies(TieStrategy, kind="none"):
    """Members are not tied to each other."""

    source: ClassVar[str] = "independent fakes"

    def connect(self, view: View, targets_per_member: float) -> Pairs:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


class DegreePreserving(TieStrategy, kind="degree-preserving"):
    """Independent ties with the probability that leaves the graph's mean degree as published.

    q = (mean degree - 2 t)/(members - 1) with t targets a member, clipped to [0, 1]: it takes t <= mean degree / 2
    for the mean to be preserved, and beyond that there are no ties between members.
    """

    source: ClassVar[str] = "Devil's Hand (He et al. 2026)"

    def probability(self, mean_degree: float, members: int, targets_per_member: float) -> float:
        """q, clipped; 0 for a single member."""
        return (
            float(np.clip((mean_degree - 2 * targets_per_member) / max(members - 1, 1), 0, 1)) if members > 1 else 0.0
        )

    def connect(self, view: View, targets_per_member: float) -> Pairs:
        i, j = np.triu_indices(view.size, k=1)
        drawn = view.random("ties").random(len(i)) < self.probability(view.mean_degree, view.size, targets_per_member)
        return i[drawn], j[drawn]


class Clique(TieStrategy, kind="clique"):
    """Every two members are tied."""

    source: ClassVar[str] = "Sybil topologies"

    def connect(self, view: View, targets_per_member: float) -> Pairs:
        return np.triu_indices(view.size, k=1)


class Ring(TieStrategy, kind="ring"):
    """Each member is tied to the next, the last to the first."""

    source: ClassVar[str] = "Sybil topologies"

    def connect(self, view: View, targets_per_member: float) -> Pairs:
        i = np.arange(max(view.size - 1, 0))
        j = i + 1
        return (np.append(i, 0), np.append(j, view.size - 1)) if view.size > 2 else (i, j)


class Star(TieStrategy, kind="star"):
    """One member, drawn at random, is tied to all the others."""

    source: ClassVar[str] = "Sybil topologies"

    def connect(self, view: View, targets_per_member: float) -> Pairs:
        if view.size < 2:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        hub = int(view.random("ties").integers(view.size))
        leaves = np.delete(np.arange(view.size), hub)
        return np.minimum(leaves, hub), np.maximum(leaves, hub)


class Preferential(TieStrategy, kind="preferential"):
    """Members join one by one, each tied to `links` earlier ones in proportion to the ties these have: a
    natural-looking core."""

    source: ClassVar[str] = "Barabasi and Albert 1999"
    links: int = Field(2, ge=1)

    def connect(self, view: View, targets_per_member: float) -> Pairs:
        random = view.random("ties")
        order = random.permutation(view.size)
        ties: list[tuple[int, int]] = []
        ends = np.zeros(view.size)
        for position in range(1, view.size):
            earlier = order[:position]
            weight = ends[earlier] + (ends[earlier].sum() == 0)  # the first arrival meets one user without ties
            known = min(self.links, int(np.count_nonzero(weight)))
            for other in random.choice(earlier, size=known, replace=False, p=weight / weight.sum()):
                ties.append((min(order[position], other), max(order[position], other)))
                ends[[order[position], other]] += 1
        if not ties:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        i, j = np.array(ties, dtype=np.int64).T
        return i, j
