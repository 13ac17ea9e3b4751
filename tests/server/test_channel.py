"""The channel of one entry and the level table behind the mutual pairs."""

import math

import numpy as np
import pytest
from worlds import block_graph, evidence, make_world, noisy_lists, pair_levels

from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.verification_list import VerificationList
from server.bits import entry_channel
from server.channel import Channel, deconvolve, level_counts, level_law


def test_matrix_by_hand():
    channel = Channel(math.log(4), 2)  # p = 4/6, q = 1/6
    assert channel.matrix == pytest.approx(np.array([[4, 1, 1], [1, 4, 1], [1, 1, 4]]) / 6)
    assert channel.inner == pytest.approx(np.array([[4, 1], [1, 4]]) / 6)
    assert (channel.keep, channel.flip, channel.false_positive) == pytest.approx((4 / 6, 1 / 6, 2 / 6))


@pytest.mark.parametrize(("epsilon", "levels"), [(0.5, 1), (5.0, 5), (2.0, 8)])
def test_matrix_is_a_law_with_ratio_e_to_the_epsilon(epsilon, levels):
    matrix = Channel(epsilon, levels).matrix
    assert matrix.sum(1) == pytest.approx(np.ones(levels + 1), abs=1e-12)
    assert (matrix.max(0) / matrix.min(0)).max() == pytest.approx(math.exp(epsilon), rel=1e-12)


@pytest.mark.parametrize("trust", ["maximal", "correlated", "independent"])
@pytest.mark.parametrize("levels", [1, 2, 5])
def test_level_law_is_what_the_trust_kinds_draw(trust, levels):
    """200,000 drawn ties; the largest cell error stays under 5 standard errors (a false alarm in 10^5)."""
    a, b = pair_levels(200_000, levels, trust, np.random.default_rng(3))
    seen = np.bincount((a - 1) * levels + b - 1, minlength=levels**2).reshape(levels, levels) / 200_000
    assert np.abs(seen - level_law(trust, levels)).max() < 5 * math.sqrt(0.25 / 200_000)


def test_image_of_a_certain_pair():
    channel = Channel(math.log(4), 2)
    law = np.array([[0.0, 0.0], [1.0, 0.0]])  # 2 given, 1 received
    assert channel.image(law) == pytest.approx(np.array([[4, 1], [16, 4]]) / 25)


def test_counts_are_half_in_either_direction():
    ties = np.array([[0, 1], [2, 3]])
    world = make_world(ties, np.zeros(4, int), 3, "maximal", np.random.default_rng(0))
    lists = world.truth.tolil()
    lists[1, 0] = 1
    csr = lists.tocsr()
    csr.sort_indices()
    assert level_counts(evidence(csr, 5.0, 3).pairs, 3).tolist() == [[0, 0, 0.5], [0, 0, 0], [0.5, 0, 1]]


@pytest.mark.parametrize("trust", ["maximal", "correlated", "independent"])
def test_deconvolution_finds_ties_and_levels(trust):
    rng = np.random.default_rng(11)
    ties, labels = block_graph(1500, 6.0, rng)
    held = evidence(noisy_lists(make_world(ties, labels, 4, trust, rng), 4.0, rng), 4.0, 4)
    channel = Channel(4.0, 4)
    table = deconvolve(level_counts(held.pairs, 4), channel, 1500 * 1499 / 2)
    assert table.ties == pytest.approx(len(ties), rel=0.04)
    assert np.abs(table.true_law - level_law(trust, 4)).sum() < 0.15
    assert table.law.sum() == pytest.approx(1.0)
    assert table.likelihood_ratio == pytest.approx(
        channel.inner.T @ table.true_law @ channel.inner / channel.flip**2, rel=1e-9
    )


def test_exact_counts_are_a_fixed_point():
    """Counts equal to their own expectation are explained exactly."""
    channel, law = Channel(5.0, 3), level_law("correlated", 3)
    pairs = 50_000.0
    counts = channel.inner.T @ (400 * law) @ channel.inner + (pairs - 400) * channel.flip**2
    table = deconvolve(counts, channel, pairs, sweeps=3000)
    assert table.ties == pytest.approx(400, rel=1e-3)
    assert table.true_law == pytest.approx(law, abs=2e-3)


@pytest.mark.parametrize("epsilon", [50.0, 800.0])
def test_reports_without_noise_are_read_in_finite_numbers(epsilon):
    table = deconvolve(np.array([[40.0, 1.0], [1.0, 60.0]]), Channel(epsilon, 2), 5000.0)
    assert np.isfinite(np.log(table.likelihood_ratio)).all() and table.ties == pytest.approx(102.0)
    for ties in (PairBits(epsilon=epsilon), BinaryList(epsilon=epsilon), VerificationList(epsilon=epsilon)):
        channel = entry_channel(ties)
        assert 0 < channel.false_alarm < 1e-12 and 1 - 1e-12 < channel.hit < 1
        assert np.isfinite(np.log([1 - channel.hit, channel.twice().false_alarm])).all()
