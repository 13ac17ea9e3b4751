"""Non-interference: what one party may not know does not change a bit of what it does or hears."""

import gc
import types

import numpy as np
import pytest
from tiny_worlds import simulation

from agents.attacker import Attacker
from agents.coalition import Coalition
from agents.honest import HonestUser
from agents.population import Population
from agents.strategies.base import AttackerGroup
from server.pruning.base import Decision, Pruning
from sim.engine import Simulation
from sim.kernel.component import FAMILIES
from sim.kernel.graphs import Graph
from sim.observer import Observer

USERS, TIES = 30, 60
SEED = 5


def random_world(seed, labels=None):
    """Ties, feature rows and labels of a graph that shares its sizes, and nothing else, with one of another seed."""
    rng = np.random.default_rng(seed)
    upper = np.stack(np.triu_indices(USERS, 1), axis=1)
    ties = upper[rng.choice(len(upper), TIES, replace=False)].tolist()
    rows = np.vstack([rng.integers(0, 2, (USERS - 2, 6)), np.zeros(6), np.ones(6)]).astype(float).tolist()
    drawn = np.append(rng.integers(0, 3, USERS - 3), [0, 1, 2]).tolist()
    return ties, {"rows": rows, "labels": drawn if labels is None else labels}


TRAINED = {
    "suspicion": {"kind": "mean-gap"},
    "pruning": {"kind": "threshold"},
    "refinement": {"kind": "attested"},
    "denoising": {"kind": "dual"},
    "training": {"kind": "gnn", "epochs": 5},
}
PRIVATE = {"features": {"kind": "piecewise", "epsilon": 2.0}, "ties": {"kind": "verification-list", "epsilon": 4.0}}
FAKES = {"name": "fakes", "count": 3, "targets": {"kind": "cyclic", "per_attacker": 4}}


def run_of(ties, graph, rounds=1, **sections):
    run = simulation(ties, USERS, graph=graph, rounds=rounds, seed=SEED, **sections)
    for _ in range(rounds):
        run.step()
    return run


def test_labels_of_test_users_change_nothing_that_the_server_does():
    ties, graph = random_world(1)
    sections = {"server": TRAINED, "privacy": PRIVATE, "population": {"attackers": [FAKES]}}
    first = run_of(ties, graph, 2, **sections)
    hidden = np.flatnonzero(first.observer.test)
    other = np.array(graph["labels"])
    other[hidden] = (other[hidden] + 1) % 3
    assert len(hidden) >= 6
    second = run_of(ties, {**graph, "labels": other.tolist()}, 2, **sections)
    assert first.observer.rows[-1]["test_accuracy"] != second.observer.rows[-1]["test_accuracy"]
    one, two = first.outcome, second.outcome
    assert np.array_equal(one.suspicion.score, two.suspicion.score, equal_nan=True)
    assert one.decision.gamma == two.decision.gamma and np.array_equal(one.decision.flagged, two.decision.flagged)
    assert np.array_equal(one.learned.structure.u, two.learned.structure.u)
    assert one.learned.result.probabilities.tobytes() == two.learned.result.probabilities.tobytes()
    for mine, theirs in zip(first.users, second.users):
        assert mine.feedback.flagged == theirs.feedback.flagged
        assert np.array_equal(mine.feedback.confirmed, theirs.feedback.confirmed)


TIE_KINDS = [kind.kind for kind in FAMILIES["privacy.ties"].classes() if kind.kind not in ("auto", "none")]


