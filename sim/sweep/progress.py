"""Progress over all runs of a sweep, with the time left: a bar on a terminal, a line a run elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

from sim.sweep.worker import Outcome

Tell = Callable[[Outcome, str], None]
"""Takes the outcome of a run and the run's name."""


class Clock:
    """Estimates the time left: the median of the runs done so far, which a worker's slow first run does not move."""

    def __init__(self, workers: int) -> None:
        self.workers, self.seconds = workers, list[float]()

    def left(self, outcome: Outcome, remaining: int) -> float | None:
        """Seconds left after this outcome with `remaining` runs to go, or None before the first run is done."""
        if outcome.status == "done":
            self.seconds.append(outcome.seconds)
        return median(self.seconds) * remaining / min(self.workers, max(remaining, 1)) if self.seconds else None


def span(seconds: float) -> str:
    """A time in words: `45 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def over_runs(total: int, workers: int, quiet: bool) -> Iterator[Tell]:
    """A context that hands out `tell(outcome, name)` for the runs to do."""
    if quiet:
        yield lambda outcome, name: None
    elif sys.stderr.isatty():
        with _bar(total, workers) as tell:
            yield tell
    else:
        yield _lines(total, workers)


def _lines(total: int, workers: int) -> Tell:
    clock, ended = Clock(workers), 0

    def tell(outcome: Outcome, name: str) -> None:
        nonlocal ended
        ended += 1
        left = clock.left(outcome, total - ended)
        ahead = f"; about {span(left)} left" if left is not None and ended < total else ""
        what = {
            "done": f"done in {outcome.seconds:.1f} s",
            "skipped": "done by another sweep",
            "failed": f"FAILED ({outcome.stage}): {outcome.cause.splitlines()[0] if outcome.cause else ''}",
        }.get(outcome.status, outcome.status)
        print(f"run {ended}/{total}: {name}: {what}{ahead}", file=sys.stderr, flush=True)

    return tell


@contextmanager
def _bar(total: int, workers: int) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("run {task.completed:.0f}/{task.total:.0f}"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task, clock, failed = bar.add_task("starting", total=total), Clock(workers), 0

        def tell(outcome: Outcome, name: str) -> None:
            nonlocal failed
            failed += outcome.status == "failed"
            ended = int(bar.tasks[0].completed) + 1
            left = clock.left(outcome, total - ended)
            words = f"about {span(left)} left" if left is not None else "under way"
            bar.update(task, completed=ended, description=f"{words}, {failed} failed" if failed else words)

        yield tell
