"""Degree-preserving randomised response on neighbour lists: the client half of DPRR."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from scipy import sparse

from agents.privacy.noise import DegreeNoise
from agents.privacy.ties.base import TieProtocol, TieReports, no_numbers
from agents.privacy.ties.binary_response import flip_probability
from agents.privacy.ties.memo import row_epochs
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall

Budget = Literal["authors", "edgerefine"]


class SampledList(TieProtocol, kind="sampled-list"):
    """Randomised response on a whole neighbour list, thinned until it has about as many ones as the true list.

    A user draws a noisy degree d* = d + Lap(1/epsilon_1), flips every one of its n - 1 bits with probability
    1/(1 + e^epsilon_2), and keeps each resulting one with a probability that brings the expected number of ones to d*.
    Only the surviving ones leave the device. A tie sits in two lists and costs twice epsilon.

    `budget`: `authors` gives the degree a tenth of epsilon; `edgerefine` gives it at least sqrt(8/(n - 1)), the point
    where the variance of the Laplace noise equals the largest variance of a row of n - 1 bits.
    """

    form: ClassVar[str] = "sampled-list"
    memoizes: ClassVar[str] = "list"  # one answer per distinct list held, not per entry
    source: ClassVar[str] = "DPRR: Hidano & Murakami, Transactions on Data Privacy 2024 (arXiv 2202.10209)"

    budget: Budget = "authors"

    def shares(self, participants: int) -> tuple[float, float]:
        """(epsilon_1 of the degree, epsilon_2 of the bits); they add up to epsilon."""
        degree = self.epsilon / 10
        if self.budget == "edgerefine":
            degree = min(self.epsilon, max(math.sqrt(8 / (participants - 1)), degree))
        return degree, self.epsilon - degree

    def truthful(self, participants: int) -> float:
        """p: probability that randomised response leaves a bit as it is, e^epsilon_2 / (1 + e^epsilon_2)."""
        return 1.0 - self.flip(participants)

    def flip(self, participants: int) -> float:
        """q = 1 - p, kept apart because 1 - q has no digits left for it at a large epsilon."""
        return flip_probability(self.shares(participants)[1])

    def keep(self, noisy_degrees: np.ndarray, participants: int) -> np.ndarray:
        """Probability that a noisy one of a row stays, elementwise, so that about `noisy_degrees` ones are reported.

        min(1, d* / (d* (2p - 1) + (n - 1)(1 - p))); 0 for d* <= 0. From d* = (n - 1)/2 on it is 1, and the reported
        list falls short of d*.
        """
        q, degree = self.flip(participants), np.maximum(noisy_degrees, 0.0)
        return np.minimum(1.0, degree / (degree * (1 - 2 * q) + (participants - 1) * q))

    @property
    def false_positive(self) -> float:
        """0: spurious ones come in place of true ones, so a list is no longer than the ties that it stands for."""
        return 0.0

    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        from agents.privacy.ties._sampled_kernels import sample_rows

        participants, epochs = truth.shape[1], row_epochs(truth, call)
        noise = DegreeNoise("laplace", self.shares(participants)[0])
        drawn = noise.draw(1, senders, epochs, streams, "ties/sampled/degree")[:, 0]
        indptr, indices = sample_rows(
            truth.indptr.astype(np.int64),
            truth.indices.astype(np.int32),
            np.asarray(senders, dtype=np.int64),
            epochs,
            self.keep(np.diff(truth.indptr) + drawn, participants),
            participants,
            self.flip(participants),
            streams.key("ties/sampled"),
            streams.key("ties/sampled/held"),
        )
        lists = sparse.csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=truth.shape)
        return TieReports(lists, no_numbers(truth.shape[0]))
