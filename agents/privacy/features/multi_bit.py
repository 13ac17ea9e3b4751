"""The multi-bit mechanism."""

from __future__ import annotations

import math
from typing import ClassVar

from agents.privacy.features._bits import BitMechanism
from agents.privacy.features._sampled import SampledMechanism


class MultiBit(BitMechanism, SampledMechanism, kind="multi-bit"):
    """Multi-bit mechanism: one random bit (+1 or -1) for each of m sampled coordinates.

    `dimensions: auto` is m = floor(epsilon / 2.18), from 1 to d. Floating point: outputs are discrete; a probability is
    off by at most 2^-53, and one below 2^-53 is never drawn.
    """

    source: ClassVar[str] = "Sajadmanesh and Gatica-Perez, CCS 2021 (multi-bit)"

    def _best(self, dimensions: int) -> int:
        return math.floor(self.epsilon / 2.18)
