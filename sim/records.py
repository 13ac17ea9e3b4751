"""The run directory: what a run leaves behind, written as it happens."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from sim.columns import GROUP, ROUND
from sim.kernel.component import Component, Section
from sim.kernel.errors import InputError, RunError
from sim.scenario import Scenario

_PACKAGES = (
    "graphwarden",
    "mesa",
    "simpy",
    "numpy",
    "scipy",
    "pandas",
    "torch",
    "torch_geometric",
    "numba",
    "scikit-learn",
)
CHECKPOINT = "checkpoint.pickle"


class RunDirectory:
    """`scenario.yaml`, `environment.json`, `rounds.csv`, `groups.csv`, `agents.parquet`, `summary.json`, and a
    checkpoint until the run is done. Whole files are written beside their place and renamed, so none is half there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: str | Path, scenario: Scenario) -> RunDirectory:
        """A new run directory. Raises InputError when the folder already holds a run or cannot be made."""
        path = Path(path)
        cls.refuse_taken(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path}: cannot make the output folder: {error.strerror}") from None
        made = cls(path)
        try:
            made._replace("scenario.yaml", scenario.to_yaml().encode("utf-8"))
        except OSError as error:
            raise InputError(f"{path}: cannot write into the output folder: {error.strerror}") from None
        made._keep_plugins(scenario)
        made.write("environment.json", json.dumps(environment(scenario.seed), indent=2) + "\n")
        made._start_table("rounds.csv", [c.name for c in ROUND])
        made._start_table("groups.csv", [c.name for c in GROUP])
        return made

    @staticmethod
    def refuse_taken(path: str | Path) -> None:
        """Raise InputError when a folder already holds a run."""
        path = Path(path)
        if (path / "sweep.json").exists():
            raise InputError(f"{path}: this folder already holds a sweep; choose another --out")
        if (path / "summary.json").exists():
            raise InputError(f"{path}: this folder already holds a finished run; choose another --out")
        if (path / "scenario.yaml").exists():
            raise InputError(f"{path}: this folder already holds a run; choose another --out, or `run --resume {path}`")

    def discard(self) -> None:
        """Remove what `create` wrote: the run turned out to be impossible before a round of it was played."""
        for name in ("scenario.yaml", "environment.json", "rounds.csv", "groups.csv"):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):  # something else lies there, too
            self.path.rmdir()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self.path}: cannot write: {error.strerror}; what is finished stays there, and "
                f"`graphwarden run --resume {self.path}` goes on"
            ) from error

    @classmethod
    def reopen(cls, path: str | Path) -> RunDirectory:
        """An interrupted run's directory. Raises InputError when there is nothing to resume."""
        path = Path(path)
        if not (path / "scenario.yaml").exists():
            raise InputError(f"{path}: no run to resume here (scenario.yaml is missing)")
        if (path / "summary.json").exists():
            raise InputError(f"{path}: this run is finished; there is nothing to resume")
        return cls(path)

    def _keep_plugins(self, scenario: Scenario) -> None:
        """Copy a user's own component modules beside the resolved scenario, so that it still finds them."""
        for component in components(scenario):
            module = sys.modules[type(component).__module__]
            source = Path(getattr(module, "__file__", None) or "")
            if ":" in component.kind and "." not in module.__name__ and source.suffix == ".py":
                self._replace(source.name, source.read_bytes())

    def _start_table(self, name: str, columns: list[str]) -> None:
        self.write(name, table([dict.fromkeys(columns)], columns).splitlines()[0] + "\n")

    def append(self, rows: list[dict[str, Any]], groups: list[dict[str, Any]]) -> None:
        """Add rows to the tables and force them to disk."""
        for name, new, columns in (("rounds.csv", rows, ROUND), ("groups.csv", groups, GROUP)):
            with self._writing(), open(self.path / name, "a", encoding="utf-8", newline="") as file:
                file.write(table(new, [c.name for c in columns], header=False))
                file.flush()
                os.fsync(file.fileno())

    def rewrite(self, rows: list[dict[str, Any]], groups: list[dict[str, Any]]) -> None:
        """Replace both tables: a resumed run starts from what its checkpoint knows."""
        self.write("rounds.csv", table(rows, [c.name for c in ROUND]))
        self.write("groups.csv", table(groups, [c.name for c in GROUP]))

    def save(self, state: dict[str, Any]) -> None:
        """Keep a checkpoint."""
        with self._writing():
            self._replace(CHECKPOINT, pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL))

    def saved(self) -> dict[str, Any] | None:
        """The last checkpoint, or None when the run was stopped before its first round ended. Only open run directories
        that you trust: a checkpoint is a pickle."""
        file = self.path / CHECKPOINT
        if not file.exists():
            return None
        try:
            return dict(pickle.loads(file.read_bytes()))
        except Exception as error:
            raise InputError(f"{file}: cannot be read ({error}); delete it to start the run again") from None

    def finish(self, summary: dict[str, Any], fates: Any) -> None:
        """Write the agents' fates and the summary, and drop the checkpoint."""
        if fates is not None:
            buffer = io.BytesIO()
            fates.to_parquet(buffer, index=False)
            with self._writing():
                self._replace("agents.parquet", buffer.getvalue())
        self.write("summary.json", json.dumps(summary, indent=2, allow_nan=False) + "\n")
        (self.path / CHECKPOINT).unlink(missing_ok=True)

    def write(self, name: str, text: str) -> None:
        """Write a whole text file at once. Raises RunError when it cannot be written."""
        with self._writing():
            self._replace(name, text.encode("utf-8"))

    def _replace(self, name: str, content: bytes) -> None:
        scratch = self.path / f".{name}.{os.getpid()}"
        try:
            scratch.write_bytes(content)
            os.replace(scratch, self.path / name)
        except OSError:
            scratch.unlink(missing_ok=True)
            raise


def components(value: Any) -> Iterator[Component]:
    """Every component inside a section, whatever its depth."""
    if isinstance(value, Component):
        yield value
    if isinstance(value, Section):
        for name in type(value).model_fields:
            yield from components(getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from components(item)


def table(rows: list[dict[str, Any]], columns: list[str], header: bool = True) -> str:
    """Rows as CSV text; None is empty, floats keep every digit."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if row.get(c) is None else row[c] for c in columns])
    return out.getvalue()


def environment(seed: int) -> dict[str, Any]:
    """Versions, seed, threads and host facts: what a reader needs to repeat a run."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "seed": seed,
        "threads": 1,
        "versions": versions,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "noise": "reproducible from the seed: for simulation, not for releasing real data",
    }
