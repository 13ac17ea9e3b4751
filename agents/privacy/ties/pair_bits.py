"""Pair bits: one bit for each undirected pair, from the end that a public hash picks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.noise import DegreeNoise
from agents.privacy.ties.base import TieProtocol, TieReports, no_numbers
from agents.privacy.ties.binary_response import flip_probability, noisy_bits
from agents.privacy.ties.memo import row_epochs
from agents.privacy.ties.pairing import reporter
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall


class PairBits(TieProtocol, kind="pair-bits"):
    """One bit for each undirected pair, flipped with probability 1 / (1 + e^epsilon), from the end that a hash picks.

    A tie sits in one report only, so the budget of a list entry is the budget of the undirected tie. With `count_share`
    each user also reports how many ties it speaks for, under Laplace noise of scale 1 / (count_share epsilon); the bits
    then use the rest. The counts of all users add up to the number of ties.
    """

    form: ClassVar[str] = "pair-bits"
    two_ended: ClassVar[bool] = False
    source: ClassVar[str] = "EdgeRefine, Algorithm 1 (randomised response on the upper triangle)"

    count_share: float = Field(0.0, ge=0, lt=1)

    @property
    def bit_epsilon(self) -> float:
        """The budget of the bits."""
        return self.epsilon * (1.0 - self.count_share)

    @property
    def count_epsilon(self) -> float:
        """The budget of the count; 0 when none is reported."""
        return self.epsilon * self.count_share

    @property
    def flip(self) -> float:
        """q: probability that a bit is reported inverted."""
        return flip_probability(self.bit_epsilon)

    @property
    def false_positive(self) -> float:
        return self.flip

    def speaks_for(self, senders: np.ndarray, others: np.ndarray) -> np.ndarray:
        return (np.asarray(senders) != np.asarray(others)) & (reporter(senders, others) == senders)

    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        lists = noisy_bits(truth, senders, self.bit_epsilon, streams, call.epoch, owned_only=True)
        if self.count_share == 0:
            return TieReports(lists, no_numbers(truth.shape[0]))
        rows = np.repeat(np.asarray(senders, dtype=np.int64), np.diff(truth.indptr))
        owned = np.concatenate([[0], np.cumsum(reporter(rows, truth.indices) == rows)])
        counts = owned[truth.indptr[1:]] - owned[truth.indptr[:-1]]
        noise = DegreeNoise("laplace", self.count_epsilon)
        drawn = noise.draw(1, senders, row_epochs(truth, call), streams, "ties/count")
        return TieReports(lists, counts[:, None] + drawn)

    def verbatim(self, truth: sparse.csr_array, senders: np.ndarray, call: RoundCall) -> TieReports:
        """What users send who skip the randomization: the claims they speak for, and how many these are."""
        lists = super().verbatim(truth, senders, call).lists
        counts = np.diff(lists.indptr).astype(float)[:, None]
        return TieReports(lists, counts if self.count_share else no_numbers(truth.shape[0]))
