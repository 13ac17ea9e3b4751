"""How a user rates a partner: the levels on the two sides of a tie."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from sim.kernel.component import Component


class Trust(Component, family="trust", home="agents.trust"):
    """Levels 1..kappa that two honest users give each other."""

    @abstractmethod
    def levels(self, ties: int, levels: int, generator: np.random.Generator) -> np.ndarray:
        """(ties, 2) int8: what each side of each tie holds about the other, in 1..levels."""


class MaximalTrust(Trust, kind="maximal"):
    """Every tie has the highest level on both sides."""

    source: ClassVar[str] = "Veritas, the scenario of Proposition 2"

    def levels(self, ties: int, levels: int, generator: np.random.Generator) -> np.ndarray:
        return np.full((ties, 2), levels, dtype=np.int8)


class CorrelatedTrust(Trust, kind="correlated"):
    """A level per tie, uniform in 1..kappa; each side independently moves by one with probability 0.2, clipped."""

    source: ClassVar[str] = "ours: tie strength known to both ends"

    def levels(self, ties: int, levels: int, generator: np.random.Generator) -> np.ndarray:
        draws = generator.random((ties, 5))  # one row a tie, so that a tie's levels do not depend on how many there are
        pair = 1 + np.floor(draws[:, :1] * levels).astype(np.int64)
        moved = draws[:, 1:3] < 0.2
        sign = np.where(draws[:, 3:5] < 0.5, -1, 1)
        return np.clip(pair + moved * sign, 1, levels).astype(np.int8)


class IndependentTrust(Trust, kind="independent"):
    """Each side draws its own level, uniform in 1..kappa."""

    source: ClassVar[str] = "ours: the worst case for agreement"

    def levels(self, ties: int, levels: int, generator: np.random.Generator) -> np.ndarray:
        return (1 + np.floor(generator.random((ties, 2)) * levels)).astype(np.int8)
