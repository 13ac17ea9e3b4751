"""The printed pruning rule: everybody whose suspicion is above gamma (Veritas, Eq. 16)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from server.channel import channel_of
from server.evidence import Suspicion
from server.pruning._memory import settle
from server.pruning.base import Decision, Pruning, PruningContext

QUANTILES = (0.95, 0.98, 0.99, 0.995)


class Threshold(Pruning, kind="threshold"):
    """Flag users whose suspicion is above gamma: given, half of Proposition 2's printed gap, or chosen on validation.

    `gamma: auto` trains once for each of at most five candidates (infinity, and the scores' quantiles .995, .99, .98
    and .95, so that at most a twentieth of the users can fall) and keeps the one with the best validation accuracy,
    the larger where two agree; once per perturbation epoch. `gamma: midpoint` is (2p - 1)(kappa - 1)/2 as printed:
    far above what noise over all entries leaves of the score, and far below it where e^epsilon < kappa, which flags
    everybody. `permanent` keeps flags of earlier rounds; otherwise they are decided anew each round.
    """

    source: ClassVar[str] = "Veritas, Eq. 16; midpoint from its Proposition 2"

    gamma: float | Literal["auto", "midpoint"] = "auto"
    permanent: bool = False

    def decide(self, suspicion: Suspicion, context: PruningContext) -> Decision:
        gamma = self._gamma(suspicion, context)
        return settle(suspicion.score > gamma, gamma, context, self.permanent)

    def _gamma(self, suspicion: Suspicion, context: PruningContext) -> float:
        if self.gamma == "midpoint":
            channel = channel_of(context.evidence)
            return (2 * channel.keep - 1) * (channel.levels - 1) / 2
        if self.gamma != "auto":
            return self.gamma
        key = f"gamma/{context.epoch}"
        if key not in context.held:
            context.held[key] = self._choose(suspicion, context)
        return float(context.held[key])  # type: ignore[arg-type]

    def _choose(self, suspicion: Suspicion, context: PruningContext) -> float:
        known = suspicion.score[np.isfinite(suspicion.score)]
        quantiles = np.quantile(known, QUANTILES, method="lower").tolist() if len(known) else []
        best, best_accuracy = np.inf, -np.inf
        for gamma in [np.inf, *sorted(set(quantiles), reverse=True)]:
            accuracy = context.validation_accuracy(suspicion.score > gamma)
            if accuracy > best_accuracy:  # never true of NaN: without training the choice is infinity
                best, best_accuracy = gamma, accuracy
        return float(best)
