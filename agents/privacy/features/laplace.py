"""The Laplace mechanism, on a grid."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from agents.privacy.features._sampled import Draws, SampledMechanism


class Laplace(SampledMechanism, kind="laplace"):
    """Laplace mechanism: two-sided exponential noise of scale m / epsilon on m sampled coordinates.

    `dimensions: auto` minimises the largest variance (d/m)(2 (m/epsilon)^2 + 1/4) - 1/4, which is at a value of 0 or 1:
    m is next to epsilon / sqrt(8). Outputs are never clipped, since clipping before rectification biases them.

    Floating point: the noise is the discrete Laplace distribution on a grid, a power of two that divides 1, so no low
    bits of a sum can tell the value; the value itself is moved to the grid at random, up or down, which keeps its mean.
    The noise comes from 53-bit draws: it never passes 36.8 scales, and beyond 22 scales (probability 2^-32) single
    outputs may be missing. This tail is not defended.
    """

    source: ClassVar[str] = "Dwork et al., TCC 2006; on a grid: Ghosh et al., STOC 2009"

    def _best(self, dimensions: int) -> int:
        near = self.epsilon / math.sqrt(8)
        low = max(1, math.floor(near))
        return min((low, low + 1), key=lambda m: 2 * m / self.epsilon**2 + 1 / (4 * m))

    def _scale(self, dimensions: int) -> float:
        """Scale of the noise of one coordinate."""
        return 1 / (self.epsilon / self.sampled(dimensions))

    def _grid(self, dimensions: int) -> float:
        """A power of two, at most 2^-16 of the scale where the range 2^-20..1 allows it."""
        return math.ldexp(1.0, min(0, max(-20, math.frexp(self._scale(dimensions))[1] - 17)))

    def spent(self, dimensions: int) -> tuple[float, float]:
        grid = self._grid(dimensions)
        steps, rate = 1 / grid, grid / self._scale(dimensions)
        return self.sampled(dimensions) * steps * rate, 0.0

    def output_range(self, dimensions: int) -> tuple[float, float]:
        return -math.inf, math.inf

    def _outputs(self, draws: Draws, dimensions: int) -> None:
        from agents.privacy.features import _kernels

        grid = self._grid(dimensions)
        _kernels.laplace_outputs(*draws, grid, grid / self._scale(dimensions))

    def _affine(self, dimensions: int) -> tuple[float, float]:
        return 1.0, -0.5

    def _coordinate_variance(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        grid = self._grid(dimensions)
        rate = grid / self._scale(dimensions)
        noise = 2 * math.exp(-rate) / math.expm1(-rate) ** 2
        between = value / grid - np.floor(value / grid)
        return grid**2 * (noise + between * (1 - between))
