"""A participant of the protocol: the Mesa agent that honest users and attackers share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import mesa

from agents.protocol import Feedback, RoundCall
from agents.report import Report


class User(mesa.Agent):
    """One participant. `ident` is its stable id (Mesa's `unique_id` counts from 1 and is not used)."""

    def __init__(self, model: Any, ident: int) -> None:
        super().__init__(model)
        self.ident = ident
        self.online = True
        self.call: RoundCall | None = None
        self.feedback: Feedback | None = None

    def hear(self, call: RoundCall) -> None:
        """Receive the server's round call."""
        self.call = call

    def learn(self, feedback: Feedback) -> None:
        """Receive the private feedback of the round that ended."""
        self.feedback = feedback

    @abstractmethod
    def report(self, call: RoundCall) -> Report:
        """This user's own report for one phase, made alone: bit for bit its row of the population's batch."""
