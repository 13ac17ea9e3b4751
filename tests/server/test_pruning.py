"""Pruning rules: thresholds and their choice, shares, the step-up procedure by hand, exoneration, memory."""

import numpy as np
import pytest
from worlds import FOUR, attacked_lists, block_graph, evidence, make_world

from server.evidence import Suspicion
from server.pruning.base import PruningContext
from server.pruning.benjamini_hochberg import BenjaminiHochberg, step_up
from server.pruning.threshold import Threshold
from server.pruning.top_share import TopShare
from server.suspicion.base import SuspicionScore
from server.suspicion.combined import Combined
from server.suspicion.mean_gap import MeanGap
from sim.kernel.errors import InputError
from sim.kernel.randomness import Streams


def context(held=None, accuracy=None, epoch=0, scorer=None, data=None):
    def never(gone):
        raise AssertionError("no training was needed")

    return PruningContext(
        data if data is not None else evidence(FOUR, 5.0, 3),
        scorer or MeanGap(),
        Streams(0),
        accuracy or never,
        {} if held is None else held,
        epoch,
    )


def suspicion(*scores):
    return Suspicion(np.array(scores, float))


def test_fixed_gamma_flags_strictly_above():
    found = Threshold(gamma=0.5).decide(suspicion(0.5, 0.6, np.nan, -1), context())
    assert found.flagged.tolist() == [False, True, False, False] and found.gamma == 0.5


def test_midpoint_is_half_the_printed_gap():
    # kappa = 3, epsilon 5: (2p - 1)(kappa - 1)/2 with p = e^5/(e^5 + 3).
    p = np.exp(5) / (np.exp(5) + 3)
    assert Threshold(gamma="midpoint").decide(suspicion(0, 0, 0, 0), context()).gamma == pytest.approx(2 * p - 1)


def test_auto_takes_the_best_on_validation_and_remembers_it():
    tried, held = [], {}

    def accuracy(gone):
        tried.append(int(gone.sum()))
        return 0.8 if gone.sum() == 2 else 0.7

    scores = Suspicion(np.arange(100.0))
    found = Threshold().decide(scores, context(held, accuracy))
    assert np.flatnonzero(found.flagged).tolist() == [98, 99] and found.gamma == 97
    assert len(tried) <= 5 and tried[0] == 0
    again = Threshold().decide(scores, context(held, epoch=0))  # no training: remembered
    assert again.gamma == found.gamma
    count = len(tried)
    Threshold().decide(scores, context(held, accuracy, epoch=1))
    assert len(tried) > count  # new noise, new choice


def test_auto_prefers_infinity_on_a_tie():
    found = Threshold().decide(Suspicion(np.arange(100.0)), context(accuracy=lambda gone: 0.5))
    assert found.gamma == np.inf and not found.flagged.any()


def test_auto_without_training_or_scores_is_infinity():
    assert Threshold().decide(suspicion(1, 2), context(accuracy=lambda gone: float("nan"))).gamma == np.inf
    assert Threshold().decide(suspicion(np.nan, np.nan), context(accuracy=lambda gone: 0.5)).gamma == np.inf


def test_top_share_counts_reporters_and_leaves_ties():
    scores = Suspicion(np.r_[np.arange(50.0), np.full(50, np.nan)])
    found = TopShare(share=0.1).decide(scores, context())
    assert np.flatnonzero(found.flagged).tolist() == [45, 46, 47, 48, 49] and found.gamma == 44
    assert not TopShare(share=0.1).decide(Suspicion(np.ones(50)), context()).flagged.any()
    assert not TopShare(share=0.1).decide(suspicion(1, 2), context()).flagged.any()


def test_step_up_by_hand():
    # q = 0.1, five tests: limits .02 .04 .06 .08 .10. The third passes although the second does not.
    assert step_up(np.array([0.5, 0.01, 0.05, 0.045, 0.9]), 0.1) == 0.05
    assert step_up(np.array([0.5, 0.9]), 0.1) == -1.0
    assert step_up(np.zeros(0), 0.1) == -1.0


def test_permanent_flags_stay_and_others_come_back():
    for rule, field in ((Threshold(gamma=1.0), "gamma"), (Threshold(gamma=1.0, permanent=True), "gamma")):
        held: dict = {}
        rule.decide(suspicion(2, 0, 0), context(held))
        second = rule.decide(suspicion(0, 2, 0), context(held)).flagged.tolist()
        assert second == ([True, True, False] if rule.permanent else [False, True, False]), field


def test_permanent_flags_survive_newcomers():
    held: dict = {}
    rule = TopShare(share=0.5, permanent=True)
    rule.decide(suspicion(1, 2), context(held))
    assert rule.decide(suspicion(1, 1, 1, 5), context(held)).flagged.tolist() == [False, True, False, True]


