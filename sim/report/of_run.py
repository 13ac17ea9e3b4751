"""The report of one run: accuracy beside its anchors, detection, what the published graph consists of, budget, time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from sim.closing import _ACCURACY as ANCHORS
from sim.closing import accuracy, privacy, seconds, structure
from sim.kernel.errors import InputError
from sim.report.drawing import COLOURS, Album
from sim.report.page import table, write_page
from sim.sweep.results import read_rows


def page(folder: Path) -> Path:
    """Figures and page of a run's folder; works while the run is still going on."""
    rows = read_rows(folder / "rounds.csv")
    if rows.empty:
        raise InputError(f"{folder}: no round is finished here yet")
    last = {str(k): None if pd.isna(v) else v for k, v in rows.iloc[-1].to_dict().items()}
    album = Album(folder)
    _accuracy(album, rows, last)
    _detection(album, rows)
    _edges(album, rows)
    _budget(album, rows)
    stages = {n.removeprefix("seconds_"): float(rows[n].sum()) for n in map(str, rows) if n.startswith("seconds_")}
    _time(album, stages)
    sections = {
        "Accuracy on honest test users": accuracy(last),
        "Detection and structure": structure(last),
        "Reports and privacy": privacy(last),
        "Seconds, all rounds": seconds(stages),
    }
    scenario = (folder / "scenario.yaml").read_text(encoding="utf-8")
    return write_page(
        folder,
        title=folder.resolve().name,
        subtitle=f"{len(rows)} rounds, seed {last['seed']}; values are of the last round unless said otherwise",
        notes=_notes(folder),
        tables=[table(title, ["", ""], [list(line) for line in lines]) for title, lines in sections.items()],
        figures=album.figures,
        source_title="Scenario",
        source=scenario,
    )


def _notes(folder: Path) -> list[str]:
    import json

    file = folder / "summary.json"
    if not file.exists():
        return ["the run is not finished"]
    return list(json.loads(file.read_text(encoding="utf-8")).get("notes", []))


def _accuracy(album: Album, rows: pd.DataFrame, last: dict[str, Any]) -> None:
    bars = [(label, last[name]) for label, name in ANCHORS if last.get(name) is not None]
    if not bars:
        return
    caption = "Share of honest test users classified correctly; pruned and offline users count as users."
    with album.figure("accuracy", "Accuracy beside its anchors", caption) as axes:
        colours = [COLOURS[1] if label == "this run" else COLOURS[0] for label, _ in bars]
        names, values = [label for label, _ in bars], [value for _, value in bars]
        shown = axes.barh(names[::-1], values[::-1], color=colours[::-1])
        axes.bar_label(shown, fmt="{:.3f}", padding=3)
        axes.set(xlim=(0, 1.08), xlabel="test accuracy")


def _detection(album: Album, rows: pd.DataFrame) -> None:
    names = {"detection_auc": "AUC", "detection_recall": "attackers flagged", "detection_fpr": "honest users flagged"}
    caption = "AUC 0.5 is chance. Flagged users are pruned from the graph."
    _lines(album, rows, "detection", "Detection by round", caption, names, "share")


def _budget(album: Album, rows: pd.DataFrame) -> None:
    names = {"epsilon_max": "most by one user", "epsilon_ties": "ties", "epsilon_features": "features"}
    caption = "Budget spent so far by honest users, in the scenario's privacy unit."
    _lines(album, rows, "epsilon", "Privacy budget by round", caption, names, "epsilon")


def _lines(
    album: Album, rows: pd.DataFrame, file: str, title: str, caption: str, names: dict[str, str], unit: str
) -> None:
    held = {name: label for name, label in names.items() if rows[name].notna().any()}
    if not held:
        return
    with album.figure(file, title, caption) as axes:
        for name, label in held.items():
            axes.plot(rows["round"], rows[name].astype(float), marker="o", label=label)
        _rounds(axes, rows, unit)


def _rounds(axes: Any, rows: pd.DataFrame, unit: str) -> None:
    """Whole rounds from left to right, nothing below zero, the legend beside the drawing."""
    from matplotlib.ticker import MaxNLocator

    axes.set(xlabel="round", ylabel=unit, ylim=(0, None), xlim=(rows["round"].min() - 0.6, rows["round"].max() + 0.6))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _edges(album: Album, rows: pd.DataFrame) -> None:
    if not rows["edges"].notna().any():
        return
    caption = "Published ties of the hard edge set: three disjoint counts."
    with album.figure("edges", "What the published graph consists of", caption) as axes:
        bottom = pd.Series(0.0, index=rows.index)
        for name, label in (("true", "true"), ("false", "false"), ("attack", "of attackers")):
            height = rows[f"edges_{name}"].astype(float).fillna(0.0)
            axes.bar(rows["round"], height, bottom=bottom, label=label, width=0.6)
            bottom = bottom + height
        _rounds(axes, rows, "ties")


def _time(album: Album, stages: dict[str, float]) -> None:
    shown = sorted(((s, v) for s, v in stages.items() if s != "total" and v >= 0.005), key=lambda item: item[1])
    if not shown:
        return
    with album.figure("time", "Seconds by stage", "All rounds together.", height=2.8) as axes:
        axes.barh([name for name, _ in shown], [value for _, value in shown])
        axes.set(xlabel="seconds")
