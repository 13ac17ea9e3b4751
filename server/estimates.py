"""Tie probabilities of all pairs, as a method estimates them: for whoever knows the truth to judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PairEstimate:
    """A probability for every pair of `members` (m,) ascending server ids.

    Pairs are in row-major order of the upper triangle: the members at positions i < j. Either `codes` (m(m-1)/2,) are
    unsigned ints and `values` the probability that each code stands for, or `values` (m(m-1)/2,) are the probabilities.
    """

    members: np.ndarray
    codes: np.ndarray | None
    values: np.ndarray

    def dense(self) -> np.ndarray:
        """(m(m-1)/2,) float32 probabilities in row-major order of the upper triangle."""
        values = self.values.astype(np.float32)
        return values if self.codes is None else values[self.codes]
