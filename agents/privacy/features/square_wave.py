"""The square wave mechanism."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from agents.privacy.features._sampled import Draws, SampledMechanism, grid_below, outward


class SquareWave(SampledMechanism, kind="square-wave"):
    """Square wave mechanism: an output within b of the value with high probability, else anywhere in [-b, 1 + b].

    Each of the m sampled coordinates gets e = epsilon / m, and b = (e e^e - e^e + 1)/(2 e^e (e^e - 1 - e)). The density
    is P = e^e/(2 b e^e + 1) within b of the value and Q = 1/(2 b e^e + 1) elsewhere, so an output y has the mean
    1/2 + 2 b (P - Q)(value - 1/2), and (y - 1/2)/(2 b (P - Q)) estimates value - 1/2 without bias (the original use is
    density estimation; this rectifier is ours). `dimensions: auto` is m = floor(epsilon / 2.5), from 1 to d.

    Floating point: as for `piecewise`, with outputs on multiples of about (1 + b) / 2^22.
    """

    source: ClassVar[str] = "Li et al., SIGMOD 2020 (SW); mean rectifier derived"

    def _best(self, dimensions: int) -> int:
        return math.floor(self.epsilon / 2.5)

    def _reach(self, dimensions: int) -> float:
        """b, with numerator and denominator divided by e^e."""
        split = self._split(dimensions)
        return exponential_remainder(-split) / (2 * exponential_remainder(split))

    def _densities(self, dimensions: int) -> tuple[float, float]:
        """(P, Q)."""
        split, reach = self._split(dimensions), self._reach(dimensions)
        near = 1 / (2 * reach + math.exp(-split))
        return near, near * math.exp(-split)

    def spent(self, dimensions: int) -> tuple[float, float]:
        near, far = self._densities(dimensions)
        return self.sampled(dimensions) * (math.log(near) - math.log(far)), 0.0

    def output_range(self, dimensions: int) -> tuple[float, float]:
        reach = self._reach(dimensions)
        grid = grid_below(1 + reach, 22)
        return outward(-reach, grid), outward(1 + reach, grid)

    def _outputs(self, draws: Draws, dimensions: int) -> None:
        from agents.privacy.features import _kernels

        reach, near = self._reach(dimensions), self._densities(dimensions)[0]
        _kernels.window_outputs(
            *draws, 2 * reach * near, 2 * reach, -reach, 1 + 2 * reach, -reach, 1.0, grid_below(1 + reach, 22)
        )

    def _affine(self, dimensions: int) -> tuple[float, float]:
        slope = 1 / self._gain(dimensions)
        return slope, -slope / 2

    def _gain(self, dimensions: int) -> float:
        """2 b (P - Q): how far the mean output moves per unit of value."""
        return 2 * self._reach(dimensions) * self._densities(dimensions)[1] * math.expm1(self._split(dimensions))

    def _coordinate_variance(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        reach, (near, far) = self._reach(dimensions), self._densities(dimensions)
        whole = ((1 + reach) ** 3 + reach**3) / 3
        square = 2 * reach * (near - far) * (value**2 + reach**2 / 3) + far * whole
        gain = self._gain(dimensions)
        return (square - (0.5 + gain * (value - 0.5)) ** 2) / gain**2


def exponential_remainder(x: float) -> float:
    """e^x - 1 - x, by its series near zero, where the difference would lose all digits."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    term, total = x * x / 2, 0.0
    for order in range(3, 20):
        total += term
        term *= x / order
    return total
