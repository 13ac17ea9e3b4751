"""The printed edge rule: a tie stands where both ends attest it with enough confidence (Veritas, Eq. 16)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from server.attestation import confidence, penalty_of
from server.evidence import Evidence, Structure
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams


class Attested(Refinement, kind="attested"):
    """Ties between kept users whose confidence c_uv is above `cut`; optionally weighted by it."""

    source: ClassVar[str] = "Veritas, Eq. 16 (and Eq. 13 for the confidence)"
    accepts: ClassVar[tuple[str, ...]] = ("verification-list", "binary-list")
    weighted: ClassVar[bool] = True

    cut: float = Field(default=0.0, ge=0, lt=1)
    weights: Literal["none", "confidence"] = "none"

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        pairs = evidence.pairs
        trust = confidence(pairs, evidence.protocol.ties.levels, penalty_of(evidence))
        stand = (trust > self.cut) & kept[pairs.u] & kept[pairs.v]
        weight = trust[stand] if self.weights == "confidence" else None
        return Structure(pairs.u[stand], pairs.v[stand], weight=weight)

    def warm_up(self) -> None:
        from server._attestation import warm_up

        warm_up()
