"""Numba kernels of Solitude's estimator on listed pairs: one pass over the pairs each."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gather(u, v, tie, rows):
    """rows + A rows for the symmetric matrix A with A[u, v] = tie: (n, c) float64."""
    out = rows.copy()
    width = rows.shape[1]
    for k in range(len(u)):
        i, j, a = u[k], v[k], tie[k]
        if a != 0.0:
            for c in range(width):
                out[i, c] += a * rows[j, c]
                out[j, c] += a * rows[i, c]
    return out


@njit(cache=True, nogil=True)
def step(u, v, reported, tie, first, second, logits, mean, error, labelled, fidelity, distance, shrink, rate, turn):
    """One Adam step on every listed tie, a proximal step towards 0, and a cut to [0, 1]. Changes tie, first, second.

    `error` (n, c) is the gradient of the loss by the sum that each labelled node averages, `mean` (n, c) that average,
    and `logits` (n, c) what is averaged. Returns the squared distance of `tie` from `reported` afterwards.
    """
    width = logits.shape[1]
    forget_1, forget_2 = 1.0 - 0.9**turn, 1.0 - 0.999**turn
    total = 0.0
    for k in range(len(u)):
        i, j, a = u[k], v[k], float(tie[k])
        slope = 0.0
        if labelled[i]:
            for c in range(width):
                slope += error[i, c] * (logits[j, c] - mean[i, c])
        if labelled[j]:
            for c in range(width):
                slope += error[j, c] * (logits[i, c] - mean[j, c])
        if distance > 0.0:
            slope += fidelity * (a - reported[k]) / distance
        m = 0.9 * first[k] + 0.1 * slope
        s = 0.999 * second[k] + 0.001 * slope * slope
        first[k], second[k] = m, s
        a -= rate * (m / forget_1) / (math.sqrt(s / forget_2) + 1e-12)
        a = min(max(a - shrink, 0.0), 1.0)
        tie[k] = a
        total += (a - reported[k]) ** 2
    return total


def warm_up() -> None:
    """Compile both kernels for the types that the estimator uses."""
    ids, tie, rows = np.array([0], np.int32), np.array([0.5], np.float32), np.zeros((2, 2))
    gather(ids, ids + np.int32(1), tie, rows)
    step(
        ids, ids + np.int32(1), tie, tie.copy(), tie.copy(), tie.copy(), rows, rows, rows, np.ones(2, np.bool_),
        0.1, 0.1, 0.1, 0.1, 1,
    )  # fmt: skip
