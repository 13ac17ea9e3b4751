"""The report of a sweep: each headline column by point with its interval, and the differences from the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from sim.kernel.errors import InputError
from sim.report.drawing import Album
from sim.report.page import table, write_page
from sim.sweep.closing import HEADLINES, cell

Cells = dict[tuple[Any, Any], Any]


def page(folder: Path) -> Path:
    """Figures and page of a sweep's folder."""
    summary = pd.read_csv(folder / "summary.csv")
    if summary.empty:
        raise InputError(f"{folder}: no run is finished here yet")
    facts = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    runs = pd.read_csv(folder / "runs.csv")
    cells: Cells = {(row["point"], row["metric"]): row for row in summary.to_dict("records")}
    shown = [(name, title) for name, title in HEADLINES if (summary["metric"] == name).any()]
    points = [point for point in facts["points"] if any((point, name) in cells for name, _ in shown)]
    album = Album(folder)
    for name, title in shown:
        _draw(album, summary, facts, points, cells, name, title)
    means = [[point, *(cell(cells, point, name) for name, _ in shown)] for point in points]
    tables = [table("Means over seeds", ["point", *(title for _, title in shown)], means, INTERVALS)]
    tables += _differences(folder)
    failed = runs[runs["state"] != "finished"]
    if len(failed):
        columns = ["point", "seed", "state", "stage", "cause"]
        lines = [["-" if pd.isna(row[c]) else str(row[c]) for c in columns] for row in failed.to_dict("records")]
        tables.append(table("Runs without a result", columns, lines))
    return write_page(
        folder,
        title=facts["name"],
        subtitle=f"{len(facts['points'])} points, {len(facts['seeds'])} seeds; last round of each run",
        notes=[],
        tables=tables,
        figures=album.figures,
        source_title="Sweep",
        source=json.dumps(facts, indent=2),
    )


P_VALUES = {
    "p_t_holm": "p (t)",
    "p_wilcoxon_holm": "p (Wilcoxon)",
    "p_equivalence_holm": "p (equivalence)",
}
INTERVALS = "± is half of the 95 % Student interval; brackets are a 95 % bootstrap interval of a ratio of means."


def _draw(
    album: Album, summary: pd.DataFrame, facts: dict[str, Any], points: list[str], cells: Cells, name: str, title: str
) -> None:
    rows = [cells[point, name] for point in points if (point, name) in cells]
    axis = facts["axes"][0] if len(facts["axes"]) == 1 else None
    numeric = axis is not None and pd.api.types.is_numeric_dtype(summary[axis])
    middle = [row["mean"] for row in rows]
    arms = [[row["mean"] - _end(row, "low") for row in rows], [_end(row, "high") - row["mean"] for row in rows]]
    with album.figure(name, title[0].upper() + title[1:], INTERVALS if name != "gain_retained" else BOOTSTRAP) as axes:
        style = {"fmt": "o", "capsize": 3}
        if numeric and axis is not None:
            axes.errorbar([row[axis] for row in rows], middle, yerr=arms, linestyle="-", **style)
            axes.set(xlabel=axis, ylabel=title)
            return
        places = list(range(len(rows)))[::-1]
        axes.errorbar(middle, places, xerr=arms, **style)
        axes.set_yticks(places, [str(row["point"]) for row in rows])
        axes.set(xlabel=title, ylim=(-0.5, len(rows) - 0.5))


BOOTSTRAP = "Ratio of means over seeds, with a 95 % bootstrap interval over whole seeds."


def _end(row: dict[str, Any], which: str) -> float:
    """An end of the interval: Student's, else the bootstrap's, else the mean itself."""
    for kind in ("student", "bootstrap"):
        if pd.notna(row[f"{kind}_{which}"]):
            return float(row[f"{kind}_{which}"])
    return float(row["mean"])


def _differences(folder: Path) -> list[dict[str, Any]]:
    file = folder / "contrasts.csv"
    if not file.exists():
        return []
    held = pd.read_csv(file)
    titles = dict(HEADLINES)
    rows = []
    for row in held[held["metric"].isin(list(titles))].to_dict("records"):
        kind = "student" if pd.notna(row["student_low"]) else "bootstrap"
        ends = (row[f"{kind}_low"], row[f"{kind}_high"])
        interval = f"[{ends[0]:+.3f}, {ends[1]:+.3f}]" if pd.notna(ends[0]) else "-"
        p = [f"{row[name]:.2g}" if pd.notna(row[name]) else "-" for name in P_VALUES]
        difference = f"{row['difference']:+.3f}"
        rows.append([row["point"], row["reference"], titles[row["metric"]], difference, interval, *p])
    columns = ["point", "reference", "column", "difference", "95 % interval", *P_VALUES.values()]
    caption = "Paired by seed; p-values are Holm-corrected over the points of one column. A large p shows no equality."
    return [table("Differences from the reference", columns, rows, caption)] if rows else []
