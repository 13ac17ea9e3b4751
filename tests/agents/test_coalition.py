"""A coalition's plans and reports."""

import pickle

import numpy as np
import pytest
from coalitions import coalition, group, opened, public

from agents.attacker import Attacker
from agents.coalition import Coalition
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Feedback
from agents.strategies.base import ClaimStrategy, TimingStrategy
from sim.kernel.randomness import Streams


def same(first, second):
    return (
        first.senders.tolist() == second.senders.tolist()
        and (first.features != second.features).nnz == 0
        and (first.lists != second.lists).nnz == 0
        and first.numbers.tolist() == second.numbers.tolist()
    )


def test_the_default_attack_on_a_graph_like_cora():
    """27 fakes among 2,708 users: 12 victims each, no two alike, every one claimed at 5 through the client."""
    protocol = public(2735, 1433, Piecewise(epsilon=0.1), VerificationList(epsilon=5.0, levels=5), 3.9)
    attackers = coalition(27, 2708)
    call = opened(protocol=protocol)
    plan = attackers.plan(call)
    assert len(plan.victims) == len(plan.asked[0]) == 324
    assert len(plan.partners[0]) == 0  # 12 targets are more than half the mean degree
    assert set(plan.lists.data.tolist()) == {5}
    batch = attackers.encode(plan, call)
    assert batch.features.data == pytest.approx(np.full(27, 40.00833), rel=1e-5)  # B at epsilon 0.1
    assert len(set(batch.features.indices.tolist())) == 1
    p, q0 = np.exp(5) / (np.exp(5) + 5), 5 / (np.exp(5) + 5)
    kept = batch.lists[plan.asked[0] - 2708, plan.asked[1]] == 5
    assert abs(kept.sum() - 324 * p) < 4 * np.sqrt(324 * p * (1 - p)) + 1
    noise = batch.lists.nnz - np.count_nonzero(batch.lists[plan.asked[0] - 2708, plan.asked[1]])
    expected = (27 * 2734 - 324) * q0
    assert abs(noise - expected) < 4 * np.sqrt(expected)


def test_plans_depend_on_the_seed_and_the_name_alone():
    first, again = coalition().plan(opened()), coalition().plan(opened())
    assert (first.lists != again.lists).nnz == 0 and (first.features != again.features).nnz == 0
    assert first.asked[1].tolist() == again.asked[1].tolist()
    assert coalition(seed=2).plan(opened()).asked[1].tolist() != first.asked[1].tolist()
    assert coalition(name="others").plan(opened()).asked[1].tolist() != first.asked[1].tolist()


def test_targets_and_ties_stay_over_the_rounds():
    attackers = coalition(targets={"kind": "random", "per_attacker": 1}, ties={"kind": "preferential"})
    plans = [attackers.plan(opened(round, memoized=False)) for round in (1, 2, 3)]
    assert all(plan.asked[1].tolist() == plans[0].asked[1].tolist() for plan in plans)
    assert all(plan.partners[1].tolist() == plans[0].partners[1].tolist() for plan in plans)


@pytest.mark.parametrize("channel", ["compliant", "bypass", "camouflage"])
@pytest.mark.parametrize("idle", ["silent", "harmless"])
def test_a_members_own_report_is_its_row_bit_for_bit(channel, idle):
    attackers = coalition(
        claims={"kind": "collusive", "channel": channel}, timing={"kind": "ramp", "over": 2, "idle": idle}
    )
    plan = attackers.plan(opened())
    whole = attackers.encode(plan, opened())
    assert len(whole.senders) == (6 if idle == "harmless" else 3)
    for row, member in enumerate(whole.senders.tolist()):
        alone = attackers.encode(plan, opened(), only=np.array([member]))
        assert same(alone, whole.take(np.array([row])))
    silent = plan.members[~plan.active]
    assert len(attackers.encode(plan, opened(), only=silent).senders) == 0


