"""The executor seam: who carries out a sweep's runs. The default is a pool of processes on this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

from sim.sweep.store import Store
from sim.sweep.worker import THREAD_VARIABLES, Outcome, Task, execute, settle

DIED = "the worker process died (killed, or out of memory)"


class Engine(Protocol):
    """Anything that carries out tasks. Outcomes come in any order, one a task; ending the iteration ends the work."""

    workers: int

    def outcomes(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Carry out every task."""
        ...


class LocalEngine:
    """A pool of spawned processes, one thread each, used again from run to run. A worker that dies fails its own run
    and no other."""

    def __init__(self, workers: int | None = None, work: Callable[[Task], Outcome] = execute) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self.work = work

    def outcomes(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Carry out every task; a run whose worker dies twice, the second time alone, is recorded as failed."""
        with one_thread_each():
            waiting, lost = deque(tasks), list[Task]()
            while waiting:
                yield from self._shift(waiting, lost, min(self.workers, len(waiting)))
                while lost:  # who killed the pool? alone in a pool of its own, a run can only kill itself
                    alone, dead = deque([lost.pop()]), list[Task]()
                    yield from self._shift(alone, dead, 1)
                    for task in dead:
                        Store(task.store).record_failure(task.key, "worker", DIED)
                        yield Outcome(task.key, "failed", stage="worker", cause=DIED)

    def _shift(self, waiting: deque[Task], lost: list[Task], workers: int) -> Iterator[Outcome]:
        """Work with one pool until no task waits or it breaks; `lost` then holds the tasks that were under way."""
        before = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=settle)
        flying: dict[Future[Outcome], Task] = {}
        try:
            while (waiting or flying) and not lost:
                while waiting and len(flying) < workers:
                    try:
                        flying[pool.submit(self.work, waiting[0])] = waiting[0]
                    except BrokenProcessPool:
                        if not flying:
                            lost.append(waiting.popleft())
                        break
                    waiting.popleft()
                ended, _ = wait(flying, return_when=FIRST_COMPLETED)
                for future in ended:
                    task = flying.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        lost.append(task)
                    else:
                        yield outcome
                if lost:
                    lost.extend(flying.values())
                    flying.clear()
        finally:
            pool.shutdown(wait=not flying, cancel_futures=True)
            if flying:  # interrupted: do not wait for runs of minutes
                for process in set(multiprocessing.active_children()) - before:
                    process.terminate()
                    process.join(5)


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Child processes started inside begin with one thread a library."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def engine_named(name: str, workers: int | None) -> Engine:
    """The engine `local` or `ray`."""
    if name == "ray":
        from sim.sweep.ray_engine import RayEngine

        return RayEngine(workers)
    return LocalEngine(workers)
