"""Pruning of a fixed share: the most suspicious users, however suspicious they are."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from server.evidence import Suspicion
from server.pruning._memory import settle
from server.pruning.base import Decision, Pruning, PruningContext


class TopShare(Pruning, kind="top-share"):
    """Flag the `share` of reporting users with the highest suspicion.

    For comparing scores at equal cost: it flags that many users in a clean population too. Users tied at the border
    stay, so that nobody is flagged for the order of the ids. `permanent` keeps flags of earlier rounds.
    """

    source: ClassVar[str] = "Graphwarden, baseline"

    share: float = Field(default=0.01, gt=0, lt=1)
    permanent: bool = False

    def decide(self, suspicion: Suspicion, context: PruningContext) -> Decision:
        known = np.sort(suspicion.score[~np.isnan(suspicion.score)])[::-1]
        count = round(self.share * len(known))
        gamma = float(known[count]) if count < len(known) and count > 0 else float("inf")
        return settle(suspicion.score > gamma, gamma, context, self.permanent)
