"""Whatever a scenario says, a run works, or ends in one clear sentence; its columns agree with each other."""

import csv
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from at_random import REFINEMENTS, scenario, write_graphs

import sim
from sim.columns import ROUND, TIMING
from sim.engine import Simulation
from sim.kernel.errors import InputError, RunError
from sim.records import RunDirectory
from sim.result import Result
from sim.runner import resume

SHARES = [c.name for c in ROUND if c.unit == "share" and c.name not in ("damage", "recovered", "gain_retained")]
QUICK, WIDE = 3 * len(REFINEMENTS), 30 * len(REFINEMENTS)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    write_graphs(folder)
    return folder


def consistent_row(row):
    """What holds in every row of `rounds.csv`, whatever the scenario."""
    assert row.edges == row.edges_true + row.edges_false + row.edges_attack
    assert row.sent == row.delivered + row.late + row.lost and row.rejected <= row.delivered
    assert row.online <= row.honest + row.attackers and row.pruned_attackers <= row.attackers
    for name in SHARES:
        assert math.isnan(row[name]) or -1e-9 <= row[name] <= 1 + 1e-9, (name, row[name])
    if not row.attackers:
        for name in ("detection_recall", "detection_auc", "detection_bound_auc", "accuracy_oracle_pruned"):
            assert math.isnan(row[name]), name
        assert row.edges_attack == 0
    if not row.edges:
        assert math.isnan(row.edge_precision)


def consistent_tables(result, data):
    """Groups and agents tell the same story as the rounds."""
    last, agents = result.rounds.iloc[-1], result.agents
    assert len(agents) == last.honest + last.attackers
    assert agents.flagged.sum() == last.pruned_honest + last.pruned_attackers
    assert not (agents.flagged & agents.flagged_round.isna()).any()
    assert (agents.epsilon[agents.kind == "attacker"] == 0).all()
    assert agents.epsilon[agents.kind == "honest"].max() == pytest.approx(last.epsilon_max)
    if data["population"]["attackers"]:
        now = result.groups[result.groups["round"] == last["round"]]
        assert (now.members.sum(), now.flagged.sum()) == (last.attackers, last.pruned_attackers)
        assert (now.accepted_ties <= now.intended_ties).all() and (now.active <= now.members).all()
        assert now.suspicion_auc.dropna().between(0, 1).all()


def nothing_but_numbers(path, columns):
    """An absent quantity is an empty cell, never the word for it."""
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            for name in columns:
                assert row[name].lower() not in ("nan", "none", "-inf") and (row[name] != "inf" or name == "gamma")


