"""An injected user: one member of a coalition."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.coalition import Coalition
from agents.protocol import RoundCall
from agents.report import Report
from agents.user import User


class Attacker(User):
    """Acts out its part of the coalition's plan of the round. Its feedback is pooled with its fellows' by the
    coalition."""

    def __init__(self, model: Any, ident: int, coalition: Coalition) -> None:
        super().__init__(model, ident)
        self._coalition = coalition

    @property
    def group(self) -> str:
        """Name of its attacker group."""
        return self._coalition.spec.name

    def report(self, call: RoundCall) -> Report:
        """Raises RuntimeError when the coalition has not planned this round, or plans it without this member."""
        plan = self._coalition.plan_in_force
        if plan is None or plan.round != call.round:
            raise RuntimeError(f"attacker {self.ident}: group {self.group!r} has no plan for round {call.round}")
        alone = self._coalition.encode(plan, call, only=np.array([self.ident]))
        if not len(alone.senders):
            raise RuntimeError(f"attacker {self.ident} is silent in round {call.round}")
        return alone.row(0)
