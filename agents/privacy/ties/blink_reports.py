"""A noisy degree and noisy bits: the client half of Blink."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.noise import DegreeNoise
from agents.privacy.ties.base import TieProtocol, TieReports
from agents.privacy.ties.binary_response import flip_probability, noisy_bits
from agents.privacy.ties.memo import row_epochs
from agents.privacy.ties.pairing import reporter
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall

BitEvidence = Literal["two-list", "single-bit"]


class BlinkReports(TieProtocol, kind="blink-reports"):
    """A degree under Laplace noise and a list of bits under randomised response (Blink).

    The degree takes `delta` of epsilon, the bits the rest. With `two-list` evidence all n - 1 bits of every list are
    reported, so a tie is reported twice; with `single-bit` a public hash picks the end that reports a pair. The degrees
    of both ends count a tie in either case: where epsilon is that of the undirected tie, each gets half the share.
    """

    form: ClassVar[str] = "degree-and-bits"
    source: ClassVar[str] = "Blink: Zhu, Tan & Xiao, CCS 2023, section 4"

    delta: float = Field(0.1, gt=0, lt=1)
    evidence: BitEvidence = "two-list"
    degree_ends: int = Field(1, ge=1, le=2)  # degrees that share delta * epsilon; set by the privacy unit

    @property
    def two_ended(self) -> bool:  # type: ignore[override]
        """Whether both ends report a pair's bit."""
        return self.evidence == "two-list"

    @property
    def degree_epsilon(self) -> float:
        """The budget of one degree."""
        return self.count_epsilon / self.degree_ends

    @property
    def count_epsilon(self) -> float:
        """What all degrees that count one entry cost together."""
        return self.epsilon * self.delta

    @property
    def bit_epsilon(self) -> float:
        """The budget of the bits."""
        return self.epsilon * (1.0 - self.delta)

    @property
    def flip(self) -> float:
        """q: probability that a bit is reported inverted."""
        return flip_probability(self.bit_epsilon)

    @property
    def false_positive(self) -> float:
        return self.flip

    def localised(self, unit: str, participants: int, share: float) -> Self:
        local = super().localised(unit, participants, share)
        if unit == "undirected-tie" and not self.two_ended:
            return local.model_copy(update={"degree_ends": 2})
        return local

    def speaks_for(self, senders: np.ndarray, others: np.ndarray) -> np.ndarray:
        mine = np.asarray(senders) != np.asarray(others)
        return mine if self.two_ended else mine & (reporter(senders, others) == senders)

    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        lists = noisy_bits(truth, senders, self.bit_epsilon, streams, call.epoch, owned_only=not self.two_ended)
        noise = DegreeNoise("laplace", self.degree_epsilon)
        drawn = noise.draw(1, senders, row_epochs(truth, call), streams, "ties/blink/degree")
        return TieReports(lists, np.diff(truth.indptr)[:, None] + drawn)
