"""No tie reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.ties.base import TieProtocol, TieReports, no_lists, no_numbers
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall


class NoTies(TieProtocol, kind="none"):
    """Nobody reports ties: the server has features only, and trains without a graph."""

    form: ClassVar[str] = "none"

    epsilon: float = Field(0.0, ge=0)

    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        return TieReports(no_lists(*truth.shape), no_numbers(truth.shape[0]))

    def spent(self, phase: int) -> float:
        return 0.0
