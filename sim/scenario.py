"""The scenario: its schema, and how a YAML file plus overrides becomes one, with every mistake reported at once."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from agents.population import HonestUsers
from agents.privacy.features import FeatureMechanism
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.labels import LabelMechanism, PublicLabels
from agents.privacy.ties import TieProtocol
from agents.privacy.ties.verification_list import VerificationList
from agents.strategies.base import AttackerGroup
from server.pruning.base import missing_p_values
from server.stages import ServerSettings
from sim import document, overrides
from sim.kernel.component import Path, Problem, Section, add_plugin_folder, build, dump, show
from sim.kernel.errors import InputError
from sim.kernel.graphs import GraphSource
from sim.kernel.network import Network


class Privacy(Section):
    """Budgets, mechanisms, and what they mean over rounds."""

    unit: Literal["list-entry", "undirected-tie", "whole-list"] = "list-entry"
    """What the tie epsilons are about: one entry of one list, a tie that sits in two lists, or a whole list."""
    features: FeatureMechanism = Piecewise(epsilon=0.1)
    """How features are reported."""
    ties: TieProtocol = VerificationList(epsilon=5.0, levels=5)
    """How ties are reported; `auto` takes the reports that the refinement needs."""
    labels: LabelMechanism = PublicLabels()
    """How training and validation users report their labels."""
    across_rounds: Literal["fresh", "split", "memoized"] = "memoized"
    """New noise each round (budgets add), the budget divided over the rounds, or noise drawn once per value."""
    lifetime_epsilon: float | None = Field(None, gt=0)
    """The most that a user may ever spend; it then abstains, on a schedule computed from the worst case."""


class PopulationSettings(Section):
    """Who takes part: the honest users of the graph, and groups of injected attackers."""

    honest: HonestUsers = HonestUsers()
    """The users of the graph."""
    attackers: list[AttackerGroup] = Field(default_factory=list)
    """Groups of injected users, each a coalition of its own."""

    @model_validator(mode="after")
    def _distinct_names(self) -> PopulationSettings:
        names = [group.name for group in self.attackers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"attacker groups need distinct names; found {', '.join(map(repr, twice))} more than once")
        return self


class Scenario(Section):
    """One experiment, whole."""

    name: str = "unnamed"
    """What run directories are called."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Everything random follows from it."""
    rounds: int = Field(1, ge=1, le=100_000)
    """How many rounds to simulate."""
    graph: GraphSource
    """Where the graph comes from."""
    privacy: Privacy = Privacy()
    """Budgets and mechanisms."""
    population: PopulationSettings = PopulationSettings()
    """Honest users and attackers."""
    network: Network = Network()
    """How reports travel."""
    server: ServerSettings = ServerSettings()
    """What the server does with the reports."""
    anchors: Literal["none", "last", "each"] = "last"
    """In which rounds the `accuracy_*` columns are trained for comparison."""
    observer: bool = True
    """Whether anything is measured. Off, a run makes the same decisions and records nothing."""

    def tie_protocol(self) -> TieProtocol:
        """The tie protocol of this run, `auto` resolved by the refinement; budgets still in the scenario's unit."""
        ties = self.privacy.ties
        if ties.kind == "auto":
            return self.server.refinement.tie_protocol(ties.epsilon, ties.levels)
        return ties

    def to_yaml(self) -> str:
        """The resolved scenario, every default written out; loading it gives an equal scenario."""
        return document.write(dump(self))


@dataclass
class Loaded:
    """A scenario with the notes that its overrides gave rise to."""

    scenario: Scenario
    notes: list[str] = field(default_factory=list)


