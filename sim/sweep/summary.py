"""`summary.csv`: each column of the last round over a point's seeds, with two kinds of interval.

It holds nothing that differs from machine load to machine load: the same sweep gives the same bytes however it was run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sim.records import table
from sim.sweep.plan import Plan
from sim.sweep.results import axis_values, last_rounds
from sim.sweep.schema import METRICS
from sim.sweep.statistics import bootstrap_interval, gain_ratio, student_interval

GAIN = ("test_accuracy", "accuracy_no_edges", "accuracy_true_graph")
COLUMNS = (
    "point",
    "metric",
    "statistic",
    "n",
    "mean",
    "student_low",
    "student_high",
    "bootstrap_low",
    "bootstrap_high",
)


def summarise(plan: Plan, rows: pd.DataFrame) -> list[dict[str, Any]]:
    """One row a point and metric: means over the seeds that have a value; `gain_retained` is a ratio of means."""
    axes, last = axis_values(plan), last_rounds(rows)
    made = []
    for index, point in enumerate(plan.points):
        if point.name not in last:
            continue
        held = {axis: axes[axis][index] for axis in plan.axes}
        for metric in METRICS:
            row = _gain(last[point.name]) if metric == "gain_retained" else _mean(last[point.name][metric])
            if row is not None:
                made.append({**held, "point": point.name, "metric": metric, **row})
    return made


def as_csv(plan: Plan, made: list[dict[str, Any]]) -> str:
    """The summary as CSV text."""
    return table(made, [*plan.axes, *COLUMNS])


def numbers(column: pd.Series) -> np.ndarray:
    """The values that exist, as floats, in the order of the seeds."""
    return column.dropna().to_numpy(dtype=np.float64)


def _mean(column: pd.Series) -> dict[str, Any] | None:
    values = numbers(column)
    if not len(values):
        return None
    student, bootstrap = student_interval(values), bootstrap_interval([values])
    return _row("mean", len(values), float(values.mean()), student, bootstrap)


def gain_arrays(last: pd.DataFrame) -> list[np.ndarray]:
    """The three accuracies of `gain_retained` of the runs that have all of them."""
    whole = last[list(GAIN)].dropna()
    return [whole[name].to_numpy(dtype=np.float64) for name in GAIN]


def _gain(last: pd.DataFrame) -> dict[str, Any] | None:
    arrays = gain_arrays(last)
    if not len(arrays[0]):
        return None
    ratio = float(gain_ratio(*(a.mean() for a in arrays)))
    if np.isnan(ratio):
        return None
    return _row("ratio of means", len(arrays[0]), ratio, (None, None), bootstrap_interval(arrays, gain_ratio))


def _row(statistic: str, n: int, mean: float, student: Any, bootstrap: Any) -> dict[str, Any]:
    row = {"statistic": statistic, "n": n, "mean": mean}
    row |= dict(zip(("student_low", "student_high"), student))
    return row | dict(zip(("bootstrap_low", "bootstrap_high"), bootstrap))
