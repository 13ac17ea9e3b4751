"""Random graphs with given expected degrees (Chung-Lu), in time proportional to nodes plus ties."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def skip_pairs(weights, total, rng):
    """Each pair i < j of positions independently with probability min(1, weights[i] weights[j] / total).

    `weights` are non-negative and descending. For each i the candidates j are reached by geometric skips at a rate that
    bounds the probabilities of all later j, and accepted with the ratio to that bound (Miller & Hagberg, WAW 2011).
    Returns two int64 arrays.
    """
    n = len(weights)
    capacity = 64
    left, right = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    size = 0
    if total <= 0.0:
        return left[:0], right[:0]
    for i in range(n - 1):
        j = i + 1
        bound = min(1.0, weights[i] * weights[j] / total)
        while j < n and bound > 0.0:
            if bound < 1.0:
                skip = math.log(1.0 - rng.random()) / math.log1p(-bound)
                if skip >= n - j:
                    break
                j += int(skip)
            probability = min(1.0, weights[i] * weights[j] / total)
            if rng.random() * bound < probability:
                if size == capacity:
                    capacity *= 2
                    larger_left, larger_right = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
                    larger_left[:size], larger_right[:size] = left[:size], right[:size]
                    left, right = larger_left, larger_right
                left[size], right[size] = i, j
                size += 1
            bound = probability
            j += 1
    return left[:size].copy(), right[:size].copy()


def chung_lu(
    weights: np.ndarray, rng: np.random.Generator, total: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of positions (i, j), each independently with probability min(1, w_i w_j / total); total defaults to sum
    w."""
    order = np.argsort(-weights, kind="stable")
    mass = float(weights.sum()) if total is None else total
    left, right = skip_pairs(np.ascontiguousarray(weights[order], dtype=np.float64), mass, rng)
    return order[left], order[right]
