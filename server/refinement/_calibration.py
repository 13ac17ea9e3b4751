"""Calibration: from similarity to a probability that a pair's bit is 1 (EdgeRefine, Algorithm 3 and its Appendix C.6).

All functions work on groups of pairs of like similarity (bins or narrow cells): `similarity` (g,) of each group, scaled
so that the greatest of all pairs is 1, and `counts` (g, 2), its pairs whose bit is 0 and 1. They return (g,)
probabilities. What is fitted is the *noisy* bit, as in the authors' code: the server has no other.
"""

from __future__ import annotations

import numpy as np

_EDGE = 1e-9
"""Similarities are kept this far inside (0, 1) where a logarithm is taken."""


def histogram(similarity: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Share of ones of each group; 0.5 where it has no pair."""
    pairs = counts.sum(axis=1)
    return np.where(pairs > 0, counts[:, 1] / np.maximum(pairs, 1), 0.5)


def simple(similarity: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The similarity divided by the greatest one."""
    return np.clip(similarity, 0.0, 1.0)


def isotonic(similarity: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The non-decreasing function of similarity closest to the bits in squared error (pool adjacent violators).

    A group without pairs takes the value of the group below it, and of the first one that has pairs if none is below.
    """
    pairs = counts.sum(axis=1)
    values: list[float] = []
    weights: list[int] = []
    members: list[int] = []
    held = np.flatnonzero(pairs)
    for group in held.tolist():
        value, weight, size = float(counts[group, 1]), int(pairs[group]), 1
        while values and values[-1] * weight >= value * weights[-1]:
            value, weight, size = value + values.pop(), weight + weights.pop(), size + members.pop()
        values.append(value)
        weights.append(weight)
        members.append(size)
    fitted = np.repeat(np.array(values) / np.array(weights), members)
    return fitted[np.maximum(np.searchsorted(held, np.arange(len(pairs)), side="right") - 1, 0)]


def beta(similarity: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Bayes' rule with a beta distribution of similarity for pairs whose bit is 1 and one for the others.

    Both are fitted by their moments; the prior is the share of ones. A set of pairs without spread, or none at all,
    leaves the prior.
    """
    from scipy.special import betaln

    inside = np.clip(similarity, _EDGE, 1 - _EDGE)
    totals = counts.sum(axis=0).astype(np.float64)
    prior = totals[1] / totals.sum()
    logs = []
    for bit in range(2):
        if totals[bit] == 0:
            return np.full(len(inside), prior)
        mean = counts[:, bit] @ inside / totals[bit]
        variance = counts[:, bit] @ (inside - mean) ** 2 / totals[bit]
        strength = mean * (1 - mean) / variance - 1 if variance > 0 else 0.0
        if strength <= 0:
            return np.full(len(inside), prior)
        a, b = mean * strength, (1 - mean) * strength
        logs.append((a - 1) * np.log(inside) + (b - 1) * np.log1p(-inside) - betaln(a, b))
    return sigmoid(np.log(prior) - np.log1p(-prior) + logs[1] - logs[0])


def temperature(similarity: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """sigmoid(logit(similarity) / T), with the one parameter T of least log loss on the bits, in e^-7..e^7."""
    from scipy.optimize import minimize_scalar

    inside = np.clip(similarity, _EDGE, 1 - _EDGE)
    score = np.log(inside) - np.log1p(-inside)

    def loss(log_temperature: float) -> float:
        scaled = score * np.exp(-log_temperature)
        return float(counts[:, 0] @ np.logaddexp(0.0, scaled) + counts[:, 1] @ np.logaddexp(0.0, -scaled))

    best = minimize_scalar(loss, bounds=(-7.0, 7.0), method="bounded", options={"xatol": 1e-10})
    return sigmoid(score * np.exp(-best.x))


def sigmoid(score: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-score), without overflow."""
    return np.where(score >= 0, 1.0, np.exp(-np.abs(score))) / (1.0 + np.exp(-np.abs(score)))


METHODS = {"histogram": histogram, "simple": simple, "isotonic": isotonic, "beta": beta, "temperature": temperature}
