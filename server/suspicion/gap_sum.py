"""Sums of trust given minus trust received, standardised by what honest randomised response alone would do."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from server.channel import LevelTable, channel_of, deconvolve, level_counts
from server.evidence import Evidence, Suspicion
from server.suspicion.base import SuspicionScore
from server.suspicion.mean_gap import known_entries, silent_to_nan
from sim.kernel.randomness import Streams


def level_table(evidence: Evidence) -> LevelTable:
    """True ties separated from noise in this round's mutual pairs."""
    users = int(evidence.reported.sum())
    channel = channel_of(evidence)
    return deconvolve(level_counts(evidence.pairs, channel.levels), channel, max(users * (users - 1) / 2, 1.0))


def squared_gap(law: np.ndarray) -> float:
    """E (x - y)^2 under a joint law of two symbols."""
    symbols = np.arange(len(law))
    return float((law * (symbols[:, None] - symbols) ** 2).sum())


def estimated_degree(given: np.ndarray, others: int, flip: float, false_positive: float) -> np.ndarray:
    """Ties behind `given` non-zero entries of a row over `others` users, noise subtracted, at least 0."""
    return np.maximum((given - others * false_positive) / (1 - flip - false_positive), 0.0)


class GapSum(SuspicionScore, kind="gap-sum"):
    """Sum over all users of trust given minus trust received, divided by its standard deviation for an honest user.

    z_v = S_v / sqrt((n - 1) v0 + degree_v v_tie): v0 from the channel, degrees from the row's own count, v_tie from
    the level table of the round. One-sided normal p-value.
    """

    source: ClassVar[str] = "Graphwarden, from Veritas Eq. 14 and the channel's null variance"
    has_p_values: ClassVar[bool] = True

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        from scipy.special import ndtr

        n, others, channel = evidence.n, max(int(evidence.reported.sum()) - 1, 0), channel_of(evidence)
        giver, receiver, level = known_entries(evidence)
        gap = np.bincount(giver, level, n) - np.bincount(receiver, level, n)
        nothing = channel.matrix[0]
        noise = squared_gap(np.outer(nothing, nothing))
        tie = np.zeros((channel.levels + 1, channel.levels + 1))
        tie[1:, 1:] = level_table(evidence).true_law
        tie = channel.matrix.T @ tie @ channel.matrix
        given = np.bincount(giver, minlength=n)
        degree = estimated_degree(given, others, channel.flip, channel.false_positive)
        z = gap / np.sqrt(np.maximum(others * noise + degree * squared_gap(tie), 1e-12))
        return Suspicion(silent_to_nan(z, evidence), silent_to_nan(ndtr(-z), evidence))


class GatedSum(SuspicionScore, kind="gated-sum"):
    """Sum over mutual pairs of trust given minus trust received, divided by its standard deviation for an honest
    user.

    z_v = G_v / sqrt(n q0^2 (kappa^2 - 1)/6 + degree_v v_tie). The p-value is exact given the sizes of the
    differences: between honest ends either sign is equally likely. A clique of accomplices cannot dilute a sum as it
    does a mean.
    """

    source: ClassVar[str] = "Graphwarden, from Veritas Eq. 14 behind the bilateral gate"
    has_p_values: ClassVar[bool] = True

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        from server.suspicion._signs import upper_tails

        n, pairs, channel = evidence.n, evidence.pairs, channel_of(evidence)
        others, levels = max(int(evidence.reported.sum()) - 1, 0), channel.levels
        difference = pairs.x.astype(np.int64) - pairs.y
        gap = np.bincount(pairs.u, difference, n) - np.bincount(pairs.v, difference, n)
        size = np.abs(difference)
        cells = np.bincount(pairs.u * np.int64(levels) + size, minlength=n * levels)
        cells += np.bincount(pairs.v * np.int64(levels) + size, minlength=n * levels)
        given = np.bincount(known_entries(evidence)[0], minlength=n)
        degree = estimated_degree(given, others, channel.flip, channel.false_positive)
        noise = others * channel.false_positive**2 * (levels**2 - 1) / 6
        z = gap / np.sqrt(np.maximum(noise + degree * squared_gap(level_table(evidence).law), 1e-12))
        p = upper_tails(cells.reshape(n, levels), gap.astype(np.int64))
        return Suspicion(silent_to_nan(z, evidence), silent_to_nan(p, evidence))

    def warm_up(self) -> None:
        from server.suspicion._signs import upper_tails

        upper_tails(np.ones((1, 2), np.int64), np.ones(1, np.int64))
