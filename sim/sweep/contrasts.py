"""`contrasts.csv`: every point against its reference, seed by seed.

Runs of two points with the same seed share split, honest noise, placement and network draws wherever those do not
depend on what varies, so their differences are paired.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sim.records import table
from sim.sweep.plan import Plan
from sim.sweep.results import last_rounds
from sim.sweep.schema import METRICS
from sim.sweep.statistics import (
    Interval,
    bootstrap_interval,
    effect_size,
    equivalence,
    gain_ratio,
    holm,
    paired_t,
    student_interval,
    wilcoxon,
)
from sim.sweep.summary import GAIN

COLUMNS = (
    "metric",
    "point",
    "reference",
    "n",
    "difference",
    "student_low",
    "student_high",
    "bootstrap_low",
    "bootstrap_high",
    "t",
    "p_t",
    "p_t_holm",
    "wilcoxon",
    "p_wilcoxon",
    "p_wilcoxon_holm",
    "effect_size",
    "margin",
    "p_equivalence",
    "p_equivalence_holm",
)
Row = dict[str, Any]


def contrast(plan: Plan, rows: pd.DataFrame) -> list[Row]:
    """One row a metric and point; Holm's correction runs over the points of one metric."""
    last = last_rounds(rows)
    made: list[Row] = []
    for metric in METRICS:
        family = []
        for point, reference in plan.references.items():
            if point not in last or reference not in last:
                continue
            found = (
                _gains(last, point, reference)
                if metric == "gain_retained"
                else _compare(plan, last, point, reference, metric)
            )
            if found is not None:
                family.append({"metric": metric, "point": point, "reference": reference, **found})
        if all(row.get("student_low") == row.get("student_high") == row["difference"] == 0 for row in family):
            family = [row for row in family if row.get("margin") is not None]  # nothing varies: nothing to tell
        for p in ("p_t", "p_wilcoxon", "p_equivalence"):
            for row, adjusted in zip(family, holm([row.get(p) for row in family])):
                row[f"{p}_holm"] = adjusted
        made += family
    return made


def as_csv(made: list[Row]) -> str:
    """The contrasts as CSV text."""
    return table(made, list(COLUMNS))


def _compare(plan: Plan, last: dict[str, pd.DataFrame], point: str, reference: str, metric: str) -> Row | None:
    both = pd.concat([last[point][metric], last[reference][metric]], axis=1, join="inner").dropna()
    values = both.to_numpy(dtype=np.float64)
    if not len(values) or not np.isfinite(values).all():
        return None
    differences = values[:, 0] - values[:, 1]
    t, signed_rank = paired_t(differences), wilcoxon(differences)
    margin = plan.equivalence.get(metric)
    return {
        "n": len(differences),
        "difference": float(differences.mean()),
        **_ends("student", student_interval(differences)),
        **_ends("bootstrap", bootstrap_interval([differences])),
        "t": t.statistic,
        "p_t": t.p,
        "wilcoxon": signed_rank.statistic,
        "p_wilcoxon": signed_rank.p,
        "effect_size": effect_size(differences),
        "margin": margin,
        "p_equivalence": None if margin is None else equivalence(differences, margin),
    }


def _gains(last: dict[str, pd.DataFrame], point: str, reference: str) -> Row | None:
    """Difference of two ratios of means, with a paired bootstrap interval and no test."""
    both = pd.concat([last[point][list(GAIN)], last[reference][list(GAIN)]], axis=1, join="inner").dropna()
    if both.empty:
        return None
    arrays = list(both.to_numpy(dtype=np.float64).T)

    def difference(*means: np.ndarray) -> np.ndarray:
        return gain_ratio(*means[:3]) - gain_ratio(*means[3:])

    value = float(difference(*(a.mean() for a in arrays)))
    if np.isnan(value):
        return None
    return {"n": len(both), "difference": value, **_ends("bootstrap", bootstrap_interval(arrays, difference))}


def _ends(name: str, interval: Interval) -> Row:
    return {f"{name}_low": interval.low, f"{name}_high": interval.high}
