"""What one run of a sweep does in a worker process. Importing this module is light; a run's own imports come later."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sim.sweep.store import Store

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Set to 1 before a worker starts: libraries read them when they are imported, and two runs must not share a core."""


@dataclass(frozen=True)
class Task:
    """A run to do, as plain data that crosses process borders. `wait`: for another sweep that holds the run."""

    key: str
    scenario: dict[str, Any]
    store: str
    plugins: str
    wait: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a task ended. `busy`: another sweep holds the run. `memory_mb`: resident memory of the worker afterwards."""

    key: str
    status: Literal["done", "skipped", "failed", "busy"]
    seconds: float = 0.0
    stage: str = ""
    cause: str = ""
    memory_mb: float | None = None


def settle() -> None:
    """Start of a worker process: leave Ctrl-C to the parent, and end when the parent does, however it ended."""
    import multiprocessing
    from multiprocessing.connection import wait

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            wait([parent.sentinel])
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def execute(task: Task) -> Outcome:
    """Do a run unless it is finished or held by another sweep. An error becomes a record, never an exception."""
    started = time.perf_counter()
    store = Store(task.store)
    with store.claim(task.key, task.wait) as ours:
        if not ours:
            return Outcome(task.key, "busy")
        if store.finished(task.key):
            return Outcome(task.key, "skipped")
        stage = _Stage()
        try:
            _play(task, store, stage)
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            store.record_failure(task.key, str(stage), cause, traceback.format_exc())
            return Outcome(task.key, "failed", time.perf_counter() - started, str(stage), cause, resident_mb())
        finally:
            gc.collect()
    return Outcome(task.key, "done", time.perf_counter() - started, memory_mb=resident_mb())


class _Stage:
    """Remembers what a run last said it was doing."""

    def __init__(self) -> None:
        self.told = "loading"

    def __call__(self, round: int, stage: str) -> None:
        self.told = f"round {round}: {stage}"

    def __str__(self) -> str:
        return self.told


def _play(task: Task, store: Store, stage: _Stage) -> None:
    from sim.kernel.component import add_plugin_folder
    from sim.kernel.errors import InputError
    from sim.runner import resume, run

    add_plugin_folder(task.plugins)
    folder = store.run(task.key)
    if store.interrupted(task.key):
        try:
            resume(folder, stage)
            return
        except InputError:  # a checkpoint that cannot be read: begin again
            stage.told = "loading"
    store.clear(task.key)
    from sim.scenario import load_scenario

    run(load_scenario(task.scenario), folder, stage)


def resident_mb() -> float | None:
    """Resident memory of this process now, in MB; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
