"""The analytic Gaussian mechanism."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.privacy.features._sampled import Draws, SampledMechanism


class Gaussian(SampledMechanism, kind="gaussian"):
    """Gaussian mechanism: normal noise on m sampled coordinates, (epsilon, delta)-LDP for all of them together.

    The m coordinates move by at most sqrt(m) in Euclidean length, and sigma is the smallest that is private at this
    distance (analytic calibration). So sigma^2 grows like m, the variance (d/m)(sigma^2 + 1/4) - 1/4 falls with m, and
    `dimensions: auto` is m = d. `delta` is spent with every report and is summed in the ledger.

    Floating point: outputs are rounded to a grid, a power of two near 2^-16 sigma. The normal draws come from two
    53-bit draws and stay within 8.6 sigma: the tail beyond it and the low bits of outputs near it are not defended.
    """

    source: ClassVar[str] = "Balle and Wang, ICML 2018, Theorem 8"

    delta: float = Field(default=1e-10, gt=0, lt=1)

    def _best(self, dimensions: int) -> int:
        return dimensions

    def _sigma(self, dimensions: int) -> float:
        """Standard deviation of the noise of one coordinate."""
        return math.sqrt(self.sampled(dimensions)) * smallest_sigma(self.epsilon, self.delta)

    def _grid(self, dimensions: int) -> float:
        return math.ldexp(1.0, max(-20, math.frexp(self._sigma(dimensions))[1] - 17))

    def spent(self, dimensions: int) -> tuple[float, float]:
        ratio = self._sigma(dimensions) / math.sqrt(self.sampled(dimensions))
        return smallest_epsilon(ratio, self.delta), self.delta

    def output_range(self, dimensions: int) -> tuple[float, float]:
        return -math.inf, math.inf

    def _outputs(self, draws: Draws, dimensions: int) -> None:
        from agents.privacy.features import _kernels

        _kernels.gaussian_outputs(*draws, self._sigma(dimensions), self._grid(dimensions))

    def _affine(self, dimensions: int) -> tuple[float, float]:
        return 1.0, -0.5

    def _coordinate_variance(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        return np.full_like(value, self._sigma(dimensions) ** 2 + self._grid(dimensions) ** 2 / 12)


def gaussian_delta(sigma: float, epsilon: float) -> float:
    """The smallest delta of normal noise `sigma` at distance 1: Phi(a) - e^epsilon Phi(a - 1/sigma)."""
    from scipy.special import log_ndtr, ndtr

    upper = 0.5 / sigma - epsilon * sigma
    return float(ndtr(upper) - math.exp(min(700.0, epsilon + float(log_ndtr(upper - 1 / sigma)))))


@lru_cache(maxsize=256)
def smallest_sigma(epsilon: float, delta: float) -> float:
    """The smallest sigma with `gaussian_delta(sigma, epsilon) <= delta`, to 1e-12 relative and rounded up."""
    low, high = 1.0, 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2
    return _bisect(low, high, lambda sigma: gaussian_delta(sigma, epsilon) <= delta)


@lru_cache(maxsize=256)
def smallest_epsilon(sigma: float, delta: float) -> float:
    """The smallest epsilon with `gaussian_delta(sigma, epsilon) <= delta`: what this noise really spends."""
    if gaussian_delta(sigma, 0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(sigma, high) > delta:
        high *= 2
    return _bisect(low, high, lambda epsilon: gaussian_delta(sigma, epsilon) <= delta)


def _bisect(low: float, high: float, enough) -> float:  # type: ignore[no-untyped-def]
    """The smallest value that is enough, given that `high` is and `low` is not; returns a value that is enough."""
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
