"""Graphwarden: agent-based federated simulation of private, poisoning-resilient graph learning.

`sim.run("scenario.yaml")` runs a scenario and returns a `Result`; names load lazily, so importing `sim` is instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.result import Result
    from sim.runner import run
    from sim.scenario import load_scenario

__all__ = ["Result", "__version__", "load_scenario", "run"]
__version__ = "0.1.0"

_HOMES = {
    "run": ("sim.runner", "run"),
    "load_scenario": ("sim.scenario", "load_scenario"),
    "Result": ("sim.result", "Result"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    import importlib

    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
