"""Tiny sweeps for the tests: a scenario of a second or less, and an engine that works in this process."""

from copy import deepcopy
from pathlib import Path

import yaml

from sim.sweep.worker import execute

SCENARIO = {
    "name": "tiny",
    "seed": 3,
    "rounds": 2,
    "graph": {"source": "synthetic", "nodes": 60, "dimensions": 30, "classes": 3},
    "privacy": {
        "features": {"kind": "piecewise", "epsilon": 1.0},
        "ties": {"kind": "verification-list", "epsilon": 5.0, "levels": 3},
    },
    "population": {"attackers": [{"name": "fakes", "count": 4, "targets": {"kind": "cyclic", "per_attacker": 3}}]},
    "server": {
        "suspicion": {"kind": "mean-gap"},
        "pruning": {"kind": "threshold", "gamma": 0.4},
        "denoising": {"hops": 2},
        "training": {"epochs": 4},
    },
    "anchors": "none",
}
SWEEP = {
    "scenario": "tiny.yaml",
    "seeds": 3,
    "axes": {"population.attackers.0.count": [0, 4]},
    "reference": "count=0",
}


def write(folder: Path, sweep: dict | str | None = None, **scenario) -> Path:
    """A scenario and a sweep file beside it; returns the sweep file."""
    data = deepcopy(SCENARIO)
    data.update(scenario)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    file = folder / "sweep.yaml"
    file.write_text(sweep if isinstance(sweep, str) else yaml.safe_dump(sweep or SWEEP, sort_keys=False))
    return file


class Here:
    """An engine without processes: each task in turn, in this one."""

    workers = 1

    def __init__(self, work=execute):
        self.work, self.seen = work, []

    def outcomes(self, tasks):
        for task in tasks:
            self.seen.append(task.key)
            yield self.work(task)
