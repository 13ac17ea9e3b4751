"""A threshold on suspicion: fixed, Proposition 2's midpoint, or chosen on validation accuracy (Veritas, Eq. 16)."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from server.evidence import Evidence, Suspicion
from server.pruning.base import Decision, Pruning, PruningContext

QUANTILES = (0.95, 0.98, 0.99)
"""Shares of users that a trial threshold leaves in the graph."""


class Threshold(Pruning, kind="threshold"):
    """Flag whoever scores above gamma.

    `gamma` is a number; `midpoint`, half of Proposition 2's printed gap, (2p - 1)(kappa - 1) / 2; or `auto`, which trains
    with at most five thresholds (infinity, the midpoint, and the scores' 95, 98 and 99 % quantiles) and keeps the one
    with the best validation accuracy, infinity when others only tie with it. `auto` chooses once per perturbation epoch.
    With `permanent`, whoever was flagged once stays flagged; without, every round decides anew.
    """

    source: ClassVar[str] = "Veritas, Eq. 16 and Proposition 2"

    gamma: float | Literal["auto", "midpoint"] = "auto"
    permanent: bool = False

    def decide(self, suspicion: Suspicion, context: PruningContext) -> Decision:
        score = suspicion.score
        if self.gamma == "auto":
            gamma = self._chosen(score, context)
        elif self.gamma == "midpoint":
            gamma = midpoint(context.evidence)
        else:
            gamma = float(self.gamma)
        flagged = above(score, gamma)
        if self.permanent:
            flagged = flagged | np.asarray(context.held.get("flagged", np.zeros(len(score), dtype=bool)))
            context.held["flagged"] = flagged
        return Decision(flagged, gamma)

    def _chosen(self, score: np.ndarray, context: PruningContext) -> float:
        held = context.held.get("gamma")
        if isinstance(held, tuple) and held[0] == context.epoch:
            return float(held[1])
        known = score[~np.isnan(score)]
        trials = [math.inf]
        if len(known):
            trials += sorted({*np.quantile(known, QUANTILES).tolist(), midpoint(context.evidence)}, reverse=True)
        best, accuracy = math.inf, context.validation_accuracy(above(score, math.inf)) if len(trials) > 1 else 0.0
        for gamma in trials[1:]:
            reached = context.validation_accuracy(above(score, gamma))
            if reached > accuracy:
                best, accuracy = gamma, reached
        context.held["gamma"] = (context.epoch, best)
        return best


def midpoint(evidence: Evidence) -> float:
    """Half of Proposition 2's printed gap, (2p - 1)(kappa - 1) / 2, p = e^epsilon / (e^epsilon + kappa)."""
    ties = evidence.protocol.ties
    keep = 1.0 / (1.0 + ties.levels * math.exp(-ties.epsilon))
    return (2 * keep - 1) * (ties.levels - 1) / 2


def above(score: np.ndarray, gamma: float) -> np.ndarray:
    """(n,) bool: scores above a threshold; NaN is never above."""
    with np.errstate(invalid="ignore"):
        return score > gamma
