"""Which levels attackers claim."""

import numpy as np
from coalitions import HONEST, coalition, opened, public, view

from agents.privacy.ties.binary_list import BinaryList
from agents.protocol import Feedback
from agents.strategies import claims as kinds
from agents.strategies.base import Entries

# Members 0 and 1 (ids 54 and 55) ask for 7, 3 and 5, 7, and are tied to each other.
TIES = Entries.of(
    np.array([0, 0, 1, 1, 0, 1]), np.array([7, 3, 5, 7, 55, 54]), np.array([False, False, False, False, True, True])
)


def lists(rated, members=6, participants=60):
    """Rated entries as {member: {id: level}}, level 0 left out."""
    found = {}
    for row, ident, level in zip(rated.rows.tolist(), rated.ids.tolist(), rated.levels.tolist()):
        if level:
            found.setdefault(row, {})[ident] = level
    return found


def test_maximal_claims_kappa_everywhere():
    assert lists(kinds.Maximal().rate(view(), TIES)) == {0: {7: 5, 3: 5, 55: 5}, 1: {5: 5, 7: 5, 54: 5}}


def test_level_match_claims_the_level_of_an_acknowledged_stranger():
    assert lists(kinds.LevelMatch().rate(view(), TIES)) == {0: {7: 1, 3: 1, 55: 1}, 1: {5: 1, 7: 1, 54: 1}}
    assert kinds.LevelMatch(level=9).rate(view(), TIES).levels.tolist() == [5] * 6


def test_minimal_claims_the_first_target_and_asks_all():
    rated = kinds.Minimal().rate(view(), TIES)
    assert lists(rated) == {0: {7: 1}, 1: {5: 1}}
    assert rated.ids.tolist() == TIES.ids.tolist()


def test_honest_like_draws_a_level_a_pair_seen_alike_from_both_ends():
    exact = kinds.HonestLike(jitter=0.0).rate(view(), TIES).levels
    assert exact[4] == exact[5]  # the tie between 54 and 55
    assert (exact == kinds.HonestLike(jitter=0.0).rate(view(), TIES).levels).all()
    n = 3000
    many = Entries.of(np.repeat([0, 1], n), np.tile(np.arange(n) + 100, 2), np.zeros(2 * n, dtype=bool))
    calm = kinds.HonestLike(jitter=0.0).rate(view(), many).levels
    expected, found = 2 * n / 5, np.bincount(calm, minlength=6)[1:]
    assert ((found - expected) ** 2 / expected).sum() < 18.5  # chi-square with 4 degrees of freedom: 1 in 1,000
    moved = kinds.HonestLike(jitter=0.2).rate(view(), many).levels.astype(int) - calm
    assert set(moved.tolist()) == {-1, 0, 1}
    inner = (calm > 1) & (calm < 5)  # clipping hides moves at either end
    share = (moved[inner] != 0).mean()
    assert abs(share - 0.2) < 4 * np.sqrt(0.16 / inner.sum())


def test_honest_like_level_of_a_pair_does_not_depend_on_the_other_entries():
    whole = kinds.HonestLike().rate(view(), TIES).levels
    part = kinds.HonestLike().rate(view(), TIES.take(np.array([3, 0]))).levels
    assert part.tolist() == [whole[3], whole[0]]


def test_collusive_adds_every_fellow_at_the_highest_level():
    rated = lists(kinds.Collusive(level=2).rate(view(members=3, protocol=public(participants=57)), TIES))
    assert rated == {0: {7: 2, 3: 2, 55: 5, 56: 5}, 1: {5: 2, 7: 2, 54: 5, 56: 5}, 2: {54: 5, 55: 5}}
    assert lists(kinds.Collusive().rate(view(), TIES))[0][7] == 5


def test_collusive_partners_are_the_whole_coalition():
    plan = coalition(claims={"kind": "collusive"}, ties={"kind": "none"}).plan(opened())
    assert len(plan.partners[0]) == 15
    assert (plan.partners[0] < plan.partners[1]).all()


