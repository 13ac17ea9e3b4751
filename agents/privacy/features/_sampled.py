"""What the private mechanisms share: m sampled coordinates, an even split of epsilon, and linear rectification."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.features.base import FeatureMechanism
from sim.kernel.randomness import Streams


class Draws(NamedTuple):
    """What a kernel needs to make the outputs of k reports."""

    values: np.ndarray  # (k, m) float32: the true values, to be replaced by outputs
    chosen: np.ndarray  # (k, m) int32: their coordinates
    senders: np.ndarray  # (k,) uint64
    epochs: np.ndarray  # (k,) uint64
    key: np.ndarray  # (2,) uint64


class PrivateMechanism(FeatureMechanism):
    """Perturbs m coordinates, chosen uniformly without replacement, and stores nothing for the others.

    A kind says how one coordinate is perturbed (`_outputs`), and the affine map that makes an output an unbiased
    estimate of (value - 0.5) for a sampled coordinate (`_affine`). The factor d / m that pays for the coordinates that
    were not sampled is applied here (Wang et al. 2019, section IV-B, in coordinates whose neutral point is zero).
    """

    epsilon: float = Field(gt=0)
    """Budget of one feature report, all coordinates together."""

    @property
    def neutral(self) -> float:
        return 0.5

    @abstractmethod
    def _outputs(self, draws: Draws, dimensions: int) -> None:
        """Replace the true values in place by outputs."""

    @abstractmethod
    def _affine(self, dimensions: int) -> tuple[float, float]:
        """(slope, offset): slope * output + offset estimates (value - 0.5) of a sampled coordinate without bias."""

    @abstractmethod
    def _coordinate_variance(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        """Variance of slope * output + offset for a sampled coordinate."""

    def _split(self, dimensions: int) -> float:
        """e = epsilon / m, the budget of one sampled coordinate, held below the overflow of its exponential."""
        return min(self.epsilon / self.sampled(dimensions), 700.0)

    def perturb(
        self, features: sparse.csr_array, senders: np.ndarray, epochs: np.ndarray, streams: Streams
    ) -> sparse.csr_array:
        from agents.privacy.features import _kernels

        rows, width = features.shape
        if not features.has_sorted_indices:
            features = features.sorted_indices()
        sampled = self.sampled(width)
        senders, epochs = np.asarray(senders, np.uint64), np.asarray(epochs, np.uint64)
        key = streams.key(f"privacy.features.{self.kind}")
        chosen = _kernels.choose_coordinates(senders, epochs, key, width, sampled)
        values = _kernels.look_up(features.indptr, features.indices, features.data, chosen)
        self._outputs(Draws(values, chosen, senders, epochs, key), width)
        indptr: Any = np.arange(rows + 1, dtype=np.int64) * sampled
        if indptr[-1] < 2**31:
            indptr = indptr.astype(np.int32)
        reports = sparse.csr_array((values.ravel(), chosen.ravel(), indptr), shape=(rows, width))
        reports.has_sorted_indices = True
        return reports

    def rectify(self, reports: sparse.csr_array) -> sparse.csr_array:
        width = reports.shape[1]
        slope, offset = self._affine(width)
        factor = width / self.sampled(width)
        rectified = reports.astype(np.float32)
        rectified.data = (factor * (slope * reports.data.astype(np.float64) + offset)).astype(np.float32)
        return rectified

    def variance(self, value: np.ndarray, dimensions: int) -> np.ndarray:
        value = np.asarray(value, dtype=float)
        factor, centred = dimensions / self.sampled(dimensions), value - self.neutral
        return factor * (self._coordinate_variance(value, dimensions) + centred**2) - centred**2


class SampledMechanism(PrivateMechanism):
    """A mechanism whose m is a setting: given, or its own optimum."""

    dimensions: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """m: how many coordinates a report holds; `auto` takes the number that suits the mechanism and epsilon."""

    @abstractmethod
    def _best(self, dimensions: int) -> int:
        """The m that minimises the largest variance; `sampled` keeps it in 1..dimensions."""

    def sampled(self, dimensions: int) -> int:
        wanted = self._best(dimensions) if self.dimensions == "auto" else self.dimensions
        return max(1, min(dimensions, wanted))


def grid_below(bound: float, bits: int) -> float:
    """The grid of outputs in [-bound, bound]: a power of two, at most bound / 2^(bits - 1), exact in float32."""
    return math.ldexp(1.0, math.frexp(bound)[1] - bits)


def outward(bound: float, grid: float) -> float:
    """The first multiple of the grid at or beyond a bound, away from zero."""
    return math.copysign(math.ceil(abs(bound) / grid) * grid, bound)
