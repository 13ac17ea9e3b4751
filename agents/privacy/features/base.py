"""The interface of a feature mechanism."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy import sparse

from sim.kernel.component import Component
from sim.kernel.randomness import Streams


class FeatureMechanism(Component, family="privacy.features", home="agents.privacy.features"):
    """How a user reports its features: on m sampled coordinates, each perturbed, together epsilon-LDP.

    Features are in [0, 1]. A report holds the mechanism's raw outputs on the sampled coordinates. The server
    *rectifies* them into unbiased estimates of (feature - neutral); an absent coordinate estimates `neutral` itself.
    """

    @property
    @abstractmethod
    def neutral(self) -> float:
        """The feature value that an absent (or zero) rectified coordinate stands for; 0.5 for private kinds."""

    @abstractmethod
    def sampled(self, dimensions: int) -> int:
        """m: how many of the `dimensions` coordinates a report holds."""

    @abstractmethod
    def spent(self, dimensions: int) -> tuple[float, float]:
        """(epsilon, delta) of one report, computed from the mechanism's own probabilities or scale."""

    @abstractmethod
    def output_range(self, dimensions: int) -> tuple[float, float]:
        """Smallest and largest value a report may hold (infinite for unbounded noise)."""

    @abstractmethod
    def perturb(
        self, features: sparse.csr_array, senders: np.ndarray, epochs: np.ndarray, streams: Streams
    ) -> sparse.csr_array:
        """Reports of `senders` (k,) whose true rows are `features` (k, d) in [0, 1]: a (k, d) float32 csr array of raw
        outputs, sorted indices. Row r is a pure function of (its features, senders[r], epochs[r], streams.seed):
        computed alone it has the same bits. `epochs` (k,) uint64 names the perturbation (a round, or a digest of the
        held value when noise is memoized)."""

    @abstractmethod
    def rectify(self, reports: sparse.csr_array) -> sparse.csr_array:
        """Unbiased estimates of (feature - neutral) from raw outputs: (k, d) float32, same sparsity."""

    @abstractmethod
    def variance(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        """Variance of the rectified estimate of a coordinate whose true value is `value`, sampling included."""
