"""The bilateral edge posterior: how likely each mutual pair is a true tie.

Level table by deconvolution (`server.channel`), then prior odds from degrees, shared neighbours and label beliefs,
fitted by logistic regression against a contrast sample of non-mutual pairs, with the total posterior mass held at
its estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from server import _canonical
from server.attestation import mutual_pairs
from server.channel import Channel, deconvolve, level_counts
from server.evidence import Evidence, MutualPairs
from server.refinement import _posterior as kernels

SHARED_CUT = 0.05  # ties less likely than this do not count towards shared neighbours
BELIEF_SWEEPS = 6
CONTRAST = (40_000, 100_000)  # smallest and largest contrast sample


@dataclass(frozen=True)
class Fit:
    """Posteriors of the pairs, the estimated number of true ties, and the fitted log-odds slopes (b0 first)."""

    probability: np.ndarray
    ties: float
    slopes: np.ndarray


@dataclass(frozen=True)
class Contrast:
    """Sampled pairs that are not mutual; each stands for `weight` pairs."""

    u: np.ndarray
    v: np.ndarray
    weight: float


def canonical_users(evidence: Evidence, users: np.ndarray) -> np.ndarray:
    """The given users in an order that does not depend on their ids."""
    lists = evidence.lists
    colours = (np.where(evidence.train, evidence.labels, -1) + 2).astype(np.uint64)
    words = _canonical.fingerprints(lists.indptr, lists.indices, lists.data, colours, 2)
    return users[np.argsort(words[users], kind="stable")]


def draw_contrast(pairs: MutualPairs, users: np.ndarray, rng: np.random.Generator) -> Contrast:
    """Pairs of `users` that are not mutual: all of them where they are few, else a uniform sample with replacement."""
    count, mutual = len(users), len(pairs.u)
    others = count * (count - 1) // 2 - mutual
    wanted = int(min(max(2 * mutual, CONTRAST[0]), CONTRAST[1]))
    span = np.int64(max(int(users.max(initial=0)), 1) + 1)
    keys = pairs.u.astype(np.int64) * span + pairs.v
    if count * (count - 1) // 2 <= wanted:
        first, second = np.triu_indices(count, 1)
    else:
        draws = int(wanted * 1.1 * (others + mutual) / max(others, 1) * count / (count - 1)) + 100
        first, second = rng.integers(0, count, draws), rng.integers(0, count, draws)
    u, v = np.minimum(users[first], users[second]), np.maximum(users[first], users[second])
    sought = u * span + v
    slot = np.minimum(np.searchsorted(keys, sought), max(mutual - 1, 0))
    fresh = (u != v) & ((keys[slot] != sought) if mutual else True)
    u, v = u[fresh][:wanted].astype(np.int32), v[fresh][:wanted].astype(np.int32)
    return Contrast(u, v, others / max(len(u), 1))


def fit_posterior(
    pairs: MutualPairs,
    users: np.ndarray,
    channel: Channel,
    known_labels: np.ndarray | None,
    rounds: int,
    rng: np.random.Generator,
) -> Fit:
    """Posterior of every pair of `pairs` (all between `users`, which come in canonical order).

    `known_labels` (n,) holds class numbers and -1; None leaves the label covariate out.
    """
    n, count = int(users.max(initial=0)) + 1, len(users)
    in_all = count * (count - 1) / 2
    if not len(pairs.u):
        return Fit(np.zeros(0), 0.0, np.zeros(1))
    table = deconvolve(level_counts(pairs, channel.levels), channel, in_all)
    seen = np.log(np.maximum(table.likelihood_ratio, 1e-300))[pairs.x - 1, pairs.y - 1]
    unseen = np.log((1 - (1 - channel.flip) ** 2) / (1 - channel.false_positive**2))
    reach = (1 - channel.flip) ** 2
    mass = min(table.ties * reach, len(pairs.u) * (1 - 1e-6))
    contrast = draw_contrast(pairs, users, rng)
    graph = kernels.adjacency(n, pairs.u, pairs.v)
    labels, prior = class_prior(known_labels, n)
    k = 3 if len(prior) > 1 else 2
    slopes = np.zeros(k + 1)
    slopes[0] = np.log(table.ties / (in_all - table.ties))
    inside, outside = np.zeros((len(pairs.u), k)), np.zeros((len(contrast.u), k))
    chance = kernels.posterior(inside, seen, slopes)
    for _ in range(rounds):
        inside, outside = covariates(pairs, contrast, graph, chance, count, labels, prior, n)
        target = kernels.posterior(outside, np.full(len(contrast.u), unseen), slopes)
        slopes = logistic_steps(inside, chance, outside, target, contrast.weight, slopes)
        slopes[0] += kernels.shift_to_mass(inside, seen, slopes, mass)
        chance = kernels.posterior(inside, seen, slopes)
    return Fit(chance, table.ties, slopes)


def class_prior(known_labels: np.ndarray | None, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels renumbered over the classes that occur (-1 unknown), and the classes' shares; one class means no news."""
    if known_labels is None or not (known_labels >= 0).any():
        return np.full(n, -1), np.ones(1)
    present, renamed = np.unique(known_labels[known_labels >= 0], return_inverse=True)
    labels = np.full(len(known_labels), -1)
    labels[known_labels >= 0] = renamed
    return labels[:n], np.bincount(renamed, minlength=len(present)) / len(renamed)


