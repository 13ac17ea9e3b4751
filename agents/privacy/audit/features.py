"""The audit of a feature mechanism, as a black box: only `perturb`, `rectify`, `spent` and `variance` are called."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from agents.privacy.audit.epsilon import Effort, audit_epsilon
from agents.privacy.audit.events import Observed
from agents.privacy.audit.moments import Expected, Moments, compare
from agents.privacy.audit.rows import NO_VIOLATION, VIOLATES, AuditRow
from agents.privacy.features import FeatureMechanism
from sim.kernel.randomness import Streams, digest64

CELLS = 2_000_000
"""True and reported cells held at once."""


class FeatureWorld:
    """Reports of many users who all hold the row `row` (1, d).

    Observed: the outputs on the sampled coordinates, whatever these are (when all coordinates hold the same value,
    which ones are sampled tells nothing); or with `watched` the output on that coordinate, absent included.

    With `rounds` > 1 every user reports so often, with noise that is memoized for the row.
    """

    def __init__(
        self, mechanism: FeatureMechanism, row: sparse.csr_array, label: str, streams: Streams,
        watched: int | None = None, rounds: int = 1,
    ) -> None:  # fmt: skip
        self.mechanism, self.row, self.label, self.streams = mechanism, row, label, streams
        self.watched, self.rounds = watched, rounds
        self._next, self._rows = 0, row
        self._epoch = digest64(row.toarray()) if rounds > 1 else 1
        self._chunk = max(1, CELLS // max(1, row.nnz, mechanism.sampled(row.shape[1])))

    def draw(self, count: int) -> Observed:
        parts = []
        for start in range(0, count, self._chunk):
            size = min(self._chunk, count - start)
            senders = self._next + np.arange(size)
            self._next += size
            parts.append(np.hstack([self._observe(self.report(senders)) for _ in range(self.rounds)]))
        return [np.vstack(parts) if len({part.shape[1] for part in parts}) == 1 else padded(parts)]

    def report(self, senders: np.ndarray) -> sparse.csr_array:
        """Reports of these users."""
        count = len(senders)
        if self._rows.shape[0] != count:
            self._rows = repeated(self.row, count)
        return self.mechanism.perturb(self._rows, senders, np.full(count, self._epoch, dtype=np.uint64), self.streams)

    def _observe(self, reports: sparse.csr_array) -> np.ndarray:
        lengths = np.diff(reports.indptr)
        if self.watched is not None:
            values = np.full((len(lengths), 1), np.nan)
            at = np.flatnonzero(reports.indices == self.watched)
            values[np.searchsorted(reports.indptr, at, side="right") - 1, 0] = reports.data[at]
            return values
        width = int(lengths.max(initial=0))
        if (lengths == width).all():
            return reports.data.reshape(len(lengths), width).astype(float)
        values = np.full((len(lengths), width), np.nan)
        values[np.arange(width)[None, :] < lengths[:, None]] = reports.data
        return values


def padded(parts: list[np.ndarray]) -> np.ndarray:
    """Stack parts of different widths, absent numbers as NaN."""
    width = max(part.shape[1] for part in parts)
    return np.vstack([np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=np.nan) for part in parts])


def repeated(row: sparse.csr_array, count: int) -> sparse.csr_array:
    """A row (1, d) as often as `count`."""
    indptr = np.arange(count + 1, dtype=np.int32) * row.nnz
    return sparse.csr_array(
        (np.tile(row.data, count), np.tile(row.indices, count), indptr), shape=(count, row.shape[1])
    )


def constant_row(value: float, dimensions: int) -> sparse.csr_array:
    """A row whose every coordinate holds `value`."""
    return sparse.csr_array(np.full((1, dimensions), value, dtype=np.float32))


def claim(mechanism: FeatureMechanism, dimensions: int) -> tuple[float, float]:
    """(epsilon, delta) that a mechanism is held to: the smaller one of its setting and of what it says it spends."""
    spent, delta = mechanism.spent(dimensions)
    return min(spent, getattr(mechanism, "epsilon", spent)), delta


def audit_features(
    mechanism: FeatureMechanism, dimensions: int, streams: Streams, effort: Effort | None = None
) -> list[AuditRow]:
    """All lines about one report of a mechanism on `dimensions` coordinates.

    Worlds: every coordinate 0, 1/2 or 1; and a single coordinate 0 or 1 among zeros, which shows a choice of
    coordinates that depends on the values.
    """
    effort = (effort or Effort()).scaled(max(1.0, mechanism.sampled(dimensions) / 2))
    subject = f"features: {mechanism.kind}"
    epsilon, delta = claim(mechanism, dimensions)
    whole: list = [
        FeatureWorld(mechanism, constant_row(value, dimensions), f"all {value:g}", streams.child(f"all {value}"))
        for value in (0.0, 0.5, 1.0)
    ]
    rows = [audit_budget(mechanism, dimensions), audit_epsilon(subject, whole, epsilon, delta, effort)]
    if dimensions > 1:
        empty: Any = sparse.csr_array((1, dimensions), dtype=np.float32)
        single: Any = sparse.coo_array((np.ones(1, np.float32), ([0], [0])), shape=(1, dimensions)).tocsr()
        watched: list = [
            FeatureWorld(mechanism, row, label, streams.child(label), watched=0)
            for row, label in ((empty, "one at 0"), (single, "one at 1"))
        ]
        small = Effort(effort.pilot // 4, effort.most // 20, effort.chunk)
        rows.append(audit_epsilon(subject, watched, epsilon, delta, small, "epsilon, one coordinate"))
    return rows + audit_moments(mechanism, dimensions, streams, effort.pilot)


def audit_budget(mechanism: FeatureMechanism, dimensions: int) -> AuditRow:
    """Does the mechanism's own account keep to the budget that the scenario gave it?"""
    spent = mechanism.spent(dimensions)[0]
    budget = getattr(mechanism, "epsilon", spent)
    verdict = VIOLATES if spent > budget * (1 + 1e-6) else NO_VIOLATION
    return AuditRow(f"features: {mechanism.kind}", "budget", "spent / given", budget, spent, 0, 1e-6, verdict)


