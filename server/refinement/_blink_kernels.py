"""Numba kernels of Blink: the beta model on groups of users that share a degree, so that nothing is n x n."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def beta_model(degrees, counts, sweeps, tolerance):
    """Parameters of the beta model for groups of `counts` users each of expected degree `degrees`.

    Fixed point of beta_i = log d_i - log sum_{j != i} 1 / (e^{beta_i} + e^{-beta_j}) from 0, for at most `sweeps`
    sweeps or until no parameter moves by `tolerance`: then sum_{j != i} sigma(beta_i + beta_j) = d_i. A sweep takes
    O(groups^2).
    """
    groups = len(degrees)
    beta = np.zeros(groups)
    odds, reverse = np.ones(groups), np.ones(groups)
    for _ in range(sweeps):
        moved = 0.0
        for i in range(groups):
            own = odds[i]
            total = 0.0
            for j in range(groups):
                total += counts[j] / (own + reverse[j])
            total -= 1.0 / (own + reverse[i])
            fresh = math.log(degrees[i]) - math.log(total)
            moved = max(moved, abs(fresh - beta[i]))
            beta[i] = fresh
        for i in range(groups):
            odds[i], reverse[i] = math.exp(beta[i]), math.exp(-beta[i])
        if moved < tolerance:
            break
    return beta


@njit(cache=True, nogil=True)
def expected_pairs(beta, counts, evidence):
    """Sum of sigma(beta_i + beta_j + evidence_i + evidence_j) over all pairs of users, from groups of equal ones."""
    total = 0.0
    for i in range(len(beta)):
        for j in range(i, len(beta)):
            pairs = counts[i] * counts[j] if i != j else counts[i] * (counts[i] - 1) / 2
            total += pairs / (1.0 + math.exp(-(beta[i] + beta[j] + evidence[i] + evidence[j])))
    return total
