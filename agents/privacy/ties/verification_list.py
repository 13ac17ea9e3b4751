"""Verification lists under (kappa+1)-ary randomised response over all n - 1 entries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.ties.base import TieProtocol, TieReports, no_numbers, power
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall


class VerificationList(TieProtocol, kind="verification-list"):
    """A trust level 0..levels for every other user, each entry through (levels+1)-ary randomised response.

    An entry is replaced with probability (kappa+1) q, q = 1/(e^epsilon + kappa), by a uniform symbol of 0..kappa, and
    kept otherwise: the same law as "keep with p, each other symbol with q" (Veritas, Eq. 10-11), written so that what
    is replaced, and by what, does not depend on the truth. All entries run through it, zeros included: skipping them
    would show who is tied to whom.

    Floating point: outputs are discrete, and a probability is off by at most 2^-53. Where q is no larger than that,
    from an epsilon of about 36 on, it is not kept to, and no noise to speak of is left.
    """

    form: ClassVar[str] = "verification-list"
    source: ClassVar[str] = "Veritas, Eq. 10-11"

    levels: int = Field(5, ge=1, le=120)
    """kappa: the highest trust level."""

    @property
    def keep(self) -> float:
        """p: probability that the reported symbol is the true one."""
        return power(self.epsilon) * self.flip

    @property
    def flip(self) -> float:
        """q: probability of each particular other symbol."""
        return 1.0 / (power(self.epsilon) + self.levels)

    @property
    def false_positive(self) -> float:
        """q0 = kappa q: probability that a zero entry is reported above zero."""
        return self.levels * self.flip

    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        from agents.privacy.ties._list_kernels import randomise

        rows, columns = truth.shape
        expected = truth.nnz + rows * columns * self.false_positive
        capacity = int(expected + 8 * math.sqrt(expected + 1) + 64)
        while True:
            indptr, indices, levels = randomise(
                truth.indptr.astype(np.int64),
                truth.indices.astype(np.int32),
                truth.data,
                senders.astype(np.int64),
                columns,
                self.levels + 1,
                (self.levels + 1) * self.flip,
                streams.key("ties"),
                streams.key("ties/held"),
                call.epoch,
                capacity,
            )
            if len(indptr):
                break
            capacity *= 2
        lists = sparse.csr_array((levels, indices, indptr), shape=truth.shape)
        return TieReports(lists, no_numbers(rows))
