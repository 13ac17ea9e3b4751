"""The piecewise mechanism."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from agents.privacy.features._sampled import Draws, SampledMechanism, grid_below, outward


class Piecewise(SampledMechanism, kind="piecewise"):
    """Piecewise mechanism: an output near the value with high probability, else anywhere in a bounded range.

    Each of the m sampled coordinates gets e = epsilon / m. With t = 2 value - 1 and B = (e^(e/2) + 1)/(e^(e/2) - 1),
    the output is uniform on [l, l + B - 1], l = (B + 1)/2 t - (B - 1)/2, with probability e^(e/2)/(e^(e/2) + 1), and
    uniform on the rest of [-B, B] otherwise. Its mean is t. `dimensions: auto` is m = floor(epsilon / 2.5),
    from 1 to d.

    Floating point: outputs are multiples of a fixed power of two, about B / 2^22, so which outputs are possible does
    not depend on the value. Each of them collects about 2^30 of the 2^53 draws, so its probability is off by up to
    2^-29 relative, and this much is not defended.
    """

    source: ClassVar[str] = "Wang et al., ICDE 2019 (PM); Veritas, Eq. 4-5"

    def _best(self, dimensions: int) -> int:
        return math.floor(self.epsilon / 2.5)

    def _bound(self, dimensions: int) -> float:
        """B, as 1 + 2 / (e^(e/2) - 1): exact for small and for large e."""
        return 1 + self._window(dimensions)

    def _window(self, dimensions: int) -> float:
        """Width B - 1 of the likely outputs."""
        return 2 / math.expm1(self._split(dimensions) / 2)

    def _inside(self, dimensions: int) -> float:
        """Probability of the likely outputs."""
        return 1 / (1 + math.exp(-self._split(dimensions) / 2))

    def spent(self, dimensions: int) -> tuple[float, float]:
        window, inside = self._window(dimensions), self._inside(dimensions)
        outside = math.exp(-self._split(dimensions) / 2) * inside
        ratio = math.log(inside) - math.log(window) - math.log(outside) + math.log(window + 2)
        return self.sampled(dimensions) * ratio, 0.0

    def output_range(self, dimensions: int) -> tuple[float, float]:
        bound = self._bound(dimensions)
        largest = outward(bound, grid_below(bound, 22))
        return -largest, largest

    def _outputs(self, draws: Draws, dimensions: int) -> None:
        from agents.privacy.features import _kernels

        bound, window = self._bound(dimensions), self._window(dimensions)
        # l = (B + 1)/2 (2 value - 1) - (B - 1)/2 = -B + (B + 1) value
        _kernels.window_outputs(
            *draws, self._inside(dimensions), window, -bound, 2 * bound, -bound, bound + 1, grid_below(bound, 22)
        )

    def _affine(self, dimensions: int) -> tuple[float, float]:
        return 0.5, 0.0

    def _coordinate_variance(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        # t^2/(s - 1) + (s + 3)/(3 (s - 1)^2) with s = e^(e/2) and window = 2/(s - 1), quartered by the slope of 1/2.
        window = self._window(dimensions)
        return ((2 * value - 1) ** 2 * window / 2 + (window / 2 + window**2) / 3) / 4
