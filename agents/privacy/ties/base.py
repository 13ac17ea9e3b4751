"""The interface of a tie protocol: the client half of whatever the server does with structure."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import Field
from scipy import sparse

from sim.kernel.component import Component
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall


@dataclass(frozen=True)
class TieReports:
    """What k users send in one phase: level lists (k, n) int8 csr, and numbers (k, c) float64."""

    lists: sparse.csr_array
    numbers: np.ndarray


def power(epsilon: float) -> float:
    """e^epsilon, held below the overflow of floats: from 700 on there is a little more noise than epsilon asks for."""
    return math.exp(min(epsilon, 700.0))


def no_lists(rows: int, columns: int) -> sparse.csr_array:
    """Empty lists, for a phase that asks for numbers only."""
    empty: Any = sparse.csr_array((rows, columns), dtype=np.int8)
    return empty


def no_numbers(rows: int) -> np.ndarray:
    """Zero numbers a user, for a phase that asks for a list only."""
    return np.zeros((rows, 0))


class TieProtocol(Component, family="privacy.ties", home="agents.privacy.ties"):
    """How users report their ties under a budget per list entry.

    `form` says what the server receives: `verification-list` (levels 0..kappa about every other user, from both ends),
    `binary-list` (a bit about every other user, from both ends), `pair-bits` (one bit a pair, from the end that a
    public hash picks), or another word that a refinement asks for by name.
    """

    form: ClassVar[str] = "none"
    two_ended: ClassVar[bool] = True  # does one undirected tie sit in two reports?
    phases: ClassVar[int] = 1
    curator: ClassVar[str] = "none"  # "trusted" when raw lists leave the device

    epsilon: float = Field(gt=0)
    """Budget of one report, in the scenario's `privacy.unit`."""

    if TYPE_CHECKING:
        levels: int = 1  # kappa: the largest level of a list entry; a field where a kind has levels, 1 elsewhere

    @classmethod
    def __pydantic_init_subclass__(cls, **keywords: Any) -> None:  # type: ignore[override]
        super().__pydantic_init_subclass__(**keywords)
        if not cls.is_family() and "levels" not in cls.model_fields:
            cls.levels = 1

    def localised(self, unit: str, participants: int, share: float) -> Self:
        """The same protocol with the local budget per list entry of one report.

        unit `list-entry`: as given; `undirected-tie`: halved when both ends report; `whole-list`: divided by the n - 1
        entries. `share` is the part of the budget that one round may spend.
        """
        local = self.epsilon * share
        if unit == "undirected-tie" and self.two_ended:
            local /= 2
        if unit == "whole-list":
            local /= participants - 1
        return self.model_copy(update={"epsilon": local})

    @abstractmethod
    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        """Reports of `senders` (k,) in phase `call.phase`, from their true lists `truth` (k, n) int8 levels (no stored
        zeros, sorted; the diagonal is empty). `self.epsilon` is the local budget of one report. Each row is a pure
        function of (its truth, its id, call.epoch, streams.seed): alone it has the same bits."""

    @property
    def false_positive(self) -> float:
        """q0: probability that a zero entry is reported above zero, for (kappa+1)-ary randomized response."""
        return self.levels / (power(self.epsilon) + self.levels)

    def speaks_for(self, senders: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Elementwise: does this sender report the entry about this other user?"""
        return np.asarray(senders) != np.asarray(others)

    def verbatim(self, truth: sparse.csr_array, senders: np.ndarray, call: RoundCall) -> TieReports:
        """What users send who skip the randomization: of their lists the entries they speak for, and as every number
        that the phase asks for the true degree. A phase that no honest client answers with a list gets none."""
        honest = self.encode(truth, senders, Streams(0), call)
        width = honest.numbers.shape[1]
        numbers = np.repeat(np.diff(truth.indptr)[:, None].astype(float), width, axis=1)
        if width and not honest.lists.nnz:
            return TieReports(no_lists(*truth.shape), numbers)
        entries = truth.tocoo()
        rows, columns = entries.coords
        kept = self.speaks_for(np.asarray(senders)[rows], columns)
        lists = sparse.csr_array((entries.data[kept], (rows[kept], columns[kept])), shape=truth.shape, dtype=np.int8)
        lists.sort_indices()
        return TieReports(lists, numbers)

    def spent(self, phase: int) -> float:
        """Local epsilon per list entry that one report of this phase costs; sums to at most `epsilon` over phases."""
        return self.epsilon if phase == 0 else 0.0
