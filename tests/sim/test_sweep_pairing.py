"""Points with the same seed share split, honest noise, placement and network draws: their differences are paired."""

import numpy as np
import pytest
from sweeps import write

from sim.engine import PHASES_A_ROUND, Simulation
from sim.sweep import read_plan


class Drawn:
    """Everything random that a run draws in its first round, stable ids throughout."""

    def __init__(self, run):
        simulation = Simulation(run.scenario)
        simulation.step()
        n = self.honest = simulation.population.size
        self.split = np.stack([simulation.observer.train, simulation.observer.validation, simulation.observer.test])
        batch = simulation.population.reports(np.arange(n), simulation._call(0))
        self.features, self.lists = batch.features.toarray(), batch.lists.toarray()
        self.trust = simulation.population.lists.toarray()
        self.graph = simulation.observer.graph
        self.answered = dict(simulation.population.answered)
        self.asked = [plan.asked for plan in (c.plan_in_force for c in simulation.coalitions)]
        everyone = np.arange(n)
        self.journeys = run.scenario.network.journeys(everyone, simulation._streams, PHASES_A_ROUND)
        simulation.close()


def drawn(tmp_path, axes, **scenario):
    network = {"latency": {"kind": "lognormal"}, "loss": 0.2, "deadline": 1.0}
    sweep = {"scenario": "tiny.yaml", "seeds": [3], "axes": axes}
    return [Drawn(run) for run in read_plan(write(tmp_path, sweep, network=network, **scenario)).runs()]


def test_the_injection_rate_moves_no_honest_draw(tmp_path):
    first, *others = drawn(tmp_path, {"population.attackers.0.count": [0, 4, 9]})
    n = first.honest
    assert (first.split.sum(axis=0) == 1).all() and np.count_nonzero(first.lists)
    for other in others:
        assert (other.split == first.split).all()
        assert (other.graph.ties != first.graph.ties).nnz == 0 and (other.graph.labels == first.graph.labels).all()
        assert (other.trust[:, :n] == first.trust).all()
        assert (other.features == first.features).all()
        assert (other.lists[:, :n] == first.lists).all()
        assert (other.journeys == first.journeys).all()


DEFENCES = {
    "server.suspicion.kind": ["mean-gap", "none"],
    "server.denoising": [{"kind": "none"}, {"kind": "dual", "hops": 4}],
    "server.training.hidden": [8, 16],
}


@pytest.mark.parametrize("axis", DEFENCES)
def test_a_defence_or_backbone_moves_nothing_on_the_users_side(axis, tmp_path):
    first, other = drawn(tmp_path, {axis: DEFENCES[axis]})
    assert first.answered and other.answered == first.answered
    for one, two in zip(first.asked, other.asked):
        assert all((a == b).all() for a, b in zip(one, two))
    for name in ("split", "features", "lists", "trust", "journeys"):
        assert (getattr(other, name) == getattr(first, name)).all(), name


def test_budgets_keep_split_placement_trust_and_network(tmp_path):
    base, ties, features = (
        drawn(tmp_path / str(i), {axis: [value]})[0]
        for i, (axis, value) in enumerate(
            (("rounds", 1), ("privacy.ties.epsilon", 3.0), ("privacy.features.epsilon", 2.0))
        )
    )
    for other in (ties, features):
        assert (other.split == base.split).all() and (other.journeys == base.journeys).all()
        assert (other.trust == base.trust).all() and other.answered == base.answered
    assert (ties.features == base.features).all() and (ties.lists != base.lists).any()
    assert (features.lists == base.lists).all() and (features.features != base.features).any()


def test_another_seed_shares_nothing(tmp_path):
    sweep = {"scenario": "tiny.yaml", "seeds": [3, 4]}
    first, other = (Drawn(run) for run in read_plan(write(tmp_path, sweep)).runs())
    for name in ("split", "features", "lists", "journeys"):
        assert (getattr(other, name) != getattr(first, name)).any(), name
