"""Advice on a scenario: the facts that `sim.advise` wants, taken from a scenario before anything is reported."""

from __future__ import annotations

from typing import Literal, cast, get_args

from agents.privacy.ties import TieProtocol
from server.channel import Trust
from server.refinement import Refinement
from sim.advise import Advice, advise, warning
from sim.kernel.errors import InputError
from sim.kernel.randomness import Streams
from sim.premises import load_graph, public_protocol
from sim.scenario import Scenario

FORMS = ("verification-list", "binary-list")


def local_ties(scenario: Scenario, participants: int) -> TieProtocol:
    """The tie protocol with the local budget of one report."""
    share = 1.0 / scenario.rounds if scenario.privacy.across_rounds == "split" else 1.0
    return scenario.tie_protocol().localised(scenario.privacy.unit, participants, share)


def advise_scenario(scenario: Scenario) -> Advice:
    """What the scenario's budget buys. Loads its graph for the number of nodes and the mean degree only.

    Attackers are those of all groups together, with the largest number of targets. Raises InputError when users do not
    report lists from both ends.
    """
    form = scenario.tie_protocol().form
    if form not in FORMS:
        raise InputError(
            f"advise: privacy.ties sends {form} reports; it knows about {' and '.join(FORMS)} reports only"
        )
    graph = load_graph(scenario, Streams(scenario.seed))
    groups, honest = scenario.population.attackers, scenario.population.honest
    injected = sum(group.size(graph.nodes) for group in groups)
    wanted = [getattr(group.targets, "per_attacker", 1) for group in groups]
    targets = max((number for number in wanted if isinstance(number, int)), default=12)
    ties = local_ties(scenario, graph.nodes + injected)
    trust: Literal["maximal", "correlated", "independent"] = "independent"
    if honest.trust.kind in get_args(Trust):
        trust = cast(Trust, honest.trust.kind)
    return advise(
        nodes=graph.nodes,
        mean_degree=graph.mean_degree,
        epsilon=ties.epsilon,
        levels=ties.levels,
        targets=min(targets, graph.nodes),
        share=injected / graph.nodes,
        acceptance=honest.acceptance,
        vigilance=honest.vigilance,
        trust=trust,
        seed=scenario.seed,
    )


def warnings(scenario: Scenario) -> list[str]:
    """What a run should say before it starts: that nothing can work at its budget, or what its refinement warns of."""
    sentences = []
    if scenario.tie_protocol().form in FORMS:
        ties = local_ties(scenario, scenario.graph.size_hint() or 2)
        if (said := warning(ties.epsilon, ties.levels)) is not None:
            sentences.append(f"{said}; `graphwarden advise` shows what the budget buys")
    refinement = scenario.server.refinement
    if type(refinement).warning is not Refinement.warning:  # else the graph need not be loaded for it
        graph = load_graph(scenario, Streams(scenario.seed))
        participants = graph.nodes + sum(group.size(graph.nodes) for group in scenario.population.attackers)
        if (said := refinement.warning(public_protocol(scenario, graph, participants))) is not None:
            sentences.append(said)
    return sentences
