"""A run end to end: repeatable, resumable, with the observer off making the same decisions."""

import gc
import types
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

import sim
from agents.attacker import Attacker
from agents.honest import HonestUser
from sim.columns import ROUND, TIMING
from sim.engine import Simulation
from sim.kernel.graphs import Graph
from sim.records import RunDirectory
from sim.runner import resume
from sim.scenario import load_scenario

SMALL = {
    "name": "small",
    "seed": 3,
    "rounds": 2,
    "graph": {"source": "synthetic", "nodes": 120, "dimensions": 40, "classes": 3},
    "privacy": {
        "features": {"kind": "piecewise", "epsilon": 1.0},
        "ties": {"kind": "verification-list", "epsilon": 5.0, "levels": 3},
    },
    "population": {"attackers": [{"name": "fakes", "count": 6, "targets": {"kind": "cyclic", "per_attacker": 4}}]},
    "server": {"training": {"epochs": 15}, "pruning": {"kind": "threshold", "gamma": 0.4}},
    "anchors": "none",
}


def small(**changes):
    data = deepcopy(SMALL)
    data.update(changes)
    return data


def comparable(rounds):
    return rounds.drop(columns=[c for c in rounds if c in TIMING])


def test_same_scenario_and_seed_give_the_same_rows():
    first, second = sim.run(small()), sim.run(small())
    pd.testing.assert_frame_equal(comparable(first.rounds), comparable(second.rounds))
    pd.testing.assert_frame_equal(first.agents, second.agents)
    other = sim.run(small(seed=4))
    assert not comparable(first.rounds).drop(columns="seed").equals(comparable(other.rounds).drop(columns="seed"))


def test_every_column_is_there_and_counts_are_consistent():
    row = sim.run(small()).rounds.iloc[-1]
    assert list(row.index) == [c.name for c in ROUND]
    assert row.edges == row.edges_true + row.edges_false + row.edges_attack
    assert row.sent == row.delivered + row.late + row.lost == 126
    assert row.rejected == 0 and row.epsilon_max == pytest.approx(6.0) and 0 < row.test_accuracy <= 1


def test_a_run_with_the_observer_off_makes_the_same_decisions():
    outcomes = []
    for observer in (True, False):
        simulation = Simulation(load_scenario(small(observer=observer)))
        for _ in range(2):
            simulation.step()
        outcomes.append(simulation.outcome)
        assert (simulation.observer is None) != observer
        simulation.close()
    seen, unseen = outcomes
    assert (seen.decision.flagged == unseen.decision.flagged).all()
    assert (seen.learned.predictions == unseen.learned.predictions).all()
    assert (seen.learned.structure.u == unseen.learned.structure.u).all()
    assert np.array_equal(seen.suspicion.score, unseen.suspicion.score)


@pytest.mark.parametrize("across", ["memoized", "fresh"])
def test_a_report_made_alone_equals_its_row_of_the_population(across):
    scenario = load_scenario(small(privacy={**SMALL["privacy"], "across_rounds": across}))
    simulation = Simulation(scenario)
    simulation.step()
    call = simulation._call(0)
    plans = [coalition.plan_in_force for coalition in simulation.coalitions]
    batch = simulation._reports(call, np.arange(simulation.population.size), plans)
    kinds = set()
    for position, sender in enumerate(batch.senders.tolist()):
        user = simulation.users[sender]
        kinds.add(type(user))
        alone, row = user.report(call), batch.row(position)
        for name in ("feature_indices", "feature_values", "tie_indices", "tie_levels", "numbers"):
            assert np.array_equal(getattr(alone, name), getattr(row, name)), (sender, name)
    assert kinds == {HonestUser, Attacker}
    simulation.close()


def test_memoized_rounds_repeat_their_reports_and_fresh_rounds_do_not():
    for across, same in (("memoized", True), ("fresh", False)):
        rounds = sim.run(small(privacy={**SMALL["privacy"], "across_rounds": across})).rounds
        assert (rounds.edges_false.nunique() == 1) == same
    fresh = sim.run(small(privacy={**SMALL["privacy"], "across_rounds": "fresh"})).rounds
    assert fresh.epsilon_max.tolist() == pytest.approx([6.0, 12.0])
    split = sim.run(small(privacy={**SMALL["privacy"], "across_rounds": "split"})).rounds
    assert split.epsilon_max.tolist() == pytest.approx([3.0, 6.0])


def reachable(roots, stop=()):
    """Every object that references from `roots` lead to, modules, classes and functions' globals aside."""
    seen, queue = {}, list(roots)
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(
            item, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
        ):
            continue
        seen[id(item)] = item
        queue.extend(o for o in gc.get_referents(item) if not isinstance(o, stop))
    return list(seen.values())


