"""When attackers attack."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.strategies.base import Knowledge, TimingStrategy, View


class Always(TimingStrategy, kind="always"):
    """Every member attacks in every round."""

    source: ClassVar[str] = "the published attacks"

    def attacking(self, view: View) -> np.ndarray:
        return np.ones(view.size, dtype=bool)


class Sleeper(TimingStrategy, kind="sleeper"):
    """Every member stays idle before round `wake` and attacks from then on."""

    source: ClassVar[str] = "sleeper Sybils"
    wake: int = Field(2, ge=1)

    def attacking(self, view: View) -> np.ndarray:
        return np.full(view.size, view.round >= self.wake)


class OnOff(TimingStrategy, kind="on-off"):
    """All members attack for `attacks` rounds, idle for `pauses`, and so on, starting with an attack."""

    source: ClassVar[str] = "on-off attack of the trust-management literature"
    attacks: int = Field(1, ge=1)
    pauses: int = Field(1, ge=1)

    def attacking(self, view: View) -> np.ndarray:
        return np.full(view.size, (view.round - 1) % (self.attacks + self.pauses) < self.attacks)


class Ramp(TimingStrategy, kind="ramp"):
    """More and more members attack: ceil(members x round / over) in a round, all of them from round `over` on."""

    source: ClassVar[str] = "slow-start poisoning"
    over: int = Field(3, ge=1)

    def attacking(self, view: View) -> np.ndarray:
        awake = -(-view.size * min(view.round, self.over) // self.over)
        mask = np.zeros(view.size, dtype=bool)
        mask[view.random("timing").permutation(view.size)[:awake]] = True
        return mask


class Whitewash(TimingStrategy, kind="whitewash"):
    """A member that learns it is flagged leaves for good and wants a new identity; the others attack on."""

    needs: ClassVar[tuple[Knowledge, ...]] = ("feedback",)
    source: ClassVar[str] = "whitewashing, Feldman et al. 2006"

    def attacking(self, view: View) -> np.ndarray:
        return ~self.leaving(view)

    def leaving(self, view: View) -> np.ndarray:
        flagged = {
            member
            for ago in range(len(view.history))
            for member, learnt in view.feedback(ago).items()
            if learnt.flagged
        }
        return np.isin(view.members, list(flagged))