def covariates(
    pairs: MutualPairs,
    contrast: Contrast,
    graph: tuple[np.ndarray, np.ndarray, np.ndarray],
    chance: np.ndarray,
    count: int,
    labels: np.ndarray,
    prior: np.ndarray,
    n: int,
) -> tuple[np.ndarray, np.ndarray]:
    """(degree, shared neighbours, labels) of mutual and contrast pairs, each pair's own posterior left out."""
    degree = np.bincount(pairs.u, chance, n) + np.bincount(pairs.v, chance, n)
    level = np.log(degree.sum() / count + 1)
    now, before = kernels.beliefs(*graph, chance, labels, prior, BELIEF_SWEEPS) if len(prior) > 1 else (None, None)

    def columns(u: np.ndarray, v: np.ndarray, own: np.ndarray, shared: np.ndarray) -> np.ndarray:
        ends = np.log(degree[u] - own + 1) + np.log(degree[v] - own + 1) - 2 * level
        found = [ends, np.log1p(shared / scale)]
        if now is not None:
            same = kernels.agreement(now, before, degree, labels, prior, u, v, own)
            found.append(np.log(0.25 + 0.75 * same))
        return np.column_stack(found)

    shared = kernels.shared_neighbours(*graph, chance, SHARED_CUT, pairs.u, pairs.v)
    scale = shared.mean() or 1.0
    inside = columns(pairs.u, pairs.v, chance, shared)
    shared = kernels.shared_neighbours(*graph, chance, SHARED_CUT, contrast.u, contrast.v)
    return inside, columns(contrast.u, contrast.v, np.zeros(len(contrast.u)), shared)


def logistic_steps(
    inside: np.ndarray,
    chance: np.ndarray,
    outside: np.ndarray,
    target: np.ndarray,
    weight: float,
    slopes: np.ndarray,
    steps: int = 3,
) -> np.ndarray:
    """A few Newton steps of the weighted soft-target logistic regression: ridge 1 on the slopes, steps clipped to
    1, slopes clipped to [0, 1] (a covariate may help or be ignored, never reversed)."""
    k = len(slopes)
    ridge = np.diag(np.r_[1e-9, np.ones(k - 1)])
    for _ in range(steps):
        gradient, lower = np.zeros(k), np.zeros((k, k))
        kernels.logistic_sums(inside, chance, 1.0, slopes, gradient, lower)
        kernels.logistic_sums(outside, target, weight, slopes, gradient, lower)
        hessian = lower + np.tril(lower, -1).T + ridge
        step = np.linalg.solve(hessian, gradient - ridge @ slopes)
        slopes = slopes + np.clip(step, -1.0, 1.0)
    return np.r_[slopes[0], np.clip(slopes[1:], 0.0, 1.0)]


def best_expected_f1(chance: np.ndarray, ties: float) -> tuple[float, float]:
    """(cut, F1): keeping pairs with posterior >= cut maximises the expected F1, 2 sum(kept) / (number kept + ties).

    Pairs with equal posteriors stand or fall together.
    """
    ranked = np.sort(chance)[::-1]
    f1 = 2 * np.cumsum(ranked) / (np.arange(1, len(ranked) + 1) + ties)
    ends = np.flatnonzero(np.r_[ranked[1:] < ranked[:-1], True])
    best = ends[np.argmax(f1[ends])]
    return float(ranked[best]), float(f1[best])


def warm_up() -> None:
    """Compile the kernels on a small graph."""
    rng = np.random.default_rng(0)
    row, column = np.nonzero((rng.random((40, 40)) < 0.4) & ~np.eye(40, dtype=bool))
    levels, indptr = np.ones(len(row), np.int8), np.searchsorted(row, np.arange(41))
    lists = sparse.csr_array((levels, column, indptr), shape=(40, 40))
    _canonical.warm_up()
    fit_posterior(mutual_pairs(lists), np.arange(40), Channel(3.0, 1), np.arange(40) % 3 - 1, 1, rng)
