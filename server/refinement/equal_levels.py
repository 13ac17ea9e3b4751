"""A simple edge rule: both ends name the same level."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from server.evidence import Evidence, Structure
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams


class EqualLevels(Refinement, kind="equal-levels"):
    """Ties between kept users that both ends report at the same level.

    Good where levels are equal at both ends by construction; it loses the ties whose levels differ, and keeps one noise
    pair in kappa.
    """

    source: ClassVar[str] = "Graphwarden, baseline of the edge posterior"
    accepts: ClassVar[tuple[str, ...]] = ("verification-list", "binary-list")

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        pairs = evidence.pairs
        stand = (pairs.x == pairs.y) & kept[pairs.u] & kept[pairs.v]
        return Structure(pairs.u[stand], pairs.v[stand])

    def warm_up(self) -> None:
        from server._attestation import warm_up

        warm_up()
