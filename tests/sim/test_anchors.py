"""Every anchor equals the test accuracy of a run of its own that is set up to be that anchor."""

from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse

from server.evidence import Structure
from server.pipeline import NobodyLeft
from server.pruning.base import Decision, NoPruning, Pruning
from server.refinement.base import Refinement
from server.suspicion.base import NoSuspicion
from sim.engine import Simulation
from sim.scenario import load_scenario

ROUNDS = 2
DATA = {
    "seed": 11,
    "rounds": ROUNDS,
    "graph": {"source": "synthetic", "nodes": 150, "dimensions": 60, "classes": 3, "mean_degree": 5.0},
    "privacy": {
        "features": {"kind": "piecewise", "epsilon": 3.0},
        "ties": {"kind": "verification-list", "epsilon": 4.0, "levels": 3},
        "labels": {"kind": "randomized-response", "epsilon": 3.0},
    },
    "population": {
        "attackers": [
            {"name": "a", "count": 8, "targets": {"kind": "cyclic", "per_attacker": 5}, "labels": "random"},
            {"name": "b", "count": 5, "claims": {"kind": "collusive", "channel": "bypass"}},
        ]
    },
    "server": {
        "suspicion": {"kind": "combined"},
        "pruning": {"kind": "top-share", "share": 0.05},
        "training": {"epochs": 20, "hidden": 16},
        "denoising": {"kind": "dual", "hops": 3, "regularization": 0.3},
    },
    "anchors": "each",
}


class Given(Refinement, kind="given-for-this-test"):
    """A structure that is handed over."""

    def refine(self, evidence, kept, streams):
        return self.structure


class Named(Pruning, kind="named-for-this-test"):
    """Users that are handed over."""

    def decide(self, suspicion, context):
        return Decision(self.users.copy(), float("nan"))


def play(data, prepare=None):
    """The rows of a run whose pipeline is changed by `prepare(simulation)` before it starts."""
    simulation = Simulation(load_scenario(data))
    if prepare is not None:
        settings = simulation.server.pipeline.settings
        simulation.server.pipeline.settings = settings.model_copy(update=prepare(simulation))
    for _ in range(ROUNDS):
        simulation.step()
    simulation.close()
    return simulation.observer.rows


def column(rows, name):
    return [row[name] for row in rows]


def changed(**changes):
    """DATA without anchors, with some keys replaced: {"server": {"denoising": ...}} replaces that one stage."""
    data = {**deepcopy(DATA), "anchors": "none"}
    for section, values in changes.items():
        data[section] = {**data[section], **values}
    return data


def undefended(simulation):
    return {"suspicion": NoSuspicion(), "pruning": NoPruning()}


def true_graph(simulation):
    upper = sparse.triu(simulation.observer.graph.ties, k=1).tocoo()
    ends = np.sort(np.stack([simulation.directory.public[side] for side in upper.coords]), axis=0)
    u, v = ends[:, np.lexsort(ends[::-1])].astype(np.int32)
    Given.structure = Structure(u, v)
    return {**undefended(simulation), "refinement": Given()}


def no_edges(simulation):
    Given.structure = Structure(np.zeros(0, np.int32), np.zeros(0, np.int32))
    return {**undefended(simulation), "refinement": Given()}


def attackers_by_name(simulation):
    Named.users = np.zeros(simulation.protocol.participants, dtype=bool)
    Named.users[simulation.directory.public[simulation.observer.honest :]] = True
    return {"pruning": Named()}


@pytest.fixture(scope="module")
def rows():
    return play(DATA)


@pytest.mark.parametrize(
    "name, prepare",
    [
        ("undefended", undefended),
        ("true_graph", true_graph),
        ("no_edges", no_edges),
        ("oracle_pruned", attackers_by_name),
    ],
)
def test_an_anchor_is_a_run_of_its_own(rows, name, prepare):
    assert column(rows, f"accuracy_{name}") == column(play(changed(), prepare), "test_accuracy")


def test_clean_is_the_true_graph_with_public_features_and_no_label_of_an_attacker(rows):
    data = changed(privacy={"features": {"kind": "none"}}, server={"denoising": {"kind": "none"}})
    data["population"]["attackers"][0]["labels"] = "none"
    assert column(rows, "accuracy_clean") == column(play(data, true_graph), "test_accuracy")


def test_no_attack_is_the_run_that_nobody_attacks():
    """Up to dropout, whose masks follow the server's ids: the permutation of fewer users is another one."""
    data = deepcopy(DATA)
    data["server"]["training"]["dropout"] = 0.0
    alone = {**data, "anchors": "none", "population": {"attackers": []}}
    assert column(play(data), "accuracy_no_attack") == column(play(alone), "test_accuracy")


def test_anchors_of_warm_rounds_start_from_fresh_weights(rows):
    """Otherwise the anchor without edges would begin where the private graph had led the run's own model."""
    data = deepcopy(DATA)
    data["server"]["training"]["warm_start"] = True
    warm = play(data)
    for name in ("no_edges", "true_graph", "clean", "undefended", "oracle_pruned", "no_attack", "random_edges"):
        assert column(warm, f"accuracy_{name}") == column(rows, f"accuracy_{name}"), name


def test_a_curators_release_is_the_same_in_every_anchor():
    """With fresh noise, the release of round 2 is that round's: without attackers, undefended is the run itself."""
    data = changed(privacy={"ties": {"kind": "auto", "epsilon": 4.0}, "across_rounds": "fresh"})
    data["server"] |= {"refinement": {"kind": "lapgraph"}, "suspicion": {"kind": "none"}, "pruning": {"kind": "none"}}
    data["server"]["training"] |= {"warm_start": True, "epochs": 1, "select": "last", "learning_rate": 1e-9}
    data |= {"anchors": "each", "population": {"attackers": []}}
    again = play(
        {**data, "server": {**data["server"], "training": {**data["server"]["training"], "warm_start": False}}}
    )
    assert column(play(data), "accuracy_undefended") == column(again, "test_accuracy")


def test_an_anchor_without_a_single_training_user_is_empty():
    """Nobody attacks, and the defence prunes everybody all the same: there is no such accuracy, and no lost run."""
    data = deepcopy(DATA)
    data["server"]["pruning"] = {"kind": "threshold", "gamma": -100.0}
    with pytest.raises(NobodyLeft, match="all 83 training users are pruned"):
        play(data)
    rows = play(data, attackers_by_name_in_the_run_only)
    assert column(rows, "accuracy_oracle_pruned")[0] is not None and column(rows, "accuracy_no_attack")[0] is None
    assert column(rows, "damage")[0] is None


def attackers_by_name_in_the_run_only(simulation):
    """A rule that finds the attackers of this run, and suspects everybody where there are none."""
    attackers_by_name(simulation)
    found = Named.users

    class Panicking(Pruning, kind="panicking-for-this-test"):
        def decide(self, suspicion, context):
            everybody = np.ones(len(suspicion.score), dtype=bool)
            return Decision(found.copy() if len(everybody) == len(found) else everybody, float("nan"))

    return {"pruning": Panicking()}
