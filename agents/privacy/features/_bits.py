"""One random bit for a coordinate: what multi-bit and one-bit share."""

from __future__ import annotations

import math

import numpy as np

from agents.privacy.features._sampled import Draws, PrivateMechanism


class BitMechanism(PrivateMechanism):
    """Sends +1 with probability 1/(e^e + 1) + value (e^e - 1)/(e^e + 1), else -1, with e = epsilon / m."""

    def _extremes(self, dimensions: int) -> tuple[float, float]:
        """Probabilities of +1 at the values 0 and 1; they add up to one."""
        split = self._split(dimensions)
        low = math.exp(-split) / (1 + math.exp(-split))
        return low, 1 / (1 + math.exp(-split))

    def probability(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        """Probability of +1 for a sampled coordinate with this value."""
        low, high = self._extremes(dimensions)
        return low + (high - low) * np.asarray(value, dtype=float)

    def spent(self, dimensions: int) -> tuple[float, float]:
        low, high = self._extremes(dimensions)
        return self.sampled(dimensions) * (math.log(high) - math.log(low)), 0.0

    def output_range(self, dimensions: int) -> tuple[float, float]:
        return -1.0, 1.0

    def _outputs(self, draws: Draws, dimensions: int) -> None:
        from agents.privacy.features import _kernels

        _kernels.bit_outputs(*draws, self._extremes(dimensions)[0], self._gain(dimensions))

    def _gain(self, dimensions: int) -> float:
        """(e^e - 1)/(e^e + 1)."""
        return math.tanh(self._split(dimensions) / 2)

    def _affine(self, dimensions: int) -> tuple[float, float]:
        return 1 / (2 * self._gain(dimensions)), 0.0

    def _coordinate_variance(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        return 1 / (4 * self._gain(dimensions) ** 2) - (value - 0.5) ** 2
