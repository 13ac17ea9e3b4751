"""`graphwarden tune FILE`: search a scenario's settings for the best validation accuracy (extra `[tune]`).

Test labels play no part: what is maximised is the mean validation accuracy of the last round over the seeds.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field, model_validator

from sim import document
from sim.kernel.component import Path as Keys
from sim.kernel.component import Problem, Section, build
from sim.kernel.errors import InputError
from sim.overrides import split
from sim.scenario import Scenario, load

Tell = Callable[[int, float, dict[str, Any]], None]
"""Takes a trial's number, its validation accuracy, and its settings."""


class Range(Section):
    """Where a key is searched: `low` to `high` (whole numbers if both are; log scale if `log`), or `choices`."""

    low: int | float | None = None
    high: int | float | None = None
    log: bool = False
    choices: list[Any] | None = None

    @model_validator(mode="after")
    def _one_kind_of_range(self) -> Range:
        if self.choices is not None:
            if self.low is not None or self.high is not None or self.log:
                raise ValueError("found `choices` beside `low`, `high` or `log`; allowed: one or the other")
            if not self.choices:
                raise ValueError("found an empty list of choices; allowed: at least one")
        elif self.low is None or self.high is None:
            raise ValueError("expected `low` and `high`, or `choices`")
        elif not self.low < self.high:
            raise ValueError(f"found low {self.low} and high {self.high}; allowed: low < high")
        elif self.log and self.low <= 0:
            raise ValueError(f"found low {self.low} on a log scale; allowed: low > 0")
        return self

    def extremes(self) -> list[Any]:
        """Values with which the scenario must be valid."""
        return self.choices if self.choices is not None else [self.low, self.high]

    def suggest(self, trial: Any, name: str) -> Any:
        """A value from an Optuna trial. Choices are suggested by position, so that they may be of any type."""
        if self.choices is not None:
            return self.choices[trial.suggest_categorical(name, list(range(len(self.choices))))]
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(name, self.low, self.high, log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


class TuneFile(Section):
    """A scenario, what is searched, for how many trials, and over which seeds each trial is judged."""

    scenario: str
    search: dict[str, Any]
    trials: int = Field(30, ge=1)
    seeds: list[int] = Field(default=[0, 1, 2], min_length=1)
    set: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Search:
    """A tune file, read and checked."""

    source: Path
    ranges: dict[str, Range]
    trials: int
    seeds: list[int]
    fixed: dict[str, Any]


def read_search(path: str | Path) -> Search:
    """Read a tune file. Raises InputError that lists its mistakes with their lines; the ends of every range are tried
    on the scenario, so a key that does not exist or a value out of bounds is found before the first trial."""
    paper = document.read(path)
    document.expect(paper, "tune")
    problems: list[Problem] = []
    file = build(TuneFile, paper.data, (), problems)
    ranges: dict[str, Range] = {}
    if file is not None and not problems:
        if not file.search:
            problems.append(Problem(("search",), "found nothing to search; allowed: at least one key"))
        for key, given in file.search.items():
            ranges[key] = build(Range, given, ("search", key), problems)
    if problems:
        raise InputError("\n".join(_at(paper, problem.path, problem.where(), problem.message) for problem in problems))
    source = Path(path).resolve().parent / file.scenario
    fixed = {"anchors": "none", **file.set}
    load(source, fixed)
    complaints = []
    for key, searched in ranges.items():
        for value in searched.extremes():
            try:
                load(source, {**fixed, key: value})
            except InputError as error:
                complaints.append(_at(paper, ("search", key), key, str(error).splitlines()[0].partition(": ")[2]))
                break
    if complaints:
        raise InputError("\n".join(complaints))
    return Search(source, ranges, file.trials, file.seeds, fixed)


def _at(paper: document.Document, where: Keys, key: str, message: str) -> str:
    line = paper.line(where)
    return f"{paper.name}:{line}: {key}: {message}" if line else f"{paper.name}: {key}: {message}"


def tune(search: Search, tell: Tell | None = None) -> tuple[Scenario, pd.DataFrame]:
    """(best scenario, a row a trial). Seeded by the scenario's own seed, so a search gives the same trials again.

    Raises InputError when Optuna is not installed or no trial could be judged.
    """
    try:
        import optuna
    except ImportError:
        raise InputError("tune: Optuna is not installed; pip install 'graphwarden[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    base = load(search.source, search.fixed).scenario
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=base.seed % 2**32))
    rows = []
    for number in range(1, search.trials + 1):
        trial = study.ask()
        settings = {key: searched.suggest(trial, key) for key, searched in search.ranges.items()}
        value = judge(search, settings)
        study.tell(trial, value if math.isfinite(value) else None, state=_state(optuna, value))
        rows.append({"trial": number, **settings, "validation_accuracy": value})
        if tell is not None:
            tell(number, value, settings)
    best = best_trial(rows)
    if best is None:
        raise InputError(f"{search.source}: no trial has a validation accuracy; does the scenario train a model?")
    chosen = {key: best[key] for key in search.ranges}
    restored = {key: value for key, value in search.fixed.items() if key != "anchors" or value != "none"}
    return load(search.source, {**restored, **chosen}).scenario, pd.DataFrame(rows)


def best_trial(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The first of the best trials, or None when no trial has a validation accuracy."""
    judged = [row for row in rows if math.isfinite(row["validation_accuracy"])]
    return max(judged, key=lambda row: row["validation_accuracy"], default=None)


def judge(search: Search, settings: dict[str, Any]) -> float:
    """Mean validation accuracy of the last round over the seeds; NaN when a run has none or the settings do not fit."""
    from sim.runner import run

    values: list[float] = []
    for seed in search.seeds:
        try:
            result = run(search.source, **copy.deepcopy({**search.fixed, **settings, "seed": seed}))
        except InputError:
            return math.nan
        last = result.rounds["validation_accuracy"].astype(float).tolist()[-1:] or [math.nan]
        values += last
    return sum(values) / len(values)


def _state(optuna: Any, value: float) -> Any:
    return optuna.trial.TrialState.COMPLETE if math.isfinite(value) else optuna.trial.TrialState.FAIL


def command(file: Path, out: Path | None, quiet: bool) -> None:
    """Search, print each trial and the best one, and write `trials.csv` and `best.yaml`."""
    import sys

    from sim.sweep.store import write_whole

    search = read_search(file)
    folder = out or Path("runs") / f"tune-{file.stem}"
    best_yet = -math.inf

    def tell(number: int, value: float, settings: dict[str, Any]) -> None:
        nonlocal best_yet
        mark = " *" if value > best_yet else ""
        best_yet = max(best_yet, value) if math.isfinite(value) else best_yet
        words = ", ".join(f"{split(key)[-1]}={setting}" for key, setting in settings.items())
        print(f"trial {number}/{search.trials}: {value:.4f}  {words}{mark}", file=sys.stderr, flush=True)

    best, table = tune(search, None if quiet else tell)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "trials.csv", table.to_csv(index=False).encode("utf-8"))
    write_whole(folder / "best.yaml", best.to_yaml().encode("utf-8"))
    if not quiet:
        print(f"best validation accuracy: {table['validation_accuracy'].max():.4f}")
        print(f"written to {folder} (best.yaml runs as it is; judge it on other seeds than {search.seeds})")
