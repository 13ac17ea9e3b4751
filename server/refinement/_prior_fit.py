"""A tie prior on public pair scores, fitted to noisy bits under known noise by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from server.refinement._feature_kernels import (
    AGREEMENTS,
    COMMON_UNIT,
    COMMONS,
    COSINES,
    LARGEST_LOG,
    count_cells,
    count_codes,
)
from server.refinement._public import PublicView


@dataclass(frozen=True)
class Bits:
    """One noisy bit a pair, packed, in the order of a view's rows; and how noisy."""

    rows: np.ndarray  # packed words, see `_bit_rows`
    silent: np.ndarray  # (m,) bool: users whose pairs have no bit
    epsilon: float

    @property
    def flip(self) -> float:
        """q = 1 / (1 + e^epsilon)."""
        return 1.0 / (1.0 + np.exp(self.epsilon))


@dataclass(frozen=True)
class Commons:
    """A symmetric csr graph P in which common neighbours sum_k P_ik P_kj are counted; without entries, none are."""

    indptr: np.ndarray  # (m + 1,) int32
    indices: np.ndarray  # int32, ascending in a row
    data: np.ndarray  # float32

    @classmethod
    def none(cls, size: int) -> Commons:
        """No graph: every pair has no common neighbour."""
        return cls(np.zeros(size + 1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))


@dataclass(frozen=True)
class Cells:
    """Pairs counted by cells of their scores (non-empty cells only)."""

    pairs: np.ndarray  # N_c
    ones: np.ndarray  # O_c: noisy ones
    cosine: np.ndarray  # mean cosine
    agreement: np.ndarray  # mean class agreement
    common: np.ndarray  # mean l = log(1 + common neighbours / .01)

    def design(self, with_common: bool) -> np.ndarray:
        """Regressors (1, 5 c, 4 sqrt c, 2 g, log(g + .05), 5 c g), and with common neighbours (l, l^2/4, 5 c l,
        l log(g + .05))."""
        c, g, l = self.cosine, self.agreement, self.common  # noqa: E741
        columns = [np.ones_like(c), 5 * c, 4 * np.sqrt(c), 2 * g, np.log(g + 0.05), 5 * c * g]
        if with_common:
            columns += [l, l**2 / 4, 5 * c * l, l * np.log(g + 0.05)]
        return np.stack(columns, axis=1)


def cosine_bins(view: PublicView) -> np.ndarray:
    """(65536,) uint8: bin 0..39 of every cosine code. The inner edges are the quantiles 1 - geomspace(.9, 2e-6, 39)
    over all pairs, so bins get finer towards the most similar pairs."""
    counts = np.zeros(COSINES, dtype=np.int64)
    for _, tile in view.tiles():
        count_codes(tile, counts)
    below = np.cumsum(counts) / max(counts.sum(), 1)
    edges = np.searchsorted(below, 1 - np.geomspace(0.9, 2e-6, 39))
    return np.searchsorted(edges, np.arange(COSINES), side="left").astype(np.uint8)


def common_bins() -> np.ndarray:
    """(256,) uint8: bin 0..15 of every common-neighbour code; edges geometric, .003 to 2."""
    common = COMMON_UNIT * np.expm1(np.arange(COMMONS) * LARGEST_LOG / (COMMONS - 1))
    return np.digitize(common, np.geomspace(0.003, 2.0, 15)).astype(np.uint8)


