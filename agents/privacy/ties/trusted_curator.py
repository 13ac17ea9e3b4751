"""Raw lists for a trusted curator: the client half of centrally private methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import sparse

from agents.privacy.ties.base import TieProtocol, TieReports, no_numbers
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall


class TrustedCurator(TieProtocol, kind="trusted-curator"):
    """The true list, raw: the server is trusted with it, and protects only what it publishes.

    Epsilon is charged by the curator, per undirected tie, when it publishes a graph. This is another threat model than
    that of the local protocols, and every table that holds both has to say so.
    """

    form: ClassVar[str] = "raw-list"
    two_ended: ClassVar[bool] = False  # the curator adds noise once a tie, whatever the number of lists that name it
    curator: ClassVar[str] = "trusted"
    source: ClassVar[str] = "central edge differential privacy"

    @property
    def false_positive(self) -> float:
        """0: nothing is perturbed on the device."""
        return 0.0

    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        held = sparse.csr_array(
            (np.ones(truth.nnz, dtype=np.int8), truth.indices.copy(), truth.indptr.copy()), shape=truth.shape
        )
        return TieReports(held, no_numbers(truth.shape[0]))