def play(seed, graphs, folder):
    """Run one scenario with every check; True when it ran, False when it was refused."""
    data = scenario(seed, graphs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            result = sim.run(data, out=folder / str(seed))
        except (InputError, RunError) as error:
            assert str(error) and "\n" not in str(error)
            return False
    assert result.rounds.empty == (not data["observer"])
    if data["observer"]:
        for _, row in result.rounds.iterrows():
            consistent_row(row)
        consistent_tables(result, data)
        nothing_but_numbers(folder / str(seed) / "rounds.csv", [c.name for c in ROUND])
        back = Result.read(folder / str(seed))
        pd.testing.assert_frame_equal(back.rounds, result.rounds, check_dtype=False)
    return True


def stopped_and_resumed(seed, graphs, folder):
    """A run broken off after its first round, and finished from its checkpoint."""
    loaded = sim.load_scenario(scenario(seed, graphs))
    directory, simulation = RunDirectory.create(folder / f"{seed} broken", loaded), Simulation(loaded)
    simulation.step()
    if simulation.observer is not None:
        directory.append(simulation.observer.rows, simulation.observer.groups)
    directory.save(simulation.checkpoint())
    simulation.close()
    return resume(folder / f"{seed} broken")


def decisions(loaded):
    simulation = Simulation(loaded)
    for _ in range(loaded.rounds):
        simulation.step()
    simulation.close()
    return simulation.outcome


def test_random_scenarios_run_or_say_why_not(graphs, tmp_path):
    ran = sum(play(seed, graphs, tmp_path) for seed in range(QUICK))
    assert ran >= 0.8 * QUICK


@pytest.mark.slow
def test_very_many_random_scenarios_run_or_say_why_not(graphs, tmp_path):
    """As above; those that run also resume to the same tables, and decide the same unobserved."""
    for seed in range(QUICK, WIDE):
        if not play(seed, graphs, tmp_path):
            continue
        result = Result.read(tmp_path / str(seed)) if scenario(seed, graphs)["observer"] else None
        if result is not None and result.scenario.rounds > 1:
            again = stopped_and_resumed(seed, graphs, tmp_path)
            same = [c for c in again.rounds if c not in TIMING]
            pd.testing.assert_frame_equal(result.rounds[same], again.rounds[same], check_dtype=False)
            pd.testing.assert_frame_equal(result.agents, again.agents, check_dtype=False)
        loaded = sim.load_scenario(scenario(seed, graphs))
        seen, unseen = (decisions(loaded.model_copy(update={"observer": on})) for on in (True, False))
        assert np.array_equal(seen.decision.flagged, unseen.decision.flagged)
        assert np.array_equal(seen.learned.structure.u, unseen.learned.structure.u)
        assert np.array_equal(seen.learned.structure.v, unseen.learned.structure.v)


def tiny(**changes):
    data = {
        "graph": {"source": "synthetic", "nodes": 60, "classes": 2, "dimensions": 24, "words": 4.0},
        "privacy": {"features": {"kind": "none"}, "ties": {"kind": "auto", "epsilon": 3.0}},
        "server": {"training": {"epochs": 2, "hidden": 8}},
        "anchors": "none",
    }
    return data, {key.replace("__", "."): value for key, value in changes.items()}


def run(**changes):
    data, settings = tiny(**changes)
    return sim.run(data, **settings)


def test_groups_that_change_between_rounds_do_not_meet_old_answers():
    """LDPGen asks about other groups in every fresh round, so a silent user's old numbers answer another question."""
    rounds = run(
        server__refinement={"kind": "ldpgen"},
        rounds=4,
        privacy__across_rounds="fresh",
        population__honest={"availability": 0.5},
    ).rounds
    assert rounds.edges.notna().all() and (rounds.edges > 0).any()


@pytest.mark.parametrize("kind", [k for k in REFINEMENTS if k != "none"])
def test_a_budget_beyond_every_float_is_no_noise(kind):
    row = run(server__refinement={"kind": kind}, privacy__ties={"kind": "auto", "epsilon": 1000.0}).rounds.iloc[-1]
    if kind in ("attested", "equal-levels", "posterior", "blink", "dprr", "randomized-response"):
        # trust levels at the two ends of a tie may differ, and DPRR's thinned lists carry Laplace noise in their length
        assert row.edges_false == 0 and row.edge_recall > (0.3 if kind in ("equal-levels", "dprr") else 0.99)


@pytest.mark.parametrize("kind", [k for k in REFINEMENTS if k != "none"])
def test_a_budget_of_next_to_nothing_is_noise_and_a_smaller_one_is_refused(kind):
    settings = {"server__refinement": {"kind": kind}, "privacy__unit": "list-entry"}
    rounds = run(privacy__ties={"kind": "auto", "epsilon": 1e-9}, **settings).rounds
    assert rounds.edge_f1.iloc[0] < 0.2
    with pytest.raises(InputError, match=r"privacy\.ties\.epsilon: one report gets 1e-18"):
        run(privacy__ties={"kind": "auto", "epsilon": 1e-18}, **settings)


def test_a_prior_is_not_fitted_to_reports_that_never_came():
    result = run(server__refinement={"kind": "feature-prior"}, network__loss=1.0, anchors="last")
    assert result.rounds.edges.tolist() == [0] and "too few users reported" in " ".join(result.notes)


def test_label_propagation_has_no_loss(tmp_path):
    data, settings = tiny(server__training__model="label-propagation")
    assert math.isnan(sim.run(data, out=tmp_path / "out", **settings).rounds.loss.iloc[0])
    nothing_but_numbers(tmp_path / "out" / "rounds.csv", ["loss"])


def test_pruning_everybody_is_said_and_a_threshold_that_would_is_not_chosen():
    with pytest.raises(RunError, match="round 1, training: all 30 training users are pruned"):
        run(server__pruning={"kind": "threshold", "gamma": -100.0})
    few = {"train": 0.02, "validation": 0.5, "test": 0.4}  # one training user, who may be the most suspicious of all
    for seed in range(6):
        pruned = run(seed=seed, graph__split=few, server__pruning={"kind": "threshold", "gamma": "auto"}).rounds
        assert pruned.pruned_honest.iloc[0] <= 3
