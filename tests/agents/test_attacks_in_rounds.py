"""Attacks inside whole rounds: what reaches the server, what it makes of it, and what comes back to the attackers."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from combinations import DIMENSIONS, covering

import sim
from sim.engine import Simulation
from sim.scenario import load_scenario

FOLDER = Path(__file__).parents[2] / "scenarios" / "populations"
KNOWLEDGE = ["protocol", "degrees", "feedback", "labels", "graph"]


def world(*groups, rounds=1, nodes=60, gamma=0.4, **server):
    """A scenario on a small synthetic graph, without training."""
    return {
        "seed": 5,
        "rounds": rounds,
        "graph": {"source": "synthetic", "nodes": nodes, "dimensions": 30, "classes": 3, "mean_degree": 5.0},
        "privacy": {
            "features": {"kind": "piecewise", "epsilon": 5.0},
            "ties": {"kind": "verification-list", "epsilon": 4.0, "levels": 5},
        },
        "population": {"attackers": list(groups)},
        "server": {
            "training": {"kind": "none"},
            "denoising": {"kind": "none"},
            "pruning": {"kind": "threshold", "gamma": gamma},
            **server,
        },
        "anchors": "none",
    }


def fakes(combination=("extreme", "cyclic", "degree-preserving", "maximal", "compliant", "always"), count=6, **more):
    features, targets, ties, claims, channel, timing = combination
    return {
        "name": "fakes",
        "count": count,
        "features": {"kind": features},
        "targets": {"kind": targets},
        "ties": {"kind": ties},
        "claims": {"kind": claims, "channel": channel},
        "timing": {"kind": timing},
        "knowledge": KNOWLEDGE,
        **more,
    }


@pytest.mark.parametrize("combination", covering(DIMENSIONS), ids="/".join)
def test_every_pair_of_kinds_plays_a_round(combination):
    result = sim.run(world(fakes(combination)))
    row, group = result.rounds.iloc[0], result.groups.iloc[0]
    attacking = {"sleeper": 0, "ramp": 2}.get(combination[5], 6)
    assert row.sent == 60 + attacking and group.active == attacking
    assert row.rejected == (attacking if combination[0] == "illegal-dense" else 0)
    assert (group.intended_ties > 0) == (attacking > 0)
    assert group.accepted_ties <= group.intended_ties


def test_default_attackers_pass_intake_and_illegal_ones_pass_only_when_the_check_is_off():
    dense = fakes(("illegal-dense", "cyclic", "none", "maximal", "compliant", "always"))
    assert sim.run(world(fakes())).rounds.rejected.tolist() == [0]
    assert sim.run(world(dense)).rounds.rejected.tolist() == [6]
    assert sim.run(world(dense, intake={"count": False})).rounds.rejected.tolist() == [0]


def suspicion(channel, claims="maximal"):
    attack = fakes(("extreme", "cyclic", "none", claims, channel, "always"), count=20, targets={"per_attacker": 12})
    data = world(attack, nodes=1000, gamma=10.0)
    data["privacy"]["ties"]["epsilon"] = 5.0
    return sim.run(data).groups.iloc[0]


def test_bypassing_drives_the_printed_suspicion_strongly_negative():
    compliant, bypass = suspicion("compliant"), suspicion("bypass")
    assert compliant.suspicion_mean > 0 and compliant.suspicion_auc > 0.6
    # honest scores scatter around 0 with a standard deviation below 0.4
    assert bypass.suspicion_mean < -0.6 and bypass.suspicion_auc < 0.1
    camouflage = suspicion("camouflage")
    assert camouflage.suspicion_auc > 0.95  # all its spurious entries are at the top: Eq. 14 sees that at once


def test_victims_of_framing_come_to_trust_the_framers_more_than_they_are_trusted():
    attack = fakes(
        ("honest-like", "cyclic", "none", "maximal", "compliant", "always"),
        count=10,
        targets={"kind": "cyclic", "per_attacker": 5},
        claims={"kind": "framing", "camouflage_rounds": 1},
    )
    simulation = Simulation(load_scenario(world(attack, rounds=3)))
    try:
        for round in (1, 2, 3):
            simulation.step()
            plan = simulation.coalitions[0].plan_in_force
            given = simulation.population.lists[plan.asked[1], plan.asked[0]]
            taken = plan.lists[plan.asked[0] - 60, plan.asked[1]]
            accepted = given > 0
            assert 10 < accepted.sum() < 40  # half of 50 accept
            assert given[accepted].min() >= 3
            assert (taken[accepted] < given[accepted]).all() == (round > 1)
    finally:
        simulation.close()


def test_whitewashers_leave_when_they_are_flagged():
    attack = fakes(("extreme", "same-victims", "clique", "maximal", "compliant", "whitewash"))
    result = sim.run(world(attack, rounds=2, gamma=-5.0, memory="none"))  # everybody is above this threshold
    assert result.groups.active.tolist() == [6, 0]
    assert result.groups.flagged.tolist()[0] == 6


def test_adaptive_attackers_react_to_their_flags():
    def asked(gamma):
        attack = fakes(
            ("extreme", "random", "none", "adaptive", "compliant", "always"),
            count=18,
            claims={"kind": "adaptive", "explore": 0.0},
            targets={"kind": "random", "per_attacker": 8},
        )
        simulation = Simulation(load_scenario(world(attack, rounds=3, gamma=gamma)))
        try:
            for _ in range(3):
                simulation.step()
            return simulation.coalitions[0].plan_in_force
        finally:
            simulation.close()

    unharmed = asked(10.0)  # nobody is flagged: asking for everything pays
    assert np.bincount(unharmed.asked[0] - 60, minlength=18).tolist() == [8] * 18
    assert unharmed.asked[1].tolist() == asked(10.0).asked[1].tolist()
    hunted = asked(-5.0)  # everybody is flagged whatever it does: nothing beats the most modest arm
    assert np.bincount(hunted.asked[0] - 60, minlength=18).tolist() == [2] * 18
    assert set(hunted.lists.data.tolist()) == {1}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_ready_population_plays_on_a_small_graph(path):
    overrides = {
        "graph.source": "synthetic",
        "server.training.kind": "none",
        "server.denoising.kind": "none",
        "server.pruning.gamma": 0.4,
        "anchors": "none",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sim.run(path, **overrides)
    groups = load_scenario(path).population.attackers
    assert len(result.groups) == len(groups) * len(result.rounds)
    assert (result.rounds.rejected == 0).all()
    assert set(result.agents.group) == {"", *(group.name for group in groups)}
    assert result.groups.intended_ties.gt(0).any() == bool(groups)
