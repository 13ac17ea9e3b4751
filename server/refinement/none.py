"""No structure."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from server.evidence import Evidence, Structure
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams


class NoRefinement(Refinement, kind="none"):
    """No graph is published: the model sees every user alone."""

    accepts: ClassVar[tuple[str, ...]] = ("verification-list", "binary-list", "pair-bits", "raw-list", "none")

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        return empty()


def empty() -> Structure:
    """A structure without ties."""
    nothing = np.zeros(0, dtype=np.int32)
    return Structure(nothing, nothing)
