"""Two workers against one on eight equal runs of the quickstart on Cora (one round, no anchors): at least 1.8 times.

Run it on an otherwise idle machine with two cores or more: `python benchmarks/bench_sweep.py`. The time is that of the
whole sweep, the start of the workers included; the processor seconds beside it tell whether a miss is this program's
doing (they grow) or another one's (they do not). Ends with 1 when the target is missed.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import yaml

from sim.sweep import read_plan, run_sweep
from sim.sweep.executor import LocalEngine

RUNS, TARGET = 8, 1.8
SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "quickstart.yaml"


def seconds(workers: int, folder: Path) -> float:
    """Wall-clock seconds of the sweep into a fresh folder."""
    sweep = {"scenario": str(SCENARIO), "seeds": RUNS, "set": {"rounds": 1, "anchors": "none"}}
    file = folder / f"{workers}.yaml"
    file.write_text(yaml.safe_dump(sweep))
    start, spent = time.perf_counter(), processor()
    result = run_sweep(read_plan(file), folder / str(workers), LocalEngine(workers))
    took = time.perf_counter() - start
    if result.failures:
        raise SystemExit(f"a run failed: {result.failures[0]}")
    inner = sorted(outcome.seconds for outcome in result.outcomes.values())
    print(
        f"{workers} worker(s): {took:6.1f} s for {RUNS} runs, {processor() - spent:6.1f} s of processor time; "
        f"a run {inner[0]:.1f} to {inner[-1]:.1f} s",
        flush=True,
    )
    return took


def processor() -> float:
    """Processor seconds of all worker processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        one, two = seconds(1, Path(name)), seconds(2, Path(name))
    ratio = one / two
    print(f"two workers are {ratio:.2f} times as fast as one (target {TARGET})")
    return 0 if ratio >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