def count_pairs(view: PublicView, classes: np.ndarray, bins: np.ndarray, commons: Commons | None, bits: Bits) -> Cells:
    """One pass over all pairs: 40 bins of the cosine by 20 equal bins of the agreement (by 16 of the common
    neighbours)."""
    agreement_bin = (np.arange(AGREEMENTS) * 20 // AGREEMENTS).astype(np.uint8)
    common_bin = np.zeros(COMMONS, np.uint8) if commons is None else common_bins()
    graph = Commons.none(view.size) if commons is None else commons
    shape = np.array([40, 20, int(common_bin.max()) + 1])
    cells = np.zeros((int(shape.prod()), 5), dtype=np.int64)
    probability = np.ascontiguousarray(classes, dtype=np.float32)
    for first, tile in view.tiles():
        wide = np.ascontiguousarray(probability[first : first + tile.shape[1]].T)
        count_cells(
            tile, first, probability, wide, bins, agreement_bin, common_bin, shape, graph.indptr, graph.indices,
            graph.data, bits.rows, bits.silent, cells,
        )  # fmt: skip
    cells = cells[cells[:, 0] > 0].astype(np.float64)
    pairs = cells[:, 0]
    return Cells(
        pairs,
        cells[:, 1],
        cells[:, 2] / pairs / (COSINES - 1),
        cells[:, 3] / pairs / (AGREEMENTS - 1),
        cells[:, 4] / pairs * LARGEST_LOG / (COMMONS - 1),
    )


def log_likelihood(theta: np.ndarray, design: np.ndarray, cells: Cells, flip: float) -> float:
    """sum_c O_c log r_c + (N_c - O_c) log(1 - r_c) - |theta without intercept|^2 / 2, r = q + (1 - 2q) sigmoid(design
    theta)."""
    rate = flip + (1 - 2 * flip) * sigmoid(design @ theta)
    fit = cells.ones * np.log(rate) + (cells.pairs - cells.ones) * np.log1p(-rate)
    return float(fit.sum() - (theta[1:] ** 2).sum() / 2)


def fit_prior(design: np.ndarray, cells: Cells, flip: float, most: int = 200) -> np.ndarray:
    """The theta that maximises `log_likelihood`, by Fisher scoring; a step is cut to 2 in every coordinate and halved
    until the likelihood rises.

    Starts from a constant prior whose mass is the de-biased number of ones, at least a fifth of its standard deviation.
    """
    signal, total = 1 - 2 * flip, cells.pairs.sum()
    mass = (cells.ones.sum() - flip * total) / signal
    deviation = np.sqrt(total * flip * (1 - flip)) / signal
    share = min(max(mass, 0.2 * deviation) / total, 0.5)
    theta = np.zeros(design.shape[1])
    theta[0] = np.log(share / (1 - share))
    penalty = np.ones(len(theta))
    penalty[0] = 0.0
    best = log_likelihood(theta, design, cells, flip)
    for _ in range(most):
        prior = sigmoid(design @ theta)
        rate, slope = flip + signal * prior, signal * prior * (1 - prior)
        gradient = design.T @ ((cells.ones / rate - (cells.pairs - cells.ones) / (1 - rate)) * slope) - penalty * theta
        information = (design.T * (cells.pairs * slope**2 / (rate * (1 - rate)))) @ design + np.diag(penalty + 1e-9)
        move = np.linalg.solve(information, gradient)
        move *= 2.0 / max(2.0, np.abs(move).max())
        for _ in range(30):
            reached = log_likelihood(theta + move, design, cells, flip)
            if reached > best:
                break
            move /= 2
        else:
            return theta
        theta, gain, best = theta + move, reached - best, reached
        if gain < 1e-7 * max(1.0, deviation * signal / np.sqrt(total)):
            return theta
    return theta


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x), elementwise, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(x)))


def odds_of(probability: np.ndarray) -> np.ndarray:
    """p / (1 - p), finite and above 0 also where p was rounded to 0 or 1."""
    inside = np.clip(probability, 1e-300, 1 - 2.0**-53)
    return inside / (1 - inside)


def expected_ties(prior: np.ndarray, cells: Cells, epsilon: float) -> float:
    """Sum over all pairs of the posterior probability, from the prior probability of each cell and its noisy bits."""
    odds = odds_of(prior)
    tied = odds * np.exp(epsilon) / (1 + odds * np.exp(epsilon))
    free = odds * np.exp(-epsilon) / (1 + odds * np.exp(-epsilon))
    return float((cells.ones * tied + (cells.pairs - cells.ones) * free).sum())
