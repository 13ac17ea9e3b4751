"""What a run gives back in Python: pandas tables with a repr that reads well in a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from sim.scenario import Scenario


@dataclass(frozen=True)
class Result:
    """`rounds`: a row a round (columns of `graphwarden list columns`); `groups`: a row a round and attacker group;
    `agents`: each agent's fate; `summary`: the last round and totals as a dict; `directory`: where it was written."""

    scenario: Scenario
    rounds: pd.DataFrame
    groups: pd.DataFrame
    agents: pd.DataFrame
    summary: dict[str, Any]
    directory: Path | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

    @classmethod
    def read(cls, directory: str | Path) -> Result:
        """The result of a finished run directory. Raises InputError when it holds none."""
        import json

        from sim.kernel.errors import InputError
        from sim.scenario import load_scenario

        path = Path(directory)
        if not (path / "summary.json").exists():
            raise InputError(f"{path}: no finished run here (summary.json is missing)")
        summary = json.loads((path / "summary.json").read_text(encoding="utf-8"))
        fates = path / "agents.parquet"
        return cls(
            load_scenario(path / "scenario.yaml"),
            pd.read_csv(path / "rounds.csv"),
            pd.read_csv(path / "groups.csv"),
            pd.read_parquet(fates) if fates.exists() else pd.DataFrame(),
            summary,
            path,
            tuple(summary.get("notes", ())),
        )

    def _headline(self) -> pd.DataFrame:
        wanted = [
            "round",
            "test_accuracy",
            "accuracy_no_edges",
            "accuracy_true_graph",
            "detection_auc",
            "edges",
            "edge_f1",
            "epsilon_max",
        ]
        return self.rounds[[c for c in wanted if c in self.rounds]].dropna(axis=1, how="all")

    def __repr__(self) -> str:
        return f"Result of {self.scenario.name!r}, seed {self.scenario.seed}\n{self._headline().to_string(index=False)}"

    def _repr_html_(self) -> str:
        from html import escape

        name, table = escape(self.scenario.name), self._headline().to_html(index=False)
        return f"<b>{name}</b>, seed {self.scenario.seed}{table}"
