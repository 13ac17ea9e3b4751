"""The same runs on a Ray cluster (extra `[ray]`). All nodes must see the sweep's folder under the same path."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sim
from sim.kernel.errors import InputError
from sim.sweep.executor import DIED
from sim.sweep.store import Store
from sim.sweep.worker import THREAD_VARIABLES, Outcome, Task, execute

NOT_SHARED = "the run left nothing in the sweep's folder: is that folder shared by all nodes, under the same path?"


class RayEngine:
    """One-CPU tasks on a Ray cluster: the one that is already connected, else RAY_ADDRESS's, else one on this machine.

    `workers` bounds how many runs are under way at once; by default as many as the cluster has CPUs.
    """

    def __init__(self, workers: int | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise InputError("--engine ray: Ray is not installed; pip install 'graphwarden[ray]'") from None
        self._ray: Any = ray
        self._ours, self._wanted = not ray.is_initialized(), workers
        self._connect()
        cpus = int(ray.cluster_resources().get("CPU", 1))
        self.workers = min(workers, cpus) if workers else cpus

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        address = os.environ.get("RAY_ADDRESS")
        ours = {"num_cpus": self._wanted, "include_dashboard": False}
        options: dict[str, Any] = {"address": address} if address else ours
        try:
            self._ray.init(log_to_driver=False, logging_level="ERROR", **options)
        except ConnectionError as error:
            raise InputError(f"--engine ray: no cluster at RAY_ADDRESS={address}: {error}") from None

    def outcomes(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Carry out every task; worker processes are reused between runs."""
        ray = self._ray
        self._connect()
        remote = ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": _environment()})(execute)
        waiting, flying = deque(tasks), dict[Any, Task]()
        try:
            while waiting or flying:
                while waiting and len(flying) < self.workers:
                    task = waiting.popleft()
                    flying[remote.remote(replace(task, store=str(Path(task.store).resolve())))] = task
                ended, _ = ray.wait(list(flying), num_returns=1)
                for reference in ended:
                    yield self._outcome(reference, flying.pop(reference))
        finally:
            for reference in flying:
                ray.cancel(reference, force=True)
            if self._ours:
                ray.shutdown()

    def _outcome(self, reference: Any, task: Task) -> Outcome:
        store = Store(task.store)
        try:
            outcome: Outcome = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            inner = getattr(error, "cause", None) or error
            crashed = isinstance(error, self._ray.exceptions.WorkerCrashedError)
            cause = DIED if crashed else f"{type(inner).__name__}: {inner}".splitlines()[0]
            store.record_failure(task.key, "worker", cause)
            return Outcome(task.key, "failed", stage="worker", cause=cause)
        if outcome.status in ("done", "skipped") and not store.finished(task.key):
            store.record_failure(task.key, "worker", NOT_SHARED)
            return Outcome(task.key, "failed", stage="worker", cause=NOT_SHARED)
        return outcome


def _environment() -> dict[str, str]:
    """What a worker on any node needs: one thread a library, this package on its path, and where the graphs are."""
    home = str(Path(sim.__file__).resolve().parent.parent)
    path = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    data = {"GRAPHWARDEN_DATA": os.environ["GRAPHWARDEN_DATA"]} if "GRAPHWARDEN_DATA" in os.environ else {}
    return {**dict.fromkeys(THREAD_VARIABLES, "1"), "PYTHONPATH": path, **data}