def test_nothing_leads_from_the_pipeline_to_agents_or_truth():
    simulation = Simulation(load_scenario(small()))
    simulation.step()
    truth = simulation.observer.graph
    arrays = {
        id(truth.labels),
        id(truth.ties),
        id(truth.features),
        id(truth.features.data),
        id(simulation.population.lists),
    }
    found = reachable([simulation.server.pipeline])
    assert len(found) > 50
    assert not any(isinstance(o, (Graph, Simulation, HonestUser, Attacker)) for o in found)
    assert not arrays & {id(o) for o in found}
    assert not any(o == simulation._streams for o in found if type(o) is type(simulation._streams))
    simulation.close()


def test_nothing_leads_from_an_attackers_view_to_honest_data():
    simulation = Simulation(load_scenario(small()))
    simulation.step()
    view = simulation.coalitions[0].view(simulation._call(0))
    found = reachable([view])
    assert not any(isinstance(o, (Graph, Simulation, HonestUser)) for o in found)
    held = {id(simulation.population.lists), id(simulation.population.features), id(simulation.observer.graph.labels)}
    assert not held & {id(o) for o in found}
    simulation.close()


def test_the_simulation_itself_keeps_no_graph():
    simulation = Simulation(load_scenario(small()))
    assert not any(isinstance(value, Graph) for value in vars(simulation).values())
    simulation.close()


def test_an_interrupted_run_resumes_to_the_same_result(tmp_path):
    scenario = load_scenario(small(rounds=4))
    whole = sim.run(scenario, out=tmp_path / "whole")
    directory = RunDirectory.create(tmp_path / "broken", scenario)
    simulation = Simulation(scenario)
    for _ in range(2):
        simulation.step()
    directory.append(simulation.observer.rows, simulation.observer.groups)
    directory.save(simulation.checkpoint())
    simulation.close()
    with open(tmp_path / "broken" / "rounds.csv", "a") as file:
        file.write("3,3,half a ro")  # the row that was being written when the power went
    again = resume(tmp_path / "broken")
    pd.testing.assert_frame_equal(comparable(whole.rounds), comparable(again.rounds))
    pd.testing.assert_frame_equal(whole.agents, again.agents)
    on_disk = pd.read_csv(tmp_path / "broken" / "rounds.csv")
    pd.testing.assert_frame_equal(comparable(on_disk), comparable(pd.read_csv(tmp_path / "whole" / "rounds.csv")))
    assert not (tmp_path / "broken" / "checkpoint.pickle").exists()


def test_models_are_freed():
    import weakref

    kept = []
    for _ in range(3):
        simulation = Simulation(load_scenario(small()))
        simulation.step()
        simulation.close()
        kept.append(weakref.ref(simulation))
        del simulation
    gc.collect()
    assert [k() for k in kept] == [None, None, None]


def test_lost_late_and_offline_reports_are_counted():
    network = {"latency": {"kind": "exponential", "mean": 1.0}, "loss": 0.2, "deadline": 1.5}
    rounds = sim.run(small(network=network, rounds=3)).rounds
    for row in rounds.itertuples():
        assert row.sent == row.delivered + row.late + row.lost
        assert row.lost > 5 and row.late > 5 and row.sim_seconds == pytest.approx(1.5)
    population = {**SMALL["population"], "honest": {"availability": 0.5}}
    row = sim.run(small(population=population)).rounds.iloc[0]
    assert 30 < row.online < 96 and row.sent == row.online


def test_the_last_report_of_a_silent_user_stands_in_only_when_the_server_remembers():
    population = {"attackers": [], "honest": {"availability": 0.5}}
    edges = {}
    for memory in ("last", "none"):
        server = {**SMALL["server"], "memory": memory}
        edges[memory] = sim.run(small(population=population, server=server, rounds=4)).rounds.edges_true.tolist()
    assert edges["last"] == sorted(edges["last"]) and edges["last"][-1] > 2 * max(edges["none"])


def test_anchors_and_their_differences():
    row = sim.run(small(anchors="each", server={"training": {"epochs": 40}})).rounds.iloc[0]
    assert row.damage == pytest.approx(row.accuracy_no_attack - row.accuracy_undefended)
    assert row.recovered == pytest.approx(row.test_accuracy - row.accuracy_undefended)
    assert row.accuracy_clean > row.accuracy_no_edges
    if row.accuracy_true_graph - row.accuracy_no_edges >= 0.02:
        expected = (row.test_accuracy - row.accuracy_no_edges) / (row.accuracy_true_graph - row.accuracy_no_edges)
        assert row.gain_retained == pytest.approx(expected)
