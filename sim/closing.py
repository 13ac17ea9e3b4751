"""The closing table of a run, in plain words."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from sim.result import Result


def closing(result: Result) -> None:
    """Print what the last round says: accuracy against the anchors, detection, pruning, budget, time."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    if result.rounds.empty:
        console.print("the observer was off: nothing was measured")
    else:
        row = {str(k): (None if v != v else v) for k, v in result.rounds.iloc[-1].to_dict().items()}
        for title, lines in (
            ("accuracy on honest test users", accuracy(row)),
            ("detection and structure", structure(row)),
            ("reports and privacy", privacy(row)),
            ("seconds, all rounds", seconds(result.summary["seconds"])),
        ):
            grid = Table(show_header=False, box=None, pad_edge=False)
            for name, value in lines:
                grid.add_row(f"  {name}", value)
            if grid.row_count:
                console.print(title, style="bold")
                console.print(grid)
    for note in result.notes:
        console.print(f"note: {note}", style="yellow")
    if result.directory is not None:
        console.print(f"written to {result.directory}")


def percent(value: Any) -> str:
    """A share as a percentage, or a dash where it does not exist."""
    return "-" if value is None else f"{100 * value:.1f} %"


_ACCURACY = (
    ("this run", "test_accuracy"),
    ("no ties at all", "accuracy_no_edges"),
    ("as many random ties", "accuracy_random_edges"),
    ("ties of similar features", "accuracy_knn"),
    ("public features and labels only", "accuracy_public_only"),
    ("private bits in coefficients only", "accuracy_fit_only"),
    ("attack, no defence", "accuracy_undefended"),
    ("attackers removed by name", "accuracy_oracle_pruned"),
    ("no attack", "accuracy_no_attack"),
    ("true graph, private features", "accuracy_true_graph"),
    ("true graph, clean features", "accuracy_clean"),
)


def accuracy(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Test accuracy beside its anchors."""
    for name, column in _ACCURACY:
        if row.get(column) is not None:
            yield name, percent(row[column])
    if row.get("gain_retained") is not None:
        yield "share of the graph's gain kept", percent(row["gain_retained"])


def structure(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Who was flagged, and what the published graph consists of."""
    if row["attackers"] and row.get("detection_auc") is not None:
        yield "suspicion ranks attackers above honest users", f"AUC {row['detection_auc']:.2f} (0.5 is chance)"
    if row["attackers"]:
        yield "attackers pruned", f"{int(row['pruned_attackers'])} of {int(row['attackers'])}"
    yield "honest users pruned", f"{int(row['pruned_honest'])} of {int(row['honest'])}"
    yield (
        "published ties",
        f"{int(row['edges']):,} = {int(row['edges_true']):,} true + {int(row['edges_false']):,} false"
        f" + {int(row['edges_attack']):,} of attackers",
    )
    if row.get("edge_f1") is not None:
        yield "quality of the ties", f"F1 {row['edge_f1']:.3f}"


def privacy(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Traffic and what it cost."""
    yield (
        "reports",
        f"{int(row['delivered']):,} of {int(row['sent']):,} in time, {int(row['late'])} late, {int(row['lost'])} lost,"
        f" {int(row['rejected'])} rejected",
    )
    yield (
        "epsilon spent, most by one honest user",
        f"{row['epsilon_max']:.3g} (ties {row['epsilon_ties']:.3g}, features {row['epsilon_features']:.3g})",
    )
    if row.get("delta"):
        yield "delta", f"{row['delta']:.2g}"


def seconds(stages: dict[str, float]) -> Iterator[tuple[str, str]]:
    """Time by stage, longest first."""
    for name, value in sorted(stages.items(), key=lambda item: -item[1]):
        if value >= 0.005:
            yield name, f"{value:.2f}"
