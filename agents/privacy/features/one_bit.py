"""The one-bit mechanism."""

from __future__ import annotations

from typing import ClassVar

from agents.privacy.features._bits import BitMechanism


class OneBit(BitMechanism, kind="one-bit"):
    """One-bit mechanism: one random bit (+1 or -1) for every coordinate, each with epsilon / d.

    Floating point: outputs are discrete; a probability is off by at most 2^-53.
    """

    source: ClassVar[str] = "Ding et al., NeurIPS 2017 (1BitMean)"

    def sampled(self, dimensions: int) -> int:
        return dimensions
