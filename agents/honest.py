"""An honest user: one node of the graph, following the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.population import Population
from agents.protocol import RoundCall
from agents.report import Report
from agents.user import User


class HonestUser(User):
    """Sees its own features, ties and trust, the round call and its own feedback; nothing of anybody else."""

    def __init__(self, model: Any, ident: int, population: Population) -> None:
        super().__init__(model, ident)
        self._population = population

    @property
    def trusted(self) -> tuple[np.ndarray, np.ndarray]:
        """(ids, levels) of the partners it rates above 0: its own true list."""
        lists = self._population.lists
        own = slice(*lists.indptr[self.ident : self.ident + 2])
        return lists.indices[own], lists.data[own]

    def answer(self, stranger: int, earned: int = 0) -> int:
        """Answer a stranger who asks for a tie: the level it holds about it from now on (0: refused). `earned` is the
        level that the stranger's good behaviour has earned."""
        return self._population.answer(self.ident, stranger, earned)

    def report(self, call: RoundCall) -> Report:
        return self._population.reports(np.array([self.ident]), call).row(0)
