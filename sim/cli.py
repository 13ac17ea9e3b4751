"""The `graphwarden` command. Heavy imports happen inside the commands, so that `--help` and `list` answer at once."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sim.kernel.errors import InputError, Interrupted, RunError

# Newer versions of typer carry a copy of click inside, so its base error is found through typer's own.
_UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

_INTERRUPTED = 130  # newer versions of typer return it, older ones raise Abort

app = typer.Typer(
    name="graphwarden",
    help="Agent-based federated simulation of private, poisoning-resilient graph learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario YAML file.")]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key: population.attackers.0.share=0.04")
]
Engine = Literal["local", "ray"]
Seed = Annotated[int | None, typer.Option("--seed", help="Override the seed.")]


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False) -> None:
    if version:
        from sim import __version__

        print(f"graphwarden {__version__}")
        raise typer.Exit


@app.command()
def run(
    scenario: Annotated[Path | None, typer.Argument(metavar="[SCENARIO]", help="A scenario YAML file.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="New run directory (default: runs/NAME-TIME).")] = None,
    settings: Settings = [],  # noqa: B006 (typer reads the default)
    seed: Seed = None,
    resume: Annotated[Path | None, typer.Option("--resume", metavar="DIR", help="Finish an interrupted run.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Run a scenario and write a run directory."""
    from sim import progress

    if (scenario is None) == (resume is None):
        raise InputError("run: name a SCENARIO to start, or --resume DIR to finish an interrupted run (one of them)")
    if resume is not None:
        if settings or seed is not None or out is not None:
            raise InputError("run --resume: takes no --set, --seed or --out; the run goes on as it was started")
        from sim.runner import resume as finish
        from sim.scenario import load_scenario

        rounds = load_scenario(resume / "scenario.yaml").rounds if (resume / "scenario.yaml").exists() else 0
        with resumable(resume), progress.rounds(rounds, quiet) as tell:
            result = finish(resume, tell)
    else:
        from sim.scenario import load

        loaded = load(scenario, overrides(settings, seed))  # type: ignore[arg-type]
        out = out or fresh_folder(loaded.scenario.name)
        if not quiet:
            from sim.advising import warnings

            progress.say_notes([*loaded.notes, *warnings(loaded.scenario)])
        with resumable(out), progress.rounds(loaded.scenario.rounds, quiet) as tell:
            from sim.runner import run as start

            result = start(loaded.scenario, out, tell)
    if not quiet:
        from sim.closing import closing

        closing(result)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A sweep YAML file: a scenario and what varies.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the sweep (default: runs/NAME).")] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Runs at a time (default: all processors).")] = None,
    engine: Annotated[Engine, typer.Option("--engine", help="Processes on this machine, or a Ray cluster.")] = "local",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the points and an estimate; keep nothing.")] = False,
    shard: Annotated[
        str | None, typer.Option("--shard", metavar="K/N", help="Only part K of N, for job arrays.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Run a sweep: many points and seeds, resumable; the same command goes on where it was stopped."""
    from sim.sweep.command import sweep as start

    start(file, out, workers, engine, dry_run, shard, quiet)


@app.command()
def tune(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A tune YAML file: a scenario and what is searched.")],
    out: Annotated[Path | None, typer.Option("--out", help="Output folder (default: runs/tune-NAME).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Search settings for the best validation accuracy (extra [tune])."""
    from sim.tune import command

    command(file, out, quiet)


@app.command()
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory or a sweep's folder.")]) -> None:
    """Draw figures and write one self-contained HTML page beside them (extra [report])."""
    from sim.report import write_report

    print(f"written to {write_report(folder)}")


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A run directory or a sweep's folder.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one of the same kind.")],
    everything: Annotated[bool, typer.Option("--all", help="Equal values and times too.")] = False,
) -> None:
    """Two runs or two sweeps side by side: what differs in the scenario, and the last round's values."""
    from sim.compare import show

    show(first, second, everything)


@app.command()
def validate(scenario: ScenarioFile, settings: Settings = [], seed: Seed = None) -> None:  # noqa: B006
    """Check a scenario file; every problem is named with its line."""
    from sim import progress
    from sim.scenario import load

    loaded = load(scenario, overrides(settings, seed))
    progress.say_notes(loaded.notes)
    print(f"{scenario}: valid ({loaded.scenario.name!r}, rounds: {loaded.scenario.rounds})")


@app.command()
def audit(
    scenario: ScenarioFile,
    settings: Settings = [],  # noqa: B006
    seed: Seed = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code tells.")] = False,
) -> int:
    """Test every privacy claim of a scenario with drawn reports; exit code 1 when one is violated."""
    from sim import progress
    from sim.scenario import load

    loaded = load(scenario, overrides(settings, seed))
    with progress.stages(quiet) as tell:
        from sim.audit import audit as start

        found = start(loaded.scenario, tell=tell)
    if not quiet:
        progress.say_notes(loaded.notes)
        print(found.text, end="")
    return found.exit_code


@app.command()
def advise(scenario: ScenarioFile, settings: Settings = [], seed: Seed = None) -> None:  # noqa: B006
    """Say what a scenario's budget buys, before any report is collected."""
    from sim import progress
    from sim.advise import show
    from sim.advising import advise_scenario
    from sim.scenario import load

    loaded = load(scenario, overrides(settings, seed))
    progress.say_notes(loaded.notes)
    show(advise_scenario(loaded.scenario))


@app.command("list")
def list_components(
    family: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="A family (server.suspicion), `graphs`, or `columns`.")
    ] = None,
) -> None:
    """List every component with its parameters and source; or the columns; or the graphs."""
    from sim.listing import show

    show(family)


@app.command()
def schema() -> None:
    """Print the scenario's JSON schema, for editors."""
    import json

    from sim.listing import scenario_schema

    print(json.dumps(scenario_schema(), indent=2))


def overrides(settings: list[str], seed: int | None) -> dict[str, Any]:
    """`--set` and `--seed` as a mapping from dotted path to value."""
    from sim.document import scalar

    made: dict[str, Any] = {}
    for item in settings:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set: found {item!r}; expected KEY=VALUE, as in server.pruning.kind=none")
        made[key.strip()] = scalar(value)
    if seed is not None:
        made["seed"] = seed
    return made


def fresh_folder(name: str) -> Path:
    """`runs/NAME-TIME`, with a number behind it when two runs start in one second."""
    from datetime import datetime

    plain = re.sub(r"[^\w.-]+", "-", name)[:80].strip("-.") or "run"  # a name is free text, and no path
    stem = Path("runs") / f"{plain}-{datetime.now():%Y%m%d-%H%M%S}"
    folder, number = stem, 1
    while folder.exists():
        number += 1
        folder = stem.with_name(f"{stem.name}-{number}")
    return folder


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Turn Ctrl-C into a message that says what is in the run's folder, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if (folder / "scenario.yaml").exists():
            told = f"interrupted: finished rounds are on disk; `graphwarden run --resume {folder}` goes on"
        else:
            told = "interrupted: nothing was written"
        raise Interrupted(told) from None


def main() -> None:
    """Entry point: exit code 0 done, 1 the run failed, 2 the input is wrong, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without the sign for plus-minus is no reason to fail
    sys.exit(guarded(sys.argv[1:]))


def guarded(arguments: list[str]) -> int:
    """Run the command line and turn every expected error into a message and an exit code."""
    from sim.clash import complain_about_clash

    try:
        complain_about_clash()
        code = app(args=arguments, prog_name="graphwarden", standalone_mode=False)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except RunError as error:
        print(error, file=sys.stderr)
        return 1
    except _UsageError as error:
        error.show()
        return 2
    except OSError as error:  # a full disk, a folder that may not be read or written, a path that is too long
        place = f"{error.filename}: " if error.filename else ""
        print(f"{place}{error.strerror or error}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"out of memory: {error or 'nothing more could be allocated'}", file=sys.stderr)
        return 1
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        return _INTERRUPTED
    except (typer.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
