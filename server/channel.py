"""Randomised response seen from the server: the channel of one entry, and the level table of true ties behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from agents.privacy.ties.base import power
from server.evidence import Evidence, MutualPairs

Trust = Literal["maximal", "correlated", "independent"]
CERTAIN = 30.0
"""A report is read as if epsilon were at most this: all but 1e-13 of it is exact then, and 1 - q still has digits."""


@dataclass(frozen=True)
class Channel:
    """(kappa+1)-ary randomised response of one list entry, at the local `epsilon` of one report (Veritas, Eq. 11)."""

    epsilon: float
    levels: int

    @property
    def flip(self) -> float:
        """q: probability of each particular wrong symbol."""
        return 1.0 / (power(min(self.epsilon, CERTAIN)) + self.levels)

    @property
    def keep(self) -> float:
        """p: probability of the true symbol."""
        return 1.0 - self.levels * self.flip

    @property
    def false_positive(self) -> float:
        """q0 = kappa q: probability that a zero entry is reported above zero."""
        return self.levels * self.flip

    @cached_property
    def matrix(self) -> np.ndarray:
        """(kappa+1, kappa+1): row = true level, column = reported level."""
        return np.full((self.levels + 1, self.levels + 1), self.flip) + np.eye(self.levels + 1) * (
            self.keep - self.flip
        )

    @property
    def inner(self) -> np.ndarray:
        """(kappa, kappa): true and reported level both above zero. Rows sum to 1 - q."""
        return self.matrix[1:, 1:]

    def image(self, law: np.ndarray) -> np.ndarray:
        """Law (kappa, kappa) of the reported levels of a mutual pair whose true levels follow `law` (kappa,
        kappa)."""
        seen = self.inner.T @ law @ self.inner
        return seen / seen.sum()


def channel_of(evidence: Evidence) -> Channel:
    """The channel that this round's reports went through."""
    return Channel(evidence.protocol.ties.epsilon, evidence.protocol.ties.levels)


def level_law(trust: Trust, levels: int) -> np.ndarray:
    """P(a, b): the true levels at both ends of an honest tie, (kappa, kappa), for each trust kind.

    maximal: both kappa. correlated: a pair level uniform in 1..kappa, each side moved by one with probability 0.2
    (fair sign, clipped). independent: both uniform.
    """
    if trust == "maximal":
        law = np.zeros((levels, levels))
        law[-1, -1] = 1.0
        return law
    if trust == "independent":
        return np.full((levels, levels), 1.0 / levels**2)
    side = 0.8 * np.eye(levels)
    for level in range(levels):
        side[level, max(level - 1, 0)] += 0.1
        side[level, min(level + 1, levels - 1)] += 0.1
    return side.T @ side / levels


def level_counts(pairs: MutualPairs, levels: int) -> np.ndarray:
    """(kappa, kappa) counts of the reported levels over mutual pairs, each pair half in either direction."""
    flat = np.bincount((pairs.x.astype(np.int64) - 1) * levels + pairs.y - 1, minlength=levels**2)
    counts = flat.reshape(levels, levels).astype(np.float64)
    return (counts + counts.T) / 2


@dataclass(frozen=True)
class LevelTable:
    """What the mutual pairs say about true ties in bulk."""

    ties: float  # M: estimated number of true ties among the users
    true_law: np.ndarray  # (kappa, kappa): P(a, b | true tie), the levels before the noise
    law: np.ndarray  # (kappa, kappa): P(x, y | true tie, mutual), the levels reported
    likelihood_ratio: np.ndarray  # (kappa, kappa): P(x, y | tie) / P(x, y | no tie)


def deconvolve(counts: np.ndarray, channel: Channel, pairs_in_all: float, sweeps: int = 300) -> LevelTable:
    """Separate true ties from noise in the table of mutual levels, by expectation maximisation.

    `counts` (kappa, kappa) is symmetric (see `level_counts`); `pairs_in_all` is n(n-1)/2. Model: a cell expects
    sum_ab Pi[a,b] Q[a,x] Q[b,y] + (pairs_in_all - sum Pi) q^2, with Pi[a,b] >= 0 the expected number of true pairs of
    levels (a, b). The cap on `sweeps` is part of the method: at a small epsilon it regularises.
    """
    inner, flip, levels = channel.inner, channel.flip, channel.levels
    reach = (1.0 - flip) ** 2  # probability that both ends of a true tie report a level above zero
    excess = max(counts.sum() - pairs_in_all * channel.false_positive**2, min(20.0, pairs_in_all / 2))
    true = np.full((levels, levels), excess / (reach * levels**2))
    for _ in range(sweeps):
        expected = inner.T @ true @ inner + max(pairs_in_all - true.sum(), 0.0) * flip**2
        previous = true
        true = true * (inner @ (counts / expected) @ inner.T) / reach
        true = np.maximum((true + true.T) / 2, 1e-300)
        if np.abs(true - previous).sum() < 1e-12 * true.sum():
            break
    ties = float(min(max(true.sum(), 1e-9), 0.999 * pairs_in_all))
    law = true / true.sum()
    seen = inner.T @ law @ inner
    return LevelTable(ties, law, seen / seen.sum(), seen / flip**2)
