"""Dual denoising of private features: node feature regularisation (NFR), then high-order aggregation (HOA)."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from sim.kernel.component import Component

COLUMNS = 64
"""Feature columns averaged at a time: the working set of a hop stays in the cache."""


class Denoising(Component, family="server.denoising", home="server.denoising"):
    """How the server cleans private features with the help of the published graph."""

    default_kind: ClassVar[str] = "dual"

    @abstractmethod
    def denoise(self, features: sparse.csr_array, structure: sparse.csr_array, bound: float) -> np.ndarray:
        """Denoised features, (n, d) float32.

        `features`: (n, d) rectified estimates. `structure`: (n, n) symmetric weights, empty diagonal. `bound`: the
        largest absolute value that the mechanism can produce after rectification; infinite for unbounded noise.
        """


class NoDenoising(Denoising, kind="none"):
    """Features as they were reported and rectified."""

    def denoise(self, features: sparse.csr_array, structure: sparse.csr_array, bound: float) -> np.ndarray:
        return np.asarray(features.toarray(), dtype=np.float32)


class DualDenoising(Denoising, kind="dual"):
    """Soft threshold (NFR), then the mean of 1 to `hops` hops of normalised neighbourhood sums (HOA).

    NFR: z becomes sign(z) max(|z| - mu, 0) with mu = regularization x B. B is the bound of the reports; where noise is
    unbounded (Laplace, Gaussian), the largest absolute value that was reported. HOA: the mean over k = 1..hops of
    (D^-1/2 A D^-1/2)^k x, without self loops. A node without neighbours keeps its own regularised features; so does
    everyone with 0 hops. `order: hoa-nfr` aggregates first and then uses mu = regularization x B / (mean degree x
    hops), since a mean of that many bounded terms is regularised; a node without neighbours is a single term.
    """

    source: ClassVar[str] = "UPGNET (ICML 2025), Algorithm 1 and Theorems 5 and 6; Veritas, Stage III"

    regularization: float = Field(0.7, gt=0, lt=1)
    hops: int = Field(16, ge=0)
    order: Literal["nfr-hoa", "hoa-nfr"] = "nfr-hoa"

    def denoise(self, features: sparse.csr_array, structure: sparse.csr_array, bound: float) -> np.ndarray:
        held: Any = features
        held = held.astype(np.float32)
        if not math.isfinite(bound):
            bound = float(np.abs(held.data).max(initial=0.0))
        threshold = self.regularization * bound
        if self.order == "nfr-hoa":
            return aggregate(soft_threshold(held, threshold), structure, self.hops)
        degree = np.diff(sparse.csr_array(structure).indptr)
        terms = np.where(degree > 0, max(1.0, float(degree.mean()) * self.hops), 1.0)
        return shrink(aggregate(held, structure, self.hops), (threshold / terms)[:, None].astype(np.float32))


def shrink(values: np.ndarray, threshold: Any) -> np.ndarray:
    """sign(z) max(|z| - threshold, 0), elementwise (UPGNET, Theorem 5)."""
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0)


def soft_threshold(features: Any, threshold: float) -> Any:
    """`shrink` on the stored entries of a sparse matrix; what becomes zero is dropped."""
    held = features.copy()
    held.data = shrink(held.data, np.float32(threshold)).astype(np.float32)
    held.eliminate_zeros()
    return held


def aggregate(features: Any, structure: Any, hops: int) -> np.ndarray:
    """Mean of hops 1..`hops` of D^-1/2 A D^-1/2 applied to the features (UPGNET, Algorithm 1): dense (n, d) float32.

    D are the weighted degrees. Rows of `structure` without ties keep their features, as do all with 0 hops.
    """
    hop = normalise(structure)
    alone = np.diff(hop.indptr) == 0
    columns: Any = sparse.csc_array(features, dtype=np.float32)
    result = np.zeros(columns.shape, dtype=np.float32)
    used = np.flatnonzero(np.diff(columns.indptr))  # a column of zeros stays one
    for start in range(0, used.size, COLUMNS):
        block = used[start : start + COLUMNS]
        own = columns[:, block].toarray()
        if hops == 0:
            result[:, block] = own
            continue
        walked = own
        total = np.zeros_like(own)
        for _ in range(hops):
            walked = hop @ walked
            total += walked
        total /= hops
        total[alone] = own[alone]
        result[:, block] = total
    return result


def normalise(structure: Any) -> Any:
    """D^-1/2 A D^-1/2 in float32, stored zeros dropped; rows without ties stay empty."""
    held: Any = sparse.csr_array(structure, dtype=np.float64)
    held.eliminate_zeros()
    degree = np.asarray(held.sum(axis=1)).reshape(-1)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    rows = np.repeat(np.arange(degree.size), np.diff(held.indptr))
    values = (held.data * scale[rows] * scale[held.indices]).astype(np.float32)
    return sparse.csr_array((values, held.indices, held.indptr), shape=held.shape)
