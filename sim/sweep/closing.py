"""The closing table of a sweep: a line a point, with what a reader looks for first."""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

from sim.sweep.conduct import SweepResult

HEADLINES = (
    ("test_accuracy", "test accuracy"),
    ("gain_retained", "gain retained"),
    ("detection_auc", "detection AUC"),
    ("detection_recall", "attackers flagged"),
    ("detection_fpr", "honest flagged"),
    ("edge_f1", "edge F1"),
)


def closing(result: SweepResult) -> None:
    """Print means with 95 % Student half-widths (bootstrap intervals for ratios), differences, and where it all is."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    plan = result.plan
    cells = {(row["point"], row["metric"]): row for row in result.summary.to_dict("records")}
    shown = [(name, title) for name, title in HEADLINES if (result.summary["metric"] == name).any()]
    over = "mean over seeds, 95 % interval" if len(plan.seeds) > 1 else "one seed"
    grid = Table(title=f"{plan.name}: {over}", title_justify="left", box=None, pad_edge=False)
    grid.add_column("point")
    grid.add_column("runs", justify="right")
    for _, title in shown:
        grid.add_column(title, justify="right")
    if plan.references:
        grid.add_column("accuracy against its reference", justify="right")
    for point in plan.points:
        count = int(result.rounds.loc[result.rounds["point"] == point.name, "run"].nunique())
        line = [point.name, f"{count} of {len(plan.seeds)}", *(cell(cells, point.name, name) for name, _ in shown)]
        grid.add_row(*line, *([difference(result, point.name)] if plan.references else []))
    console.print(grid)
    if plan.references and len(plan.seeds) > 1:
        console.print("p: paired t, Holm-corrected over the points; a large p does not show that two points are equal")
    console.print(f"written to {result.directory}")


def cell(cells: dict[tuple[Any, Any], Any], point: str, metric: str) -> str:
    """`0.653 ± 0.012`, `0.69 [0.61, 0.75]`, or a dash."""
    row = cells.get((point, metric))
    if row is None:
        return "-"
    if pd.notna(row["student_low"]):
        return f"{row['mean']:.3f} ± {row['mean'] - row['student_low']:.3f}"
    if pd.notna(row["bootstrap_low"]):
        return f"{row['mean']:.3f} [{row['bootstrap_low']:.3f}, {row['bootstrap_high']:.3f}]"
    return f"{row['mean']:.3f}"


def difference(result: SweepResult, point: str) -> str:
    """`-0.021 ± 0.010, p 0.003` for test accuracy, or a dash for a reference."""
    found = result.contrasts.query("point == @point and metric == 'test_accuracy'")
    if found.empty:
        return "-"
    row = found.iloc[0]
    width = f" ± {row['difference'] - row['student_low']:.3f}" if pd.notna(row["student_low"]) else ""
    p = f", p {row['p_t_holm']:.2g}" if pd.notna(row["p_t_holm"]) else ""
    return f"{row['difference']:+.3f}{width}{p}"
