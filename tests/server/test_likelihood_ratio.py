"""The fixed-table likelihood ratio: one entry by hand, the fast sum against all pairs, and its blind spot."""

import math

import numpy as np
import pytest
from worlds import auc, block_graph, evidence, make_world, noisy_lists

from server.channel import Channel
from server.suspicion.likelihood_ratio import LikelihoodRatio
from sim.kernel.randomness import Streams


def test_one_cell_by_hand():
    # One level, epsilon ln 3: p = 3/4, q = 1/4. Nine others, mean degree 3, three targets, always answered.
    table = LikelihoodRatio(targets=3.0, answered=1.0, trust="maximal").table(Channel(math.log(3), 1), 3.0, 9)
    honest = 2 / 3 * (1 / 16) + 1 / 3 * (9 / 16)
    # Claim 1, answer 1: the same law as a tie, (3/4)^2.
    expected = math.log((2 / 3 * honest + 1 / 3 * 9 / 16) / honest)
    assert table[1, 1] == pytest.approx(expected)


def test_sparse_sum_equals_the_sum_over_all_pairs():
    rng = np.random.default_rng(2)
    ties, labels = block_graph(60, 4.0, rng)
    lists = noisy_lists(make_world(ties, labels, 5, "correlated", rng), 3.0, rng)
    held = evidence(lists, 3.0, 5)
    rule = LikelihoodRatio()
    table = rule.table(Channel(3.0, 5), held.protocol.mean_degree, 59)
    dense = lists.toarray()
    plain = table[dense, dense.T]
    np.fill_diagonal(plain, 0)
    assert rule.score(held, Streams(0)).score == pytest.approx(plain.sum(1))


def test_strong_where_its_assumption_holds_and_blind_elsewhere():
    rng = np.random.default_rng(7)
    ties, labels = block_graph(500, 4.0, rng)
    found = {}
    for attack in ("1", "5"):
        world = make_world(ties, labels, 5, "correlated", rng, attack, 20, 12)
        held = evidence(noisy_lists(world, 5.0, rng), 5.0, 5)
        found[attack] = auc(LikelihoodRatio().score(held, Streams(0)).score, world.attackers)
    assert found["1"] > 0.99 and found["5"] < 0.6
