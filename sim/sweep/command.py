"""`graphwarden sweep`: what the command does around `run_sweep`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import typer

from sim.kernel.errors import InputError, Interrupted
from sim.progress import say_notes
from sim.sweep.closing import closing
from sim.sweep.conduct import Work, carry_out, conclude, prepare, title
from sim.sweep.executor import engine_named
from sim.sweep.plan import Plan, read_plan
from sim.sweep.progress import over_runs, span
from sim.sweep.worker import Outcome


def sweep(
    file: Path, out: Path | None, workers: int | None, engine: str, dry_run: bool, shard: str | None, quiet: bool
) -> None:
    """Run a sweep file and print its closing table. Leaves with 1 when a run failed and 130 when interrupted."""
    if workers is not None and workers < 1:
        raise InputError(f"--workers: found {workers}; allowed: a whole number >= 1")
    part = parse_shard(shard)
    plan = read_plan(file)
    if not quiet:
        say_notes(list(plan.notes))
    if dry_run:
        preview(plan, workers)
        return
    work = prepare(plan, out, part)
    try:
        result = conclude(work, _carry_out(work, workers, engine, quiet))
    except KeyboardInterrupt:
        told = f"interrupted: finished runs are in {work.store.folder}; the same command goes on with the rest"
        raise Interrupted(told) from None
    if not quiet:
        closing(result)
    for name, stage, cause in result.failures:
        print(f"failed: {name} ({stage}): {cause}", file=sys.stderr)
    if result.failures:
        raise typer.Exit(1)


def _carry_out(work: Work, workers: int | None, engine: str, quiet: bool) -> dict[str, Outcome]:
    if not quiet:
        print(f"{len(work.names)} runs, {len(work.tasks)} to do here", file=sys.stderr, flush=True)
    if not work.tasks:
        return {}
    chosen = engine_named(engine, workers)
    with over_runs(len(work.tasks), chosen.workers, quiet) as tell:
        return carry_out(work, chosen, tell)


def parse_shard(text: str | None) -> tuple[int, int] | None:
    """`3/16` -> (3, 16): the third of sixteen parts. Raises InputError."""
    if text is None:
        return None
    first, _, last = text.partition("/")
    if first.isdigit() and last.isdigit() and 1 <= int(first) <= int(last):
        return int(first), int(last)
    raise InputError(f"--shard: found {text!r}; expected K/N with 1 <= K <= N, as in 3/16")


def preview(plan: Plan, workers: int | None) -> None:
    """Print the points, the number of runs, and an estimate from the plan's first run, done here and now in memory."""
    import server.training  # noqa: F401 (what every worker imports once is not part of a run)
    import sim.engine  # noqa: F401
    from sim.runner import run

    runs = plan.runs()
    for point in plan.points:
        against = plan.references.get(point.name)
        print(f"  {point.name}" + (f"   (compared with {against})" if against else ""))
    seeds = ", ".join(map(str, plan.seeds))
    print(f"{len(plan.points)} points x {len(plan.seeds)} seeds ({seeds}) = {len(runs)} runs", flush=True)
    start = time.perf_counter()
    run(runs[0].scenario)
    seconds = time.perf_counter() - start
    used = min(workers or engine_named("local", None).workers, len(runs))
    total = seconds * -(-len(runs) // used)
    print(
        f"one run ({title(runs[0])}) took {span(seconds)}; all of them about {span(total)} "
        f"with {used} worker{'s' if used > 1 else ''}"
    )
