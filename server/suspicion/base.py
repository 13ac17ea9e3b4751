"""The interface of a suspicion score."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from server.evidence import Evidence, Suspicion
from sim.kernel.component import Component
from sim.kernel.randomness import Streams


class SuspicionScore(Component, family="server.suspicion", home="server.suspicion"):
    """How suspicious each user is, from the verification lists of one round."""

    has_p_values: ClassVar[bool] = False  # does the score come with a null law?
    needs: ClassVar[str] = "verification-list"  # the report form without which the stage is skipped; "" for none

    @abstractmethod
    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        """A score per user; higher is more suspicious. `streams` serves bootstraps, keyed by purpose."""

    def rescore(self, evidence: Evidence, suspicion: Suspicion, user: int, without: np.ndarray) -> float:
        """p-value of `user` once its disagreements with the users in the boolean mask `without` are left out.

        `suspicion` is what this kind's own `score` gave for the same evidence. Used to exonerate framed users; kinds
        that cannot tell return 0.0 and exonerate nobody.
        """
        return 0.0

    def warm_up(self) -> None:
        """Compile kernels, so that the stage's clock measures work only. Called once before the first round."""


class NoSuspicion(SuspicionScore, kind="none"):
    """No scoring."""

    needs: ClassVar[str] = ""

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        return Suspicion(np.full(evidence.n, np.nan))
