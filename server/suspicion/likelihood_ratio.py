"""Log-likelihood ratio of each user's pairs under a fixed picture of what an attacker does."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from server.channel import Channel, Trust, channel_of, level_law
from server.evidence import Evidence, Suspicion
from server.suspicion.base import SuspicionScore
from server.suspicion.mean_gap import known_entries, silent_to_nan
from sim.kernel.randomness import Streams


class LikelihoodRatio(SuspicionScore, kind="likelihood-ratio"):
    """Sum over all users of a fixed table of log-likelihood ratios: an attacker that over-claims to a few targets.

    w = log[((1-t)(1-r) P0 + r(1-t) Pe + t Pa) / ((1-r) P0 + r Pe)] for each pair of reported levels, with r the
    published mean degree and t `targets`, both over n - 1; P0 two noisy zeros, Pe an honest tie of the given `trust`,
    Pa a claim of the top level that a victim answers with level 1 (`answered` of the time) or 0. The best single
    score against the attack it assumes; blind to others. It has no null law, hence no p-value.
    """

    source: ClassVar[str] = "Graphwarden, Neyman-Pearson test of one pair under assumed laws"

    targets: float = Field(default=6.0, gt=0)
    answered: float = Field(default=0.5, ge=0, le=1)
    trust: Trust = "correlated"

    def table(self, channel: Channel, mean_degree: float, others: int) -> np.ndarray:
        """w (kappa+1, kappa+1): row = level given, column = level received."""
        full, levels = channel.matrix, channel.levels
        noise = np.outer(full[0], full[0])
        law = np.zeros((levels + 1, levels + 1))
        law[1:, 1:] = level_law(self.trust, levels)
        tie = full.T @ law @ full
        victim = self.answered * full[1] + (1 - self.answered) * full[0]
        attack = np.outer(full[levels], victim)
        r, t = min(mean_degree / others, 0.5), min(self.targets / others, 0.5)
        honest = (1 - r) * noise + r * tie
        return np.log((1 - t) * honest + t * attack) - np.log(honest)

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        n, pairs = evidence.n, evidence.pairs
        others = max(int(evidence.reported.sum()) - 1, 1)
        table = self.table(channel_of(evidence), evidence.protocol.mean_degree, others)
        giver, receiver, reported = known_entries(evidence)
        level, rest = reported.astype(np.int64), table[0, 0]
        # As if every entry stood alone; the mutual pairs, which that counts twice, are put right below.
        total = np.bincount(giver, table[level, 0] - rest, n) + np.bincount(receiver, table[0, level] - rest, n)
        for mine, given, got in ((pairs.u, pairs.x, pairs.y), (pairs.v, pairs.y, pairs.x)):
            total += np.bincount(mine, table[given, got] - table[given, 0] - table[0, got] + rest, n)
        return Suspicion(silent_to_nan(total + others * rest, evidence))