def test_false_discovery_control_needs_p_values():
    with pytest.raises(InputError, match=r"'mean-gap' does not give; those that do: combined, gap-sum, gated-sum"):
        BenjaminiHochberg().decide(suspicion(1, 2), context())


def test_skipped_suspicion_flags_nobody():
    found = BenjaminiHochberg().decide(suspicion(np.nan, np.nan), context())
    assert not found.flagged.any() and found.gamma == np.inf


class Framed(SuspicionScore):
    """Users 2 and 3 look guilty only through user 1."""

    def score(self, evidence, streams):
        return Suspicion(np.array([0.0, 9.0, 5.0, 6.0]), np.array([0.9, 1e-6, 1e-3, 1e-4]))

    def rescore(self, evidence, suspicion, user, without):
        return 0.5 if user == 2 and without[1] else float(suspicion.p_value[user])


def test_framed_users_are_released_after_their_framer():
    scored = Framed().score(None, Streams(0))
    flagged = {
        free: BenjaminiHochberg(exoneration=free).decide(scored, context(scorer=Framed())).flagged.tolist()
        for free in (False, True)
    }
    assert flagged[False] == [False, True, True, True]
    assert flagged[True] == [False, True, False, True]


def test_a_framed_victim_is_ordinary_without_its_framers():
    """Nine fakes whom user 0 rates 5 and who answer 1 make it look like an over-claimer; knowing them clears it."""
    rng = np.random.default_rng(4)
    ties, labels = block_graph(800, 4.0, rng)
    world = make_world(ties, labels, 5, "correlated", rng, "2", 9, 1)
    rows = world.truth.tolil()
    rows[800:, :] = 0
    rows[0, 800:], rows[800:, 0] = 5, 1
    world.truth, world.verbatim[:] = rows.tocsr(), False
    held = evidence(attacked_lists(world, "none", 6.0, rng), 6.0, 5)
    scored = Combined().score(held, Streams(0))
    fakes, nobody = world.attackers, np.zeros(held.n, bool)
    assert Combined().rescore(held, scored, 0, nobody) == pytest.approx(scored.p_value[0])
    assert scored.p_value[0] < 1e-4
    assert Combined().rescore(held, scored, 0, fakes) > 0.01


def test_combined_is_the_weighted_smaller_p_value():
    rng = np.random.default_rng(5)
    ties, labels = block_graph(300, 4.0, rng)
    held = evidence(attacked_lists(make_world(ties, labels, 5, "maximal", rng), "none", 5.0, rng), 5.0, 5)
    found = Combined(row_weight=0.25).score(held, Streams(3))
    row, pairs = found.details["row_p_value"], found.details["pairs_p_value"]
    assert found.p_value == pytest.approx(np.minimum(np.minimum(row / 0.25, pairs / 0.75), 1))
    assert found.score == pytest.approx(-np.log(np.minimum(row / 0.25, pairs / 0.75)))


@pytest.mark.parametrize("attack", ["1", "2", "9"])
def test_several_attacks_fall_and_honest_users_stay(attack):
    rng = np.random.default_rng(6)
    ties, labels = block_graph(1000, 4.0, rng)
    world = make_world(ties, labels, 5, "correlated", rng, attack, 20, 12)
    held = evidence(attacked_lists(world, attack, 5.0, rng), 5.0, 5)
    scored = Combined().score(held, Streams(0))
    flagged = BenjaminiHochberg().decide(scored, context(scorer=Combined(), data=held)).flagged
    assert flagged[world.attackers].mean() >= 0.9
    assert flagged[~world.attackers].mean() <= 0.01


def test_missing_reports_do_not_disturb():
    """A fifth of the users is silent: the rest is judged, nobody silent is flagged, honest users stay."""
    rng = np.random.default_rng(7)
    ties, labels = block_graph(1000, 4.0, rng)
    world = make_world(ties, labels, 5, "correlated", rng, "1", 20, 12)
    lists = attacked_lists(world, "1", 5.0, rng)
    reported = (rng.random(world.n) > 0.2) | world.attackers
    rows = lists.tolil()
    rows[np.flatnonzero(~reported)] = 0
    left = rows.tocsr()
    left.sort_indices()
    held = evidence(left, 5.0, 5, reported=reported)
    scored = Combined().score(held, Streams(0))
    flagged = BenjaminiHochberg().decide(scored, context(scorer=Combined(), data=held)).flagged
    assert np.isnan(scored.score[~reported]).all() and not flagged[~reported].any()
    assert flagged[world.attackers].mean() >= 0.9
    assert flagged[reported & ~world.attackers].mean() <= 0.01