@pytest.mark.parametrize("across", ["fresh", "memoized"])
@pytest.mark.parametrize("kind", TIE_KINDS)
def test_a_report_does_not_depend_on_anybody_elses_truth(kind, across):
    """A tie between 2 and 3, and other features of user 4, change the reports of nobody else."""
    ties, graph = random_world(2)
    ties = [tie for tie in ties if tie != [2, 3]]
    rows = [list(row) for row in graph["rows"]]
    rows[4] = [1.0 - value for value in rows[4]]
    worlds = []
    for held, features in ((ties, graph["rows"]), ([*ties, [2, 3]], rows)):
        privacy = {**PRIVATE, "ties": {"kind": kind, "epsilon": 1.0}, "across_rounds": across}
        server = {"refinement": {"kind": "ldpgen" if kind == "group-degrees" else "none"}}
        run = simulation(held, USERS, graph={**graph, "rows": features}, privacy=privacy, server=server, rounds=2)
        run.round = 1
        sent = []
        for phase in range(run.protocol.ties.phases):
            call = run._call(phase)
            call.broadcast["groups"] = np.arange(USERS) % 4
            sent.append(run._reports(call, np.arange(USERS), []))
        worlds.append(sent)
    for one, two in zip(*worlds):
        for user in range(USERS):
            mine, theirs = one.row(user), two.row(user)
            features = np.array_equal(mine.feature_indices, theirs.feature_indices) and np.array_equal(
                mine.feature_values, theirs.feature_values
            )
            listed = np.array_equal(mine.tie_indices, theirs.tie_indices) and np.array_equal(
                mine.tie_levels, theirs.tie_levels
            )
            numbers = np.array_equal(mine.numbers, theirs.numbers)
            assert features or user == 4
            assert (listed and numbers) or user in (2, 3)


def black_box():
    """Every strategy kind that needs no grant, each in a group of otherwise default parts."""
    for family in ("features", "targets", "ties", "claims", "timing"):
        for kind in FAMILIES[f"attack.{family}"].classes():
            if not kind.needs and ":" not in kind.kind:
                yield {family: {"kind": kind.kind}}
    yield {"timing": {"kind": "on-off", "idle": "harmless"}, "claims": {"kind": "framing", "channel": "camouflage"}}


@pytest.mark.parametrize("parts", list(black_box()), ids=lambda p: "-".join(f"{v['kind']}" for v in p.values()))
def test_a_black_box_attack_does_not_depend_on_honest_truth(parts):
    """Two graphs with nothing in common but their sizes, three rounds: the same plans and the same bits sent."""
    plans = []
    group = {**FAKES, **parts}
    for seed in (3, 4):
        ties, graph = random_world(seed)
        run = run_of(ties, graph, 3, privacy=PRIVATE, population={"attackers": [group]})
        coalition = run.coalitions[0]
        sent = coalition.encode(coalition.plan_in_force, run._call(0))
        plans.append((coalition.plan_in_force, sent, coalition.state()["history"]))
    (one, sent, past), (two, again, earlier) = plans
    for name in ("active", "attacking", "asked", "earned", "partners", "wants_new_identity"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    for mine, theirs in ((one.lists, two.lists), (one.features, two.features), (sent.lists, again.lists)):
        assert mine.shape == theirs.shape and (mine != theirs).nnz == 0
    assert np.array_equal(sent.numbers, again.numbers) and (sent.features != again.features).nnz == 0
    assert all((a.lists != b.lists).nnz == 0 for a, b in zip(past, earlier)) and len(past) == 3


def test_feedback_is_about_own_claims_only_and_reaches_its_user():
    """At this epsilon most published ties are made of noise; nobody hears of one that it does not claim."""
    ties, graph = random_world(6)
    run = run_of(
        ties,
        graph,
        privacy={"ties": {"kind": "pair-bits", "epsilon": 0.5}},
        population={"attackers": [{**FAKES, "ties": {"kind": "clique"}}]},
        server={"refinement": {"kind": "randomized-response"}, **{k: TRAINED[k] for k in ("suspicion", "pruning")}},
    )
    structure, stable = run.outcome.learned.structure, run.directory.stable
    published = {frozenset(pair) for pair in zip(stable[structure.u].tolist(), stable[structure.v].tolist())}
    claims = [set(user.trusted[0].tolist()) for user in run.users[:USERS]]
    plan = run.coalitions[0].plan_in_force
    claims += [set(plan.lists[[row]].indices.tolist()) for row in range(3)]
    confirmed = 0
    for user, own in zip(run.users, claims):
        heard = user.feedback.confirmed.tolist()
        assert heard == sorted(other for other in own if frozenset((user.ident, other)) in published)
        assert user.feedback.flagged == run.outcome.decision.flagged[run.directory.public[user.ident]]
        confirmed += len(heard)
    assert 0 < confirmed < 0.6 * 2 * len(published)


CAUGHT = []


class Curious(Pruning):
    """Keeps what it is handed."""

    def decide(self, suspicion, context):
        context.validation_accuracy(np.zeros(len(suspicion.score), dtype=bool))
        CAUGHT.append(context)
        return Decision(np.zeros(len(suspicion.score), dtype=bool), float("nan"))


def reachable(root):
    """Every object that references from `root` lead to, closures of functions included."""
    seen, queue = {}, [root]
    while queue:
        thing = queue.pop()
        if id(thing) in seen or isinstance(thing, (type, types.ModuleType, types.BuiltinFunctionType)):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, types.FunctionType):
            queue += [*(cell.cell_contents for cell in thing.__closure__ or ()), *(thing.__defaults__ or ())]
        else:
            queue += gc.get_referents(thing)
    return list(seen.values())


