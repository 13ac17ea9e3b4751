"""Standardised sums: four users by hand, the analytic null, and the exact sign law against all patterns."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from worlds import FOUR, block_graph, evidence, make_world, noisy_lists

from server.channel import Channel
from server.suspicion._signs import upper_tail_plain, upper_tails
from server.suspicion.gap_sum import GapSum, GatedSum, estimated_degree, squared_gap
from sim.kernel.randomness import Streams


def test_squared_gap_by_hand():
    # Two fair coins on {0, 2}: half of the pairs differ, by 2.
    assert squared_gap(np.array([[0.25, 0, 0.25], [0, 0, 0], [0.25, 0, 0.25]])) == pytest.approx(2.0)


def test_null_variance_formula():
    # v0 = 2 [q k(k+1)(2k+1)/6 - (q k(k+1)/2)^2].
    channel = Channel(5.0, 5)
    q = 1 / (math.exp(5) + 5)
    nothing = channel.matrix[0]
    assert squared_gap(np.outer(nothing, nothing)) == pytest.approx(2 * (55 * q - (15 * q) ** 2))


def test_degree_behind_a_row():
    # 10 entries over 100 users, 5 of them expected from noise: 5 / (1 - q - q0).
    assert estimated_degree(np.array([10, 3]), 100, 0.01, 0.05) == pytest.approx([5 / 0.94, 0.0])


def test_signs_of_four_users():
    # Sums over mutual pairs: 0: 1+0; 1: -1-2; 2: 0; 3: 2.
    found = GatedSum().score(evidence(FOUR, 5.0, 3), Streams(0))
    assert np.sign(found.score).tolist() == [1, -1, 0, 1]
    # 0 differs by 1 once: P(+-1 >= 1) = 1/2. 1: P(+-1 +-2 >= -3) = 1. 2: no difference. 3: P(+-2 >= 2) = 1/2.
    assert found.p_value == pytest.approx([0.5, 1.0, 1.0, 0.5])
    whole = GapSum().score(evidence(FOUR, 5.0, 3), Streams(0))
    assert np.sign(whole.score).tolist() == [1, -1, 1, 0]  # 1, -3, 2, 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=9), st.integers(-12, 12))
def test_exact_law_of_signed_sums(differences, observed):
    counts = np.bincount(differences, minlength=6)[None, :]
    found = upper_tails(counts, np.array([observed]))[0]
    assert found == pytest.approx(upper_tail_plain(differences, observed), abs=1e-12)


def test_many_terms_use_the_normal_law():
    counts = np.array([[0, 301], [0, 300]])
    near = upper_tails(counts, np.array([19, 18]))
    exact_301 = sum(math.comb(301, k) for k in range(160, 302)) / 2**301
    assert near[0] == pytest.approx(exact_301, rel=0.01)
    assert near[1] == pytest.approx(sum(math.comb(300, k) for k in range(159, 301)) / 2**300, rel=1e-9)


@pytest.mark.parametrize("trust", ["maximal", "correlated", "independent"])
def test_null_is_standard(trust):
    """Honest users only: z has mean 0 and standard deviation 1; p-values of both sums are not too small. 800 users; the
    limits are four standard errors."""
    rng = np.random.default_rng(21)
    ties, labels = block_graph(800, 5.0, rng)
    held = evidence(noisy_lists(make_world(ties, labels, 5, trust, rng), 4.0, rng), 4.0, 5)
    whole, gated = GapSum().score(held, Streams(0)), GatedSum().score(held, Streams(0))
    assert abs(whole.score.mean()) < 0.15 and abs(whole.score.std() - 1) < 0.1
    assert abs(gated.score.mean()) < 0.15 and abs(gated.score.std() - 1) < 0.2
    for p in (whole.p_value, gated.p_value):
        assert (p <= 0.1).mean() < 0.1 + 4 * math.sqrt(0.09 / 800)
        assert (p <= 0.01).mean() < 0.01 + 4 * math.sqrt(0.0099 / 800)


def test_a_clique_cannot_dilute_a_sum():
    rng = np.random.default_rng(3)
    ties, labels = block_graph(400, 4.0, rng)
    alone = make_world(ties, labels, 5, "correlated", np.random.default_rng(5), "1", 20)
    clique = make_world(ties, labels, 5, "correlated", np.random.default_rng(5), "6", 20)
    sums = [
        GatedSum().score(evidence(noisy_lists(w, 6.0, np.random.default_rng(6)), 6.0, 5), Streams(0)).p_value[400:]
        for w in (alone, clique)
    ]
    assert np.median(sums[0]) < 1e-3 and np.median(sums[1]) < 1e-3


def test_silent_users_have_neither_score_nor_p_value():
    lists = sparse.csr_array(FOUR.toarray() * np.array([[1], [1], [0], [1]], np.int8))
    held = evidence(lists, 5.0, 3, reported=np.array([True, True, False, True]))
    for kind in (GapSum, GatedSum):
        found = kind().score(held, Streams(0))
        assert np.isnan(found.score).tolist() == np.isnan(found.p_value).tolist() == [False, False, True, False]
