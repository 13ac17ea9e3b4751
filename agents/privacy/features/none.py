"""Public features."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from agents.privacy.features.base import FeatureMechanism
from sim.kernel.randomness import Streams


class PublicFeatures(FeatureMechanism, kind="none"):
    """Features are public and reported as they are: no noise, no budget."""

    @property
    def neutral(self) -> float:
        return 0.0

    def sampled(self, dimensions: int) -> int:
        return dimensions

    def spent(self, dimensions: int) -> tuple[float, float]:
        return 0.0, 0.0

    def output_range(self, dimensions: int) -> tuple[float, float]:
        return 0.0, 1.0

    def perturb(
        self, features: sparse.csr_array, senders: np.ndarray, epochs: np.ndarray, streams: Streams
    ) -> sparse.csr_array:
        return features.astype(np.float32)

    def rectify(self, reports: sparse.csr_array) -> sparse.csr_array:
        return reports

    def variance(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        return np.zeros_like(np.asarray(value, dtype=float))
