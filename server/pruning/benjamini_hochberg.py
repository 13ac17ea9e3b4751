"""Pruning by false-discovery rate, with exoneration of framed users."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from server.evidence import Suspicion
from server.pruning._memory import settle
from server.pruning.base import Decision, Pruning, PruningContext, missing_p_values
from sim.kernel.errors import InputError

LEAST_CLEARANCE = 0.001
"""A user is cleared only above this p-value, however strict the round's threshold is."""


def step_up(p_values: np.ndarray, q: float) -> float:
    """The largest p-value that Benjamini and Hochberg's procedure rejects at rate `q`; -1 when it rejects none."""
    ordered = np.sort(p_values)
    passed = np.flatnonzero(ordered <= q * np.arange(1, len(ordered) + 1) / max(len(ordered), 1))
    return float(ordered[passed[-1]]) if len(passed) else -1.0


class BenjaminiHochberg(Pruning, kind="benjamini-hochberg"):
    """Flag users by the p-values of their suspicion, at false-discovery rate `q`.

    With `exoneration`, flagged users are gone through from the smallest p-value: one that is no longer significant
    once its disagreements with users already confirmed are left out was framed, and is released. The rate is
    approximate: the p-values of users that attackers rated are not those of the null, so the realised share of honest
    users among the flagged can exceed `q`. Flags are decided anew each round unless `permanent`. There is no
    threshold on the score.
    """

    source: ClassVar[str] = "Benjamini and Hochberg 1995; exoneration by Graphwarden"
    needs_p_values: ClassVar[bool] = True

    q: float = Field(default=0.05, gt=0, lt=1)
    exoneration: bool = True
    permanent: bool = False

    def decide(self, suspicion: Suspicion, context: PruningContext) -> Decision:
        nobody = np.zeros(len(suspicion.score), dtype=bool)
        p = suspicion.p_value
        if p is None:
            if np.isnan(suspicion.score).all():  # the suspicion stage was skipped
                return settle(nobody, float("inf"), context, self.permanent)
            raise InputError(missing_p_values(self.kind, context.scorer.kind))
        threshold = step_up(p[~np.isnan(p)], self.q)
        flagged = p <= threshold
        if self.exoneration and flagged.any():
            flagged = self._confirmed(suspicion, p, flagged, threshold, context)
        return settle(flagged, float("nan") if flagged.any() else float("inf"), context, self.permanent)

    def _confirmed(
        self, suspicion: Suspicion, p: np.ndarray, flagged: np.ndarray, threshold: float, context: PruningContext
    ) -> np.ndarray:
        confirmed = np.zeros_like(flagged)
        clearance = max(threshold, LEAST_CLEARANCE)
        suspects = np.flatnonzero(flagged)
        for user in suspects[np.lexsort((-suspicion.score[suspects], p[suspects]))]:
            left = context.scorer.rescore(context.evidence, suspicion, int(user), confirmed)
            confirmed[user] = left <= clearance
        return confirmed