def test_framing_earns_trust_during_the_camouflage_and_then_rates_low():
    attackers = coalition(
        targets={"kind": "cyclic", "per_attacker": 5},
        ties={"kind": "clique"},
        claims={"kind": "framing", "camouflage_rounds": 2, "low": 1},
    )
    first, second, third = (attackers.plan(opened(round)) for round in (1, 2, 3))
    goal = second.earned.astype(int)
    assert set(goal.tolist()) <= {3, 4, 5} and len(set(goal.tolist())) > 1
    assert first.earned.tolist() == [-(-g // 2) for g in goal]  # half way, rounded up
    assert third.earned.tolist() == goal.tolist()  # trust once earned stays
    for plan, towards in ((first, first.earned), (second, goal), (third, np.ones(30))):
        rows, ids = plan.asked
        assert plan.lists[rows - HONEST, ids].tolist() == towards.tolist()
        inside = plan.lists[:, np.arange(54, 60)].toarray()
        assert (inside == 5 * (1 - np.eye(6))).all()


def test_framing_can_have_earned_trust_before_the_run_and_can_answer_nothing():
    plan = coalition(claims={"kind": "framing", "camouflage_rounds": 0, "low": 0}, ties={"kind": "none"}).plan(opened())
    assert plan.earned.min() >= 3
    assert plan.lists.nnz == 0
    assert len(plan.asked[0]) == HONEST  # asked all the same


def test_only_framing_earns_anything():
    for kind in ("maximal", "level-match", "minimal", "honest-like", "collusive"):
        assert not coalition(claims={"kind": kind}).plan(opened()).earned.any()


def test_binary_protocols_clip_every_claim_to_one():
    protocol = public(ties=BinaryList(epsilon=3.0))
    for kind in ("maximal", "level-match", "minimal", "honest-like", "collusive", "framing"):
        plan = coalition(claims={"kind": kind}).plan(opened(protocol=protocol))
        assert set(plan.lists.data.tolist()) == {1}
        assert set(plan.earned.tolist()) <= {0, 1}


# Adaptive ------------------------------------------------------------------------------------------------------------


def learner(members=18, **options):
    return coalition(
        members,
        300,
        targets={"kind": "random", "per_attacker": 8},
        ties={"kind": "none"},
        claims={"kind": "adaptive", **options},
        knowledge=["protocol", "feedback"],
    )


def asked_by(plan, member):
    return plan.asked[1][plan.asked[0] == member]


def what(plan):
    """{member: (level claimed, number of targets)}"""
    return {m: (int(plan.lists[[k]].data[0]), len(asked_by(plan, m))) for k, m in enumerate(plan.members.tolist())}


CALL = public(participants=318)
ARMS = {(level, count) for level in (1, 3, 5) for count in (2, 4, 8)}


def test_adaptive_spreads_over_its_nine_arms_first():
    taken = list(what(learner().plan(opened(protocol=CALL))).values())
    assert set(taken) == ARMS
    assert all(taken.count(arm) == 2 for arm in ARMS)


def test_adaptive_without_exploration_settles_on_the_arm_that_paid():
    attackers = learner(explore=0.0)
    plan = attackers.plan(opened(1, protocol=CALL))
    for round in (2, 3):
        feedback = {}
        for member, (level, _) in what(plan).items():
            published = asked_by(plan, member) if level == 3 else np.empty(0, dtype=np.int64)
            feedback[member] = Feedback(level == 5, published)
        plan = attackers.plan(opened(round, protocol=CALL), feedback)
        assert set(what(plan).values()) == {(3, 8)}


def test_adaptive_shuns_what_gets_it_flagged():
    attackers = learner(explore=0.0, penalty=100.0)
    plan = attackers.plan(opened(1, protocol=CALL))
    feedback = {m: Feedback(arm != (1, 2), asked_by(plan, m)) for m, arm in what(plan).items()}
    assert set(what(attackers.plan(opened(2, protocol=CALL), feedback)).values()) == {(1, 2)}


def test_adaptive_explores_within_its_bounds():
    attackers = learner(members=90, explore=0.5)
    protocol = public(participants=390)
    plan = attackers.plan(opened(1, protocol=protocol))
    feedback = {m: Feedback(False, asked_by(plan, m)) for m in plan.members.tolist()}
    taken = list(what(attackers.plan(opened(2, protocol=protocol), feedback)).values())
    assert set(taken) <= ARMS
    best = max(set(taken), key=taken.count)
    assert best[1] == 8
    assert 30 < taken.count(best) < 70  # half of 90 exploit, a ninth of the rest agrees by chance: 50 +- 4 x 4.7


def test_adaptive_takes_the_same_path_again():
    paths = []
    for _ in range(2):
        attackers, seen = learner(), []
        plan = attackers.plan(opened(1, protocol=CALL))
        for round in (2, 3, 4):
            feedback = {m: Feedback(m % 3 == 0, asked_by(plan, m)[:2]) for m in plan.members.tolist()}
            plan = attackers.plan(opened(round, protocol=CALL), feedback)
            seen.append(what(plan))
        paths.append(seen)
    assert paths[0] == paths[1]
