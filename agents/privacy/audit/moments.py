"""Bias and variance against theory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.privacy.audit.bounds import POWER, normal_quantile
from agents.privacy.audit.epsilon import ALPHA
from agents.privacy.audit.rows import NO_VIOLATION, VIOLATES, AuditRow

ROUNDING = 1e-6
"""Relative error of float32 estimates that no test counts."""
RARE = -math.log(ALPHA / 10)
"""An outcome that is expected this often is missing altogether with probability ALPHA / 10."""


@dataclass
class Moments:
    """Running mean and spread of one statistic of many reports."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    size: float = 0.0  # sum of absolute values, the scale of rounding errors

    def add(self, values: np.ndarray) -> None:
        """Take in (k,) values."""
        values = values.astype(float)
        self.count += len(values)
        self.total += float(values.sum())
        self.squares += float((values**2).sum())
        self.size += float(np.abs(values).sum())

    @property
    def mean(self) -> float:
        """Sample mean."""
        return self.total / self.count

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return math.sqrt(max(0.0, self.squares / self.count - self.mean**2) / self.count)

    @property
    def slack(self) -> float:
        """What rounding may add to the difference from theory."""
        return ROUNDING * self.size / self.count


@dataclass(frozen=True)
class Expected:
    """One input: what its statistic should be on average, and what it was.

    `reach` is the farthest that a single value can lie from theory, 0 where far values are no part of the law. Where
    nearly all values are alike, as at a large epsilon, the few that are not may be missing from the sample, mean and
    standard error alike; so `RARE` of them are allowed for.
    """

    label: str
    theory: float
    seen: Moments
    reach: float = 0.0

    @property
    def slack(self) -> float:
        """What rounding, and rare outcomes, may add to the difference from theory."""
        return self.seen.slack + RARE * self.reach / self.seen.count

    @property
    def strain(self) -> float:
        """Distance from theory in standard errors, rounding and rare outcomes allowed for."""
        distance = max(0.0, abs(self.seen.mean - self.theory) - self.slack)
        return distance / self.seen.error if self.seen.error > 0 else (math.inf if distance > 0 else 0.0)


def compare(subject: str, quantity: str, cases: list[Expected], relative: bool) -> AuditRow:
    """A two-sided z-test of every case at ALPHA over the number of cases; reports the worst one.

    With `relative` the row shows values and a visible excess relative to theory (variance); else the difference and a
    visible difference (bias).
    """
    worst = max(cases, key=lambda case: case.strain)
    limit = normal_quantile(ALPHA / len(cases) / 2)
    visible = (limit + normal_quantile(1 - POWER)) * worst.seen.error + worst.slack
    claimed, measured = (worst.theory, worst.seen.mean) if relative else (0.0, worst.seen.mean - worst.theory)
    if relative:
        visible /= abs(worst.theory) or 1.0
    verdict = VIOLATES if worst.strain > limit else NO_VIOLATION
    return AuditRow(subject, quantity, worst.label, claimed, measured, worst.seen.count, visible, verdict)


def gather(draw: Callable[[int], np.ndarray], count: int, chunk: int) -> Moments:
    """Moments of `count` values that come in chunks."""
    moments = Moments()
    while moments.count < count:
        moments.add(draw(min(chunk, count - moments.count)))
    return moments