def audit_moments(mechanism: FeatureMechanism, dimensions: int, streams: Streams, count: int) -> list[AuditRow]:
    """Bias and variance of the rectified estimates, every coordinate alike, at several true values."""
    means, squares = [], []
    largest, share = largest_estimate(mechanism, dimensions), mechanism.sampled(dimensions) / dimensions
    for value in (0.0, 0.25, 0.5, 1.0):
        world = FeatureWorld(mechanism, constant_row(value, dimensions), "", streams.child(f"moments {value}"))
        mean, square = Moments(), Moments()
        while mean.count < count:
            size = min(world._chunk, count - mean.count)
            reports = mechanism.rectify(world.report(mean.count + np.arange(size)))
            mean.add(row_sums(reports, reports.data.astype(float)) / dimensions)
            square.add(row_sums(reports, reports.data.astype(float) ** 2) / dimensions)
        centred = value - mechanism.neutral
        theory = float(mechanism.variance(np.array([value]), dimensions)[0])
        means.append(Expected(f"all {value:g}", centred, mean, share * largest))
        squares.append(Expected(f"all {value:g}", theory + centred**2, square, share * largest**2))
    subject = f"features: {mechanism.kind}"
    return [compare(subject, "bias", means, False), compare(subject, "mean square", squares, True)]


def largest_estimate(mechanism: FeatureMechanism, dimensions: int) -> float:
    """The largest magnitude of a rectified output; 0 for unbounded noise, which has no rare outcomes of its own."""
    ends = np.array(mechanism.output_range(dimensions), dtype=np.float32)
    if not np.isfinite(ends).all():
        return 0.0
    probe = sparse.csr_array((ends, [0, 0], [0, 1, 2]), shape=(2, dimensions))
    return float(np.abs(mechanism.rectify(probe).data).max())


def row_sums(reports: sparse.csr_array, values: np.ndarray) -> np.ndarray:
    """(k,) sums of the values stored in each row."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    if not math.isfinite(total[-1]):
        raise ValueError("a mechanism returned a value that is not finite")
    return np.add.reduceat(np.append(values, 0.0), reports.indptr[:-1]) * (np.diff(reports.indptr) > 0)
