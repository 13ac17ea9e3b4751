"""`auto`: whatever reports the chosen refinement needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.ties.base import TieProtocol, TieReports
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall


class AutoTies(TieProtocol, kind="auto"):
    """The reports that `server.refinement.kind` asks for, at this budget; resolved before a run starts."""

    levels: int = Field(5, ge=1, le=120)
    """kappa: the highest trust level, where lists have levels."""

    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        raise TypeError(
            "privacy.ties.kind 'auto' is a placeholder: ask server.refinement.tie_protocol for the real one"
        )
