"""Does a user's own row look like honest randomised response where nobody answers?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from server.channel import channel_of
from server.evidence import Evidence, Suspicion
from server.suspicion.base import SuspicionScore
from server.suspicion.mean_gap import known_entries, silent_to_nan
from sim.kernel.randomness import Streams


def unanswered(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """(U, N0): U (n, kappa) counts v's entries of each level towards users that report 0 about v; N0 (n,) counts
    those users. Only users that reported count."""
    n, levels, pairs = evidence.n, channel_of(evidence).levels, evidence.pairs
    giver, receiver, level = known_entries(evidence)
    cells = np.bincount(giver * levels + level.astype(np.int64) - 1, minlength=n * levels)
    cells -= np.bincount(pairs.u.astype(np.int64) * levels + pairs.x - 1, minlength=n * levels)
    cells -= np.bincount(pairs.v.astype(np.int64) * levels + pairs.y - 1, minlength=n * levels)
    silent_about = max(int(evidence.reported.sum()) - 1, 0) - np.bincount(receiver, minlength=n)
    return cells.reshape(n, levels), silent_about


def conformity_p(counts: np.ndarray, silent_about: np.ndarray, flip: float) -> np.ndarray:
    """p-value of rows: total ~ Bin(N0, q0) two-sided, and the fullest level against an even spread; twice the
    smaller.

    `counts` (n, kappa), `silent_about` (n,). Valid (never too small) under honest randomised response.
    """
    from scipy.special import bdtr, bdtrc

    levels = counts.shape[1]
    total, most = counts.sum(1), counts.max(1)
    rate = levels * flip
    at_most = bdtr(total, np.maximum(silent_about, total), rate)
    at_least = np.where(total > 0, bdtrc(np.maximum(total - 1, 0), np.maximum(silent_about, total), rate), 1.0)
    size = 2 * np.minimum(at_most, at_least)
    fullest = np.where(most > 0, bdtrc(np.maximum(most - 1, 0), np.maximum(total, 1), 1 / levels), 1.0)
    shape = levels * fullest if levels > 1 else np.ones(len(total))
    return np.clip(2 * np.minimum(size, shape), 1e-300, 1.0)


class RowConformity(SuspicionScore, kind="row-conformity"):
    """How unlikely a user's own row is under honest randomised response, where the other end reports nothing.

    Finds whoever skips, thins or shapes the noise, at any number of targets; others cannot slander a user with it,
    since it reads the user's own entries only. The score is minus the log of the p-value, whose null is exact.
    """

    source: ClassVar[str] = "Graphwarden, exact binomial tests of the unanswered entries"
    has_p_values: ClassVar[bool] = True

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        p = conformity_p(*unanswered(evidence), channel_of(evidence).flip)
        return Suspicion(silent_to_nan(-np.log(p), evidence), silent_to_nan(p, evidence))
