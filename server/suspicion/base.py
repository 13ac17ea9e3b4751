"""The interface of a suspicion score."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from server.evidence import Evidence, Suspicion
from sim.kernel.component import Component
from sim.kernel.randomness import Streams


class SuspicionScore(Component, family="server.suspicion", home="server.suspicion"):
    """How suspicious each user is, from the verification lists of one round."""

    needs: ClassVar[str] = "verification-list"  # the report form without which the stage is skipped; "" for none

    @abstractmethod
    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        """A score per user; higher is more suspicious. `streams` serves bootstraps, keyed by purpose."""

    def rescore(self, evidence: Evidence, user: int, without: object, streams: Streams) -> float:
        """p-value of `user` when its disagreements with the users in the boolean mask `without` are left out (used to
        exonerate framed users). Kinds that cannot re-score return the old p-value's meaning: 0.0 (never exonerate)."""
        return 0.0


class NoSuspicion(SuspicionScore, kind="none"):
    """No scoring."""

    needs: ClassVar[str] = ""

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        import numpy as np

        return Suspicion(np.full(evidence.n, np.nan))
