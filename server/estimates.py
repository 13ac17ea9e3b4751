"""Tie probabilities of all pairs, as a method estimates them: for whoever knows the truth to judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PairEstimate:
    """A probability for every pair of `members` (m,) ascending server ids.

    `codes` (m(m-1)/2,) unsigned ints in row-major order of the upper triangle (pair of the members at positions i < j),
    `values` the probability that a code stands for: pairs with one code share one probability.
    """

    members: np.ndarray
    codes: np.ndarray
    values: np.ndarray

    def dense(self) -> np.ndarray:
        """(m(m-1)/2,) float32 probabilities in row-major order of the upper triangle."""
        return self.values.astype(np.float32)[self.codes]
