"""Draw README's figure from two finished runs: `python tools/make_figures.py QUICKSTART_RUN ROBUST_RUN`.

The runs come from `graphwarden run scenarios/quickstart.yaml` and `graphwarden run scenarios/robust.yaml`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sim.result import Result

OUT = Path(__file__).resolve().parent.parent / "docs" / "figures" / "printed-and-robust.svg"


def draw(printed: Result, robust: Result, out: Path = OUT) -> None:
    """Published ties by kind, and test accuracy between its anchors, for both runs."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "graphwarden", "svg.fonttype": "none", "font.size": 10})
    import matplotlib.pyplot as plt

    figure, (ties, accuracy) = plt.subplots(1, 2, figsize=(9.5, 3.2), width_ratios=(1, 1.15))
    names = ["printed rules\n(quickstart)", "our defences\n(robust)"]
    rows = [run.rounds.iloc[-1] for run in (printed, robust)]
    bottom = [0.0, 0.0]
    for column, label, colour in (
        ("edges_true", "true", "#0072b2"),
        ("edges_false", "false", "#d55e00"),
        ("edges_attack", "of attackers", "#009e73"),
    ):
        values = [float(row[column]) for row in rows]
        ties.bar(names, values, bottom=bottom, label=label, color=colour, width=0.55)
        bottom = [b + v for b, v in zip(bottom, values)]
    ties.set_title("published ties", loc="left", fontweight="bold")
    ties.legend(frameon=False, loc="upper right")
    accuracy.bar(names, [100 * float(row.test_accuracy) for row in rows], color=["#777777", "#0072b2"], width=0.5)
    for place, row in enumerate(rows):
        accuracy.text(place, 100 * row.test_accuracy - 6, f"{100 * row.test_accuracy:.1f}", ha="center", color="white")
    for column, label in (
        ("accuracy_true_graph", "true graph,\nsame features"),
        ("accuracy_no_edges", "no ties at all"),
    ):
        level = 100 * float(rows[0][column])
        accuracy.axhline(level, color="#555555", linewidth=1, linestyle="--")
        accuracy.text(1.35, level + 1.5, f"{label}: {level:.1f}", color="#333333")
    accuracy.set(ylim=(0, 100), xlim=(-0.45, 2.1))
    accuracy.set_title("test accuracy, %", loc="left", fontweight="bold")
    for axes in (ties, accuracy):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    draw(*(Result.read(folder) for folder in sys.argv[1:3]))
    print(f"written to {OUT}")
