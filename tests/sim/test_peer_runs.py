"""Every peer and our own method run whole rounds with the reports that they ask for, under attack."""

import numpy as np
import pytest

import sim
from sim.engine import Simulation
from sim.scenario import load_scenario

KINDS = ["dprr", "ldpgen", "lapgraph", "solitude", "privgraph", "feature-prior"]


def scenario(kind, **settings):
    return {
        "name": "peers",
        "seed": 5,
        "rounds": 2,
        "graph": {"source": "synthetic", "nodes": 100, "dimensions": 40, "classes": 3},
        "privacy": {
            "unit": "undirected-tie",
            "features": {"kind": "none"},
            "ties": {"kind": "auto", "epsilon": 4.0},
            "across_rounds": "fresh",
        },
        "population": {
            "attackers": [
                {"name": "fakes", "count": 4, "targets": {"kind": "cyclic", "per_attacker": 3}},
                {
                    "name": "liars",
                    "count": 3,
                    "targets": {"kind": "cyclic", "per_attacker": 3},
                    "claims": {"kind": "maximal", "channel": "bypass"},
                },
            ]
        },
        "server": {
            "suspicion": {"kind": "none"},
            "pruning": {"kind": "none"},
            "refinement": {"kind": kind, **settings},
            "training": {"epochs": 8},
        },
        "anchors": "none",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_changing_the_refinement_alone_is_enough(kind):
    result = sim.run(scenario(kind))
    rows = result.rounds
    assert (rows.edges > 0).all() and (rows.rejected == 0).all()
    assert rows.epsilon_ties.tolist() == pytest.approx([4.0, 8.0])  # in the unit of a tie, whatever the protocol
    assert rows.test_accuracy.between(0, 1).all()
    # a new round is a new release: noise that came back would give the same graph again
    assert rows.edges_true.nunique() + rows.edges_false.nunique() > 2


@pytest.mark.parametrize("kind", KINDS)
def test_memoized_rounds_publish_the_same_graph(kind):
    data = scenario(kind)
    data["privacy"]["across_rounds"] = "memoized"
    data["population"]["attackers"] = []
    simulation = Simulation(load_scenario(data))
    graphs = []
    for _ in range(2):
        simulation.step()
        structure = simulation.outcome.learned.structure
        graphs.append((structure.u, structure.v))
    assert np.array_equal(graphs[0][0], graphs[1][0]) and np.array_equal(graphs[0][1], graphs[1][1])


def test_central_methods_declare_their_curator():
    from server.refinement import Refinement

    curators = {kind: Refinement._family.resolve(kind).curator for kind in KINDS}
    assert {kind for kind, curator in curators.items() if curator == "trusted"} == {"lapgraph", "privgraph"}
