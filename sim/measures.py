"""Measures that the observer writes into its rows: functions of arrays, without any run around them."""

from __future__ import annotations

import resource
import sys
from typing import Any

import numpy as np
from scipy import sparse


def ranking(positive: np.ndarray, score: np.ndarray) -> tuple[float | None, float | None]:
    """(AUC, average precision) of a score, or (None, None) when one class is missing."""
    if positive.all() or not positive.any():
        return None, None
    from sklearn.metrics import average_precision_score, roc_auc_score

    return float(roc_auc_score(positive, score)), float(average_precision_score(positive, score))


def degree_distance(published: np.ndarray, true: np.ndarray) -> float:
    """Total variation distance between two degree distributions over the same users."""
    size = int(max(published.max(initial=0), true.max(initial=0))) + 1
    shares = [np.bincount(degrees, minlength=size) / len(degrees) for degrees in (published, true)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def root_mean_square(estimate: Any, truth: sparse.csr_array, neutral: float) -> float:
    """RMS of (neutral + estimate - truth) over all entries; sparse estimates are never made dense."""
    cells = truth.shape[0] * truth.shape[1]
    if sparse.issparse(estimate):
        gap = sparse_difference(estimate, truth)
        total = (gap.data**2).sum() + 2 * neutral * gap.data.sum() + cells * neutral**2
        return float(np.sqrt(max(total, 0.0) / cells))
    total = 0.0
    for start in range(0, truth.shape[0], 1024):
        rows = slice(start, start + 1024)
        total += float(((estimate[rows].astype(np.float64) + neutral - truth[rows].toarray()) ** 2).sum())
    return float(np.sqrt(total / cells))


def sparse_difference(a: Any, b: Any) -> Any:
    """a - b in double precision, without making either dense."""
    return a.astype(np.float64) - b.astype(np.float64)


def peak_memory_mb() -> float:
    """Largest resident memory of this process so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024.0 * 1024.0 if sys.platform == "darwin" else 1024.0)


def mean(values: np.ndarray) -> float | None:
    """The mean, or None of nothing."""
    return float(values.mean()) if len(values) else None
