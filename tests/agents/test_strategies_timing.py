"""When attackers attack."""

import numpy as np
from coalitions import coalition, opened

from agents.protocol import Feedback

NOBODY = np.empty(0, dtype=np.int64)


def schedule(rounds, **timing):
    attackers = coalition(timing=timing)
    return [attackers.plan(opened(round)).attacking.tolist() for round in range(1, rounds + 1)]


def test_always_sleeper_and_on_off():
    assert schedule(2, kind="always") == [[True] * 6] * 2
    assert schedule(4, kind="sleeper", wake=3) == [[False] * 6] * 2 + [[True] * 6] * 2
    assert [row[0] for row in schedule(7, kind="on-off", attacks=2, pauses=1)] == [
        True,
        True,
        False,
        True,
        True,
        False,
        True,
    ]


def test_ramp_wakes_members_one_after_another():
    rows = np.array(schedule(5, kind="ramp", over=4))
    assert rows.sum(axis=1).tolist() == [2, 3, 5, 6, 6]  # ceil(6 r / 4)
    assert (rows[1:] >= rows[:-1]).all()  # who is awake stays awake


def test_silent_members_report_nothing_and_ask_nobody():
    attackers = coalition(timing={"kind": "sleeper", "wake": 2})
    plan = attackers.plan(opened(1))
    assert not plan.active.any() and not len(plan.asked[0]) and not plan.lists.nnz
    assert len(attackers.encode(plan, opened(1)).senders) == 0
    plan = attackers.plan(opened(2))
    assert len(attackers.encode(plan, opened(2)).senders) == 6 and len(plan.asked[0])


def test_harmless_members_send_an_ordinary_report_without_ties_whatever_their_channel():
    attackers = coalition(
        timing={"kind": "sleeper", "wake": 2, "idle": "harmless"},
        claims={"kind": "maximal", "channel": "bypass"},
        features={"kind": "illegal-dense"},
    )
    plan = attackers.plan(opened(1))
    assert plan.active.all() and not plan.attacking.any()
    assert not plan.lists.nnz and not len(plan.asked[0]) and not len(plan.partners[0])
    batch = attackers.encode(plan, opened(1))
    assert batch.senders.tolist() == list(range(54, 60))
    assert (np.diff(batch.features.indptr) == 3).all()
    # noise alone: each of 6 x 59 zero entries is reported above zero with probability 5/(e^3 + 5) = 0.2
    assert abs(batch.lists.nnz - 354 * 0.199) < 5 * np.sqrt(354 * 0.199 * 0.801)
    awake = attackers.encode(attackers.plan(opened(2)), opened(2))
    assert (np.diff(awake.features.indptr) == 20).all()


def test_ties_between_members_need_both_to_be_awake():
    attackers = coalition(timing={"kind": "ramp", "over": 3}, ties={"kind": "clique"})
    plan = attackers.plan(opened(1))
    awake = set(plan.members[plan.attacking].tolist())
    assert len(awake) == 2
    assert set(zip(*map(np.ndarray.tolist, plan.partners))) == {tuple(sorted(awake))}
    assert set(plan.asked[0].tolist()) == awake
    assert not plan.lists[~plan.attacking].nnz


def test_whitewash_leaves_for_good_once_flagged_and_wants_a_new_identity():
    attackers = coalition(timing={"kind": "whitewash"}, knowledge=["protocol", "feedback"])
    assert not attackers.plan(opened(1)).wants_new_identity.any()
    learnt = {55: Feedback(True, NOBODY), 56: Feedback(False, NOBODY), 3: Feedback(True, NOBODY)}
    plan = attackers.plan(opened(2), learnt)
    assert plan.members[plan.wants_new_identity].tolist() == [55]
    assert plan.members[~plan.active].tolist() == [55]
    plan = attackers.plan(opened(3), {57: Feedback(True, NOBODY)})
    assert plan.members[plan.wants_new_identity].tolist() == [55, 57]