def test_nothing_that_a_pruning_rule_is_handed_leads_to_the_truth():
    CAUGHT.clear()
    ties, graph = random_world(7)
    stages = []
    server = {**TRAINED, "pruning": {"kind": "test_who_learns_what:Curious"}}
    run = simulation(ties, USERS, graph=graph, privacy=PRIVATE, server=server, population={"attackers": [FAKES]})
    run.progress = lambda round, stage: stages.append(stage)
    run.step()
    assert "training" in stages
    (context,) = CAUGHT
    found = reachable(context)
    assert any(thing is context.evidence.lists for thing in found) and len(found) > 100
    rooms = (Simulation, Graph, Observer, Population, HonestUser, Attacker, Coalition, AttackerGroup)
    assert not [thing for thing in found if isinstance(thing, rooms)]
    truth = [run.population.lists, run.population.features, run.directory, run.directory.stable, run.observer.test]
    assert not [thing for thing in found if any(thing is secret for secret in truth)]
    assert set(context.evidence.extra) == {"asymmetry_penalty", "epoch"}
    labelled = run.observer.train | run.observer.validation
    assert (context.evidence.labels >= 0).sum() == labelled.sum() < USERS


def test_the_servers_rows_are_the_reports_under_other_names():
    ties, graph = random_world(8)
    run = simulation(ties, USERS, graph=graph, privacy=PRIVATE, population={"attackers": [FAKES]})
    run.step()
    plans = [coalition.plan_in_force for coalition in run.coalitions]
    batch = run._reports(run._call(0), np.arange(USERS), plans)
    public = run.directory.public
    evidence = run.server.evidence()
    assert sorted(public.tolist()) == list(range(USERS + 3)) and (public != np.arange(USERS + 3)).any()
    assert (evidence.lists[public][:, public] != batch.lists).nnz == 0
    rectified = run.protocol.features.rectify(batch.features)
    assert (evidence.features[public] != rectified).nnz == 0
    held = [evidence.features.data, evidence.lists.data, evidence.lists.indices]
    ours = [run.population.features.data, run.population.lists.data, run.population.lists.indices]
    assert not any(np.shares_memory(a, b) for a in held for b in ours)


@pytest.mark.parametrize("kind", ["none", "piecewise"])
def test_what_the_server_holds_shares_no_memory_with_what_users_hold(kind):
    ties, graph = random_world(9)
    features = {"kind": kind, **({} if kind == "none" else {"epsilon": 1.0})}
    privacy = {"features": features, "ties": {"kind": "trusted-curator", "epsilon": 1.0}}
    run = run_of(ties, graph, privacy=privacy)
    evidence = run.server.evidence()
    held = [evidence.features.data, evidence.features.indices, evidence.lists.data, evidence.lists.indices]
    own = [run.population.features, run.population.lists, run.observer.graph.features, run.observer.graph.ties]
    ours = [array for matrix in own for array in (matrix.data, matrix.indices, matrix.indptr)]
    assert not any(np.shares_memory(a, b) for a in [*held, evidence.labels] for b in [*ours, run.observer.graph.labels])
