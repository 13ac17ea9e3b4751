"""Binary lists: a bit about every other user, from both ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import sparse

from agents.privacy.ties.base import TieProtocol, TieReports, no_numbers
from agents.privacy.ties.binary_response import flip_probability, noisy_bits
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall


class BinaryList(TieProtocol, kind="binary-list"):
    """A bit for every other user (tied or not), each flipped with probability 1 / (1 + e^epsilon), from both ends.

    All n - 1 bits of a list go through randomised response. A tie sits in two lists and costs twice epsilon. Floating
    point: as for `verification-list`.
    """

    form: ClassVar[str] = "binary-list"
    source: ClassVar[str] = "Warner's randomised response on neighbour lists (edge-LDP; Blink, section 4)"

    @property
    def flip(self) -> float:
        """q: probability that a bit is reported inverted."""
        return flip_probability(self.epsilon)

    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        lists = noisy_bits(truth, senders, self.epsilon, streams, call.epoch, owned_only=False)
        return TieReports(lists, no_numbers(truth.shape[0]))
