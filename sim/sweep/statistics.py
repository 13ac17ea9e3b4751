"""The statistics of a sweep, each a small function over plain arrays. None stands for a number that does not exist."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
RESAMPLES = 10_000


class Interval(NamedTuple):
    """Lower and upper end; None when there is no interval."""

    low: float | None
    high: float | None


NONE = Interval(None, None)


def student_interval(values: np.ndarray, level: float = LEVEL) -> Interval:
    """Mean -+ t(n - 1) * s / sqrt(n); none for fewer than two values or a value that is not finite."""
    n = len(values)
    if n < 2 or not np.isfinite(values).all():
        return NONE
    from scipy.stats import t

    half = float(t.ppf(0.5 + level / 2, n - 1)) * float(values.std(ddof=1)) / np.sqrt(n)
    mean = float(values.mean())
    return Interval(mean - half, mean + half)


@functools.lru_cache(maxsize=8)
def resamples(n: int) -> np.ndarray:
    """(RESAMPLES, n) positions drawn with replacement: the same for every point and column, so resamples are paired."""
    from sim.kernel.randomness import Streams

    return Streams(0).generator("sweep/bootstrap", n).integers(0, n, (RESAMPLES, n))


def bootstrap_interval(
    arrays: Sequence[np.ndarray], statistic: Callable[..., np.ndarray] | None = None, level: float = LEVEL
) -> Interval:
    """Percentile interval over resampled runs. `statistic` maps the resampled means of each array, (RESAMPLES,) each,
    to one value a resample (default: the mean of the only array). Runs are resampled whole: arrays stay paired."""
    n = len(arrays[0])
    if n < 2 or not all(np.isfinite(a).all() for a in arrays):
        return NONE
    means = [a[resamples(n)].mean(axis=1) for a in arrays]
    values = means[0] if statistic is None else statistic(*means)
    values = values[~np.isnan(values)]  # a ratio of means that often lacks a denominator has no interval
    if len(values) < RESAMPLES * (0.5 + level / 2):
        return NONE
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Interval(float(low), float(high))


def gain_ratio(test: np.ndarray, no_edges: np.ndarray, true_graph: np.ndarray) -> np.ndarray:
    """(mean test - mean no edges) / (mean true graph - mean no edges), elementwise over means; NaN where the
    denominator is under `sim.anchors.LEAST_GAIN`, as for a single run."""
    from sim.anchors import LEAST_GAIN

    test, no_edges, true_graph = (np.asarray(a, dtype=np.float64) for a in (test, no_edges, true_graph))
    gain = true_graph - no_edges
    return np.where(gain >= LEAST_GAIN, (test - no_edges) / np.where(gain >= LEAST_GAIN, gain, 1.0), np.nan)


class Statistic(NamedTuple):
    """A test statistic and its two-sided p-value; None when undefined."""

    statistic: float | None
    p: float | None


def paired_t(differences: np.ndarray) -> Statistic:
    """Student's paired t. All differences 0: t = 0, p = 1. All equal but not 0: undefined (no spread to judge by)."""
    n, mean = len(differences), float(differences.mean()) if len(differences) else 0.0
    if n < 2:
        return Statistic(None, None)
    if constant(differences):
        return Statistic(0.0, 1.0) if differences[0] == 0 else Statistic(None, None)
    from scipy.stats import t

    statistic = mean / (float(differences.std(ddof=1)) / np.sqrt(n))
    return Statistic(float(statistic), float(2 * t.sf(abs(statistic), n - 1)))


def wilcoxon(differences: np.ndarray) -> Statistic:
    """Wilcoxon's signed-rank test, exact for any n and with ties: zeros dropped, mid-ranks, all 2^n signs counted.

    The statistic is the sum of the positive ranks. With 5 seeds p cannot fall below 0.0625.
    """
    held = np.asarray(differences, dtype=np.float64)
    if len(held) < 2:
        return Statistic(None, None)
    held = held[held != 0]
    if not len(held):
        return Statistic(0.0, 1.0)
    from scipy.stats import rankdata

    doubled = np.rint(2 * rankdata(np.abs(held))).astype(np.int64)  # mid-ranks are halves: whole when doubled
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled:  # ways[s]: share of the sign patterns so far whose positive ranks add to s
        moved = np.zeros_like(ways)
        moved[rank:] = ways[:-rank]
        ways = (ways + moved) / 2
    positive = int(doubled[held > 0].sum())
    tails = ways[: positive + 1].sum(), ways[positive:].sum()
    return Statistic(positive / 2, float(min(1.0, 2 * min(tails))))


def effect_size(differences: np.ndarray) -> float | None:
    """Cohen's d_z: mean of the differences over their standard deviation."""
    if len(differences) < 2:
        return None
    if constant(differences):
        return 0.0 if differences[0] == 0 else None
    return float(differences.mean() / differences.std(ddof=1))


def equivalence(differences: np.ndarray, margin: float) -> float | None:
    """Two one-sided t-tests (TOST, Schuirmann 1987): p-value for the mean difference lying inside -margin..margin.
    Equivalence is shown only when this is small; a large p of a difference shows nothing."""
    n = len(differences)
    if n < 2 or constant(differences):
        return None
    from scipy.stats import t

    error = float(differences.std(ddof=1)) / np.sqrt(n)
    mean = float(differences.mean())
    return float(max(t.sf((mean + margin) / error, n - 1), t.sf((margin - mean) / error, n - 1)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction over those that exist; the others stay None (Holm 1979)."""
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for step, (p, index) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - step) * p))
        adjusted[index] = largest
    return adjusted


def constant(values: np.ndarray) -> bool:
    """Whether all values are one and the same, up to rounding of the last digits."""
    return bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))
