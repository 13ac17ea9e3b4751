"""The printed suspicion score: how much more trust a user gives than it gets (Veritas, Eq. 14)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from server.evidence import Evidence, Suspicion
from server.suspicion.base import SuspicionScore
from sim.kernel.randomness import Streams


def known_entries(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(giver, receiver, level) of all list entries whose two ends both reported.

    What a reporter says about a silent user stays out: the other half of that pair is unknown, and a missing answer
    must not look like a refusal.
    """
    lists = evidence.lists
    giver = np.repeat(np.arange(evidence.n), np.diff(lists.indptr))
    receiver, level = lists.indices, lists.data.astype(np.float64)
    if not evidence.reported.all():
        both = evidence.reported[giver] & evidence.reported[receiver]
        giver, receiver, level = giver[both], receiver[both], level[both]
    return giver, receiver, level


def silent_to_nan(values: np.ndarray, evidence: Evidence) -> np.ndarray:
    """The values with NaN for users that sent nothing."""
    return np.where(evidence.reported, values, np.nan)


class MeanGap(SuspicionScore, kind="mean-gap"):
    """Mean over the neighbourhood (either end reports a tie) of trust given minus trust received.

    phi_v = (1/|N_v|) sum over u in N_v of (t_vu - t_uv). A user in no such pair scores 0; a silent user NaN.
    """

    source: ClassVar[str] = "Veritas, Eq. 14"

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        n, pairs = evidence.n, evidence.pairs
        giver, receiver, level = known_entries(evidence)
        gap = np.bincount(giver, level, n) - np.bincount(receiver, level, n)
        mutual = np.bincount(pairs.u, minlength=n) + np.bincount(pairs.v, minlength=n)
        neighbours = np.bincount(giver, minlength=n) + np.bincount(receiver, minlength=n) - mutual
        return Suspicion(silent_to_nan(gap / np.maximum(neighbours, 1), evidence))


class MeanGapMutual(SuspicionScore, kind="mean-gap-mutual"):
    """Mean over mutual pairs (both ends report a tie) of trust given minus trust received.

    A user without a mutual pair scores 0; a silent user NaN.
    """

    source: ClassVar[str] = "Veritas, Eq. 14, over the pairs that pass the bilateral gate"

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        n, pairs = evidence.n, evidence.pairs
        difference = pairs.x.astype(np.float64) - pairs.y
        gap = np.bincount(pairs.u, difference, n) - np.bincount(pairs.v, difference, n)
        mutual = np.bincount(pairs.u, minlength=n) + np.bincount(pairs.v, minlength=n)
        return Suspicion(silent_to_nan(gap / np.maximum(mutual, 1), evidence))