def test_an_attacker_agent_reports_its_row_of_the_plan_in_force():
    mesa = pytest.importorskip("mesa")
    model = mesa.Model(rng=1)
    attackers = coalition(timing={"kind": "ramp", "over": 2})
    agents = [Attacker(model, int(member), attackers) for member in attackers.members]
    with pytest.raises(RuntimeError, match="no plan for round 1"):
        agents[0].report(opened())
    plan = attackers.plan(opened())
    whole = attackers.encode(plan, opened())
    for agent, active in zip(agents, plan.active):
        agent.hear(opened())
        if active:
            mine, row = agent.report(opened()), whole.row(whole.senders.tolist().index(agent.ident))
            for field in ("feature_indices", "feature_values", "tie_indices", "tie_levels", "numbers"):
                assert getattr(mine, field).tobytes() == getattr(row, field).tobytes()
        else:
            with pytest.raises(RuntimeError, match="silent in round 1"):
                agent.report(opened())
    assert agents[0].group == "fakes"
    with pytest.raises(RuntimeError, match="no plan for round 2"):
        agents[0].report(opened(2))


def test_a_resumed_coalition_goes_on_as_if_it_had_never_stopped():
    options = {"claims": {"kind": "adaptive"}, "knowledge": ["protocol", "feedback"]}

    def learnt(plan):
        return {m: Feedback(m % 2 == 0, plan.asked[1][plan.asked[0] == m][:1]) for m in plan.members.tolist()}

    straight = coalition(**options)
    plans = [straight.plan(opened(1))]
    for round in (2, 3, 4):
        plans.append(straight.plan(opened(round), learnt(plans[-1])))
    first = coalition(**options)
    half = first.plan(opened(2), learnt(first.plan(opened(1))))
    second = coalition(**options)
    second.restore(pickle.loads(pickle.dumps(first.state())))
    assert second.plan_in_force.round == 2
    for round, expected in ((3, plans[2]), (4, plans[3])):
        half = second.plan(opened(round), learnt(half))
        assert (half.lists != expected.lists).nnz == 0


def test_a_group_of_nobody_and_a_group_of_one():
    nobody = Coalition(group(count=0), np.empty(0, dtype=np.int64), Streams(1))
    plan = nobody.plan(opened())
    assert len(nobody.encode(plan, opened()).senders) == 0 and plan.lists.shape == (0, 60)
    one = coalition(1, 59, claims={"kind": "collusive"}, ties={"kind": "clique"})
    batch = one.encode(one.plan(opened()), opened())
    assert batch.senders.tolist() == [59] and batch.lists.shape == (1, 60)


class HalfAMask(TimingStrategy):
    """Answers for half of the members."""

    def attacking(self, view):
        return np.ones(view.size // 2, dtype=bool)


class Vain(ClaimStrategy):
    """Every member rates itself."""

    def rate(self, view, entries):
        return type(entries).of(np.arange(view.size), view.members, np.ones(view.size, dtype=bool)).at(1)


class Twofold(ClaimStrategy):
    """Rates every entry twice."""

    def rate(self, view, entries):
        return entries.take(np.tile(np.arange(len(entries.rows)), 2)).at(1)


def test_strategies_that_break_their_contract_are_told():
    with pytest.raises(ValueError, match=r"timing of 'fakes': found shape \(3,\); expected \(6,\)"):
        coalition(timing=HalfAMask()).plan(opened())
    with pytest.raises(ValueError, match="a member rates itself"):
        coalition(claims=Vain()).plan(opened())
    with pytest.raises(ValueError, match="an entry is rated twice"):
        coalition(claims=Twofold()).plan(opened())


def test_two_groups_do_not_know_of_each_other():
    protocol = public(66)
    first = Coalition(group(name="one"), np.arange(54, 60), Streams(1))
    seen = first.view(opened(protocol=protocol))
    assert set(range(60, 66)) <= set(seen.others.tolist())
