"""Progress: a bar with round and stage on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[int, str], None]


@contextmanager
def rounds(total: int, quiet: bool) -> Iterator[Tell | None]:
    """A context that hands out `tell(round, stage)`, or None when `quiet`."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(total) as tell:
            yield tell
    else:
        yield _lines(total)


@contextmanager
def _bar(total: int) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("round {task.fields[round]}/{task.total}"), BarColumn(), TextColumn("{task.description:<22}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("loading", total=total, round=0)
        yield lambda round, stage: bar.update(task, completed=round - 1, round=round, description=stage)


def _lines(total: int) -> Tell:
    start, last = time.monotonic(), 0

    def tell(round: int, stage: str) -> None:
        nonlocal last
        if round != last:
            last = round
            print(f"round {round}/{total} after {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)

    return tell


@contextmanager
def stages(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A context that hands out `tell(stage)`: a spinner on a terminal, lines elsewhere, nothing when `quiet`."""
    if quiet:
        yield lambda stage: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield status.update
    else:
        yield lambda stage: print(f"now: {stage}", file=sys.stderr, flush=True)


def say_notes(notes: list[str]) -> None:
    """Notes for the user, on standard error."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