def load(source: str | FilePath | dict[str, Any], settings: dict[str, Any] | None = None) -> Loaded:
    """A scenario from a YAML file or plain data, with overrides by dotted path (`{"server.pruning.kind": "none"}`).

    Raises InputError that lists every problem: file, line, key, what was found, what is allowed, the nearest name.
    """
    if isinstance(source, dict):
        paper = document.Document("scenario", plain(source))
    elif not isinstance(source, str | FilePath):
        raise InputError(f"found {show(source)}; expected the path of a scenario file, or plain data as in one")
    else:
        source = document.locate(source)
        paper = document.read(source)
        add_plugin_folder(str(FilePath(source).resolve().parent))
        document.expect(paper, "scenario")
    notes = overrides.apply(paper.data, plain(settings or {}), Scenario)
    folder = None if isinstance(source, dict) else FilePath(source).resolve().parent
    scenario, problems = resolve(paper.data, folder)
    if problems or scenario is None:
        raise InputError(explain(paper, problems, settings or {}))
    return Loaded(scenario, notes)


def plain(value: Any) -> Any:
    """A copy of data as YAML would give it: what a notebook hands over may hold tuples and numpy's numbers."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return plain(value.tolist()) if isinstance(value, np.generic | np.ndarray) else copy.deepcopy(value)


def resolve(data: dict[str, Any], folder: FilePath | None) -> tuple[Scenario | None, list[Problem]]:
    """The scenario of plain data, files looked for in `folder`, and everything that is wrong with it."""
    problems: list[Problem] = []
    scenario: Scenario | None = build(Scenario, data, (), problems)
    if scenario is None or problems:
        return None, problems
    if folder is not None:
        scenario = scenario.model_copy(update={"graph": scenario.graph.beside(str(folder))})
    return scenario, fit(scenario)


def fit(scenario: Scenario) -> list[Problem]:
    """What is wrong between sections that are each right by themselves."""
    problems: list[Problem] = []
    missing = scenario.graph.missing()
    if missing is not None:
        problems.append(Problem(("graph", "source"), missing))
    nodes = scenario.graph.size_hint()
    for index, group in enumerate(scenario.population.attackers):
        wanted = getattr(group.targets, "per_attacker", 0)
        if nodes is not None and isinstance(wanted, int) and wanted > nodes:
            path = ("population", "attackers", index, "targets", "per_attacker")
            problems.append(Problem(path, f"found {wanted}; allowed: at most the {nodes} nodes of the graph"))
    refinement, form = scenario.server.refinement, scenario.tie_protocol().form
    alone = refinement.kind == "none" and scenario.tie_protocol().phases == 1  # no graph is made of the reports
    if form not in ("none", *refinement.accepts) and not alone:
        message = (
            f"{refinement.kind!r} works on {' or '.join(refinement.accepts)} reports; privacy.ties.kind "
            f"{scenario.privacy.ties.kind!r} sends {form} (privacy.ties.kind: auto picks the right one)"
        )
        problems.append(Problem(("server", "refinement", "kind"), message))
    if refinement.uses_features and scenario.privacy.features.kind != "none":
        message = (
            f"{refinement.kind!r} works on public features; found privacy.features.kind "
            f"{scenario.privacy.features.kind!r}, allowed with it: 'none'"
        )
        problems.append(Problem(("server", "refinement", "kind"), message))
    pruning, suspicion = scenario.server.pruning, scenario.server.suspicion
    if pruning.needs_p_values and not suspicion.has_p_values:
        problems.append(Problem(("server", "pruning", "kind"), missing_p_values(pruning.kind, suspicion.kind)))
    return problems


def explain(paper: document.Document, problems: list[Problem], settings: dict[str, Any]) -> str:
    """All problems, a line each, in the order of the file."""
    overridden = [overrides.split(key) for key in settings]

    def locate(path: Path) -> tuple[int, str]:
        if any(path[: len(key)] == key for key in overridden):
            return 10**9, f"--set {'.'.join(map(str, path))}"
        line = paper.line(path)
        place = f"{paper.name}:{line}" if line else paper.name
        return line or 0, f"{place}: {'.'.join(map(str, path))}" if path else place

    placed = sorted((locate(p.path), p.message) for p in problems)
    return "\n".join(f"{place}: {message}" for (_, place), message in placed)


def load_scenario(source: str | FilePath | dict[str, Any], **settings: Any) -> Scenario:
    """A scenario from a YAML file or plain data. Overrides are dotted paths: `load_scenario("a.yaml", seed=3,
    **{"server.pruning.kind": "none"})`. Raises InputError with every problem at once."""
    return load(source, settings).scenario
