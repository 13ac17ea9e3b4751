"""Row conformity: exact binomial numbers by hand, validity of the null, and who is caught."""

import math

import numpy as np
import pytest
from worlds import attacked_lists, block_graph, evidence, make_world, noisy_lists

from server.suspicion.row_conformity import RowConformity, conformity_p, unanswered
from sim.kernel.randomness import Streams


def test_counts_of_unanswered_entries():
    from worlds import FOUR

    counts, silent_about = unanswered(evidence(FOUR, 5.0, 3))
    # Only "2 about 3, level 2" has no answer. Who reports nothing about v: 3 about 0; 2 about 1; 1, 3 about 2; 0 about 3.
    assert counts.tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert silent_about.tolist() == [1, 1, 2, 1]


def test_empty_row_by_hand():
    # 20 users say nothing about v, each entry is spurious with probability 0.2: P(none) = 0.8^20; both doublings.
    assert conformity_p(np.zeros((1, 2), int), np.array([20]), 0.1)[0] == pytest.approx(4 * 0.8**20)


def test_one_sided_row_by_hand():
    # 4 of 20 entries, all at one of two levels: total is ordinary; P(Bin(4, 1/2) >= 4) = 1/16, times 2 levels, times 2.
    assert conformity_p(np.array([[4, 0]]), np.array([20]), 0.1)[0] == pytest.approx(4 / 16)


def test_one_level_has_no_shape():
    found = conformity_p(np.array([[4]]), np.array([20]), 0.2)[0]
    assert found == pytest.approx(1.0)  # 2 x two-sided, clipped


def test_p_values_are_valid_under_the_null():
    """60,000 null rows drawn from the law itself: P(p <= a) may not exceed a by four standard errors."""
    rng = np.random.default_rng(1)
    silent_about = rng.integers(50, 3000, 60_000)
    counts = rng.multinomial(rng.binomial(silent_about, 0.03), [0.2] * 5)
    p = conformity_p(counts, silent_about, 0.03 / 5)
    for level in (0.5, 0.1, 0.01, 0.001):
        assert (p <= level).mean() < level + 4 * math.sqrt(level * (1 - level) / len(p))


@pytest.mark.parametrize("attack", ["2", "3", "5", "6b", "8"])
def test_users_who_skip_the_noise_stand_out(attack):
    rng = np.random.default_rng(9)
    ties, labels = block_graph(800, 4.0, rng)
    world = make_world(ties, labels, 5, "correlated", rng, attack, 10, 12)
    p = RowConformity().score(evidence(attacked_lists(world, attack, 5.0, rng), 5.0, 5), Streams(0)).p_value
    assert p[world.attackers].max() < 1e-4
    assert (p[~world.attackers] < 1e-4).sum() <= 1


def test_others_cannot_slander():
    """Whatever the others report about v, v's own row keeps a p-value of the null's size."""
    rng = np.random.default_rng(13)
    ties, labels = block_graph(600, 4.0, rng)
    lists = noisy_lists(make_world(ties, labels, 5, "correlated", rng), 5.0, rng).tolil()
    lists[100:400, 0] = 5
    dense = lists.tocsr()
    dense.sort_indices()
    assert RowConformity().score(evidence(dense, 5.0, 5), Streams(0)).p_value[0] > 0.001
