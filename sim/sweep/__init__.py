"""Many runs: a sweep file names a scenario and what varies; runs are resumable and end in paired statistics.

`plan` reads the file, `store` keeps a folder a run, `executor` and `ray_engine` carry runs out, `results`, `summary`
and `contrasts` make the tables, and `run_sweep` does all of it. Names load lazily: a worker process imports no more
than it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.sweep.conduct import SweepResult, run_sweep
    from sim.sweep.plan import Plan, read_plan

__all__ = ["Plan", "SweepResult", "read_plan", "run_sweep"]

_HOMES = {
    "Plan": "sim.sweep.plan",
    "read_plan": "sim.sweep.plan",
    "SweepResult": "sim.sweep.conduct",
    "run_sweep": "sim.sweep.conduct",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sim.sweep' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
