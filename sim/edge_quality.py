"""How good a method's tie probabilities are, against the truth and next to a predictor that knows only the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from server.bits import BIT_FORMS, share_of_ones
from server.estimates import PairEstimate
from server.evidence import Evidence
from server.refinement import Refinement
from sim.kernel.randomness import Streams

_BINS = 10
LARGEST = 100_000_000
"""Pairs beyond which probabilities are not judged: a table of them would not fit beside the run."""


@dataclass(frozen=True)
class Table:
    """Pairs by probability: `values` (g,) ascending and distinct, `pairs` (g,) how many, `ties` (g,) how many true."""

    values: np.ndarray
    pairs: np.ndarray
    ties: np.ndarray


def judge(
    refinement: Refinement,
    evidence: Evidence,
    kept: np.ndarray,
    streams: Streams,
    truth: sparse.csr_array,
    honest: np.ndarray,
) -> dict[str, float]:
    """`edge_quality` of what a refinement estimates from some evidence, over pairs of honest users, next to the
    constant "share of noisy bits"; empty for methods without probabilities, reports that they cannot use, and more than
    `LARGEST` pairs.

    `truth` (n, n) and `honest` (n,) bool are by server id; `kept` and `streams` are those of `Refinement.refine`.
    """
    if evidence.protocol.ties.form not in refinement.accepts or evidence.n * (evidence.n - 1) // 2 > LARGEST:
        return {}
    estimate = refinement.pair_estimate(evidence, kept, streams)
    if estimate is None:
        return {}
    share = share_of_ones(evidence, kept) if evidence.protocol.ties.form in BIT_FORMS else float("nan")
    return edge_quality(estimate, truth, None if np.isnan(share) else share, honest)


def edge_quality(
    estimate: PairEstimate,
    truth: sparse.csr_array,
    constant: float | None = None,
    among: np.ndarray | None = None,
) -> dict[str, float]:
    """Quality of the probabilities of all pairs (of users in the mask `among`, when given).

    `truth` is the symmetric (n, n) matrix of true ties under the ids that the estimate uses. Keys: `estimate_auc`,
    `estimate_ap` (average precision), `estimate_mae`, `estimate_brier`, `estimate_ece` (ten equal bins, the last one
    closed), `estimate_pmad` (mean |p - mean p|), and where the latter is not 0 `estimate_ece_pmad`, their ratio as
    EdgeRefine reports it. With `constant`, a probability given to every pair (the share of noisy bits, say), also
    `estimate_mae_constant`, `estimate_brier_constant` and `estimate_ece_constant`. AUC and average precision are left
    out when all pairs are ties or none is; everything when there is no pair.
    """
    table = tabulate(estimate, truth, among)
    out: dict[str, float] = {}
    total, positive = int(table.pairs.sum()), int(table.ties.sum())
    if total == 0:
        return out
    if 0 < positive < total:
        out["estimate_auc"], out["estimate_ap"] = ranking(table)
    out["estimate_mae"], out["estimate_brier"], out["estimate_ece"] = errors(table)
    mean = float(table.pairs @ table.values) / total
    out["estimate_pmad"] = float(table.pairs @ np.abs(table.values - mean)) / total
    if out["estimate_pmad"] > 0:
        out["estimate_ece_pmad"] = out["estimate_ece"] / out["estimate_pmad"]
    if constant is not None:
        flat = Table(np.array([constant]), np.array([total]), np.array([positive]))
        for name, value in zip(("mae", "brier", "ece"), errors(flat)):
            out[f"estimate_{name}_constant"] = value
    return out


def tabulate(estimate: PairEstimate, truth: sparse.csr_array, among: np.ndarray | None = None) -> Table:
    """Pairs and true ties by probability. Walks the upper triangle row by row: nothing n x n is made."""
    members, m = estimate.members, len(estimate.members)
    inside = np.ones(m, dtype=bool) if among is None else among[members]
    upper = sparse.csr_array(sparse.triu(truth[members][:, members], k=1))
    rows, columns = upper.nonzero()
    rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    told = inside[rows] & inside[columns]
    places = (rows * (2 * m - rows - 1) // 2 + columns - rows - 1)[told]
    if estimate.codes is None:
        chosen = estimate.values if inside.all() else estimate.values[_mask(inside)]
        values, pairs = np.unique(chosen, return_counts=True)
        ties = np.bincount(np.searchsorted(values, estimate.values[places]), minlength=len(values))
        return Table(values.astype(np.float64), pairs, ties)
    size = len(estimate.values)
    counts = np.zeros(size, dtype=np.int64)
    start = 0
    for i in range(m - 1):
        end = start + m - 1 - i
        if inside[i]:
            counts += np.bincount(estimate.codes[start:end][inside[i + 1 :]], minlength=size)
        start = end
    hits = np.bincount(estimate.codes[places], minlength=size)
    values, group = np.unique(estimate.values, return_inverse=True)
    pairs = np.bincount(group, weights=counts, minlength=len(values)).astype(np.int64)
    ties = np.bincount(group, weights=hits, minlength=len(values)).astype(np.int64)
    held = pairs > 0
    return Table(values[held].astype(np.float64), pairs[held], ties[held])


def ranking(table: Table) -> tuple[float, float]:
    """(area under the ROC curve, equal probabilities counting half; average precision over distinct thresholds)."""
    ties, others = table.ties.astype(np.float64), (table.pairs - table.ties).astype(np.float64)
    below = np.cumsum(others) - others
    area = float(ties @ (below + others / 2)) / (ties.sum() * others.sum())
    hits, named = np.cumsum(ties[::-1]), np.cumsum(table.pairs[::-1])
    return area, float((ties[::-1] * hits / named).sum() / ties.sum())


def errors(table: Table) -> tuple[float, float, float]:
    """(mean absolute error, Brier score, expected calibration error over ten equal bins)."""
    p, ties, others = table.values, table.ties, table.pairs - table.ties
    total = table.pairs.sum()
    absolute = float(ties @ (1 - p) + others @ p) / total
    squared = float(ties @ (1 - p) ** 2 + others @ p**2) / total
    bins = np.minimum((p * _BINS).astype(np.int64), _BINS - 1)
    gap = np.bincount(bins, weights=ties - table.pairs * p, minlength=_BINS)
    return absolute, squared, float(np.abs(gap).sum()) / total


def distinct_rows(u: np.ndarray, v: np.ndarray) -> int:
    """Users that are the lower end of a published tie, in the order of ids that the method saw: 1 for a star on the
    first user, however many ties it has."""
    return len(np.unique(np.minimum(u, v)))


def _mask(inside: np.ndarray) -> np.ndarray:
    """(m(m-1)/2,) bool: pairs of two members that are inside."""
    m = len(inside)
    return np.concatenate([inside[i + 1 :] & inside[i] for i in range(m - 1)] or [np.zeros(0, dtype=bool)])
