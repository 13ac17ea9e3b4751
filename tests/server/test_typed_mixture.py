"""The typed mixture: kernels against plain references, the null's split of totals, and who is told apart."""

import math

import numpy as np
import pytest
from worlds import FOUR, auc, block_graph, evidence, make_world, noisy_lists

from server.channel import Channel
from server.suspicion import _mixture as kernels
from server.suspicion._null import Null, Split, group_of, honest_tables, simulate, upper_share
from server.suspicion._typed import CAPS, Mixture, attack_templates, bins_of, fit_mixture, in_bins, tables_of
from server.suspicion.typed_mixture import TypedMixture, parts
from sim.kernel.randomness import Streams


def random_mixture(rng, cells=9):
    law, templates = rng.dirichlet(np.ones(cells)), rng.dirichlet(np.ones(cells), 3)
    return Mixture(np.full(cells, 0.05), law, templates)


def test_tables_of_four_users():
    tables = tables_of(evidence(FOUR, 5.0, 3).pairs, 4, 3)
    # 0 gave 3 got 2, gave 1 got 1; 1 gave 2 got 3, gave 1 got 3; 2 gave 1 got 1; 3 gave 3 got 1.
    assert [np.flatnonzero(row).tolist() for row in tables] == [[0, 7], [2, 5], [0], [6]]
    assert tables.sum() == 6


def test_templates_by_hand():
    # Two levels, p = 4/6, q = 1/6: (2, 1) is seen as itself 16/25 of the time; 0.9 of that plus 0.1/4.
    templates = attack_templates(Channel(math.log(4), 2))
    assert templates[0] == pytest.approx(0.9 * np.array([4, 1, 16, 4]) / 25 + 0.025)
    assert templates[1] == pytest.approx(0.9 * np.array([4, 16, 1, 4]) / 25 + 0.025)
    assert templates[2] == pytest.approx(0.9 * np.array([16, 4, 4, 1]) / 25 + 0.025)


def test_ratios_equal_the_plain_poisson_likelihoods():
    rng = np.random.default_rng(0)
    mixture, tables = random_mixture(rng), rng.poisson(0.8, (200, 9))
    which, _, terms = mixture.terms(tables)
    fast = np.empty((200, 12))
    kernels.sum_ratios(tables, which, terms.log_ratio, terms.offset, fast)
    args = (mixture.noise, mixture.law, mixture.templates, CAPS)
    assert fast == pytest.approx(kernels.sum_ratios_plain(tables, mixture.excess(tables), *args), abs=1e-10)


@pytest.mark.parametrize("excess", [4.0, 20.0, 150.0])
def test_every_component_has_mean_likelihood_ratio_one(excess):
    """Among honest users of fixed expectation: E exp(log ratio) = 1 (Poisson moment, computed exactly)."""
    rng = np.random.default_rng(1)
    mixture = random_mixture(rng)
    terms = kernels.component_terms(np.array([excess]), mixture.noise, mixture.law, mixture.templates, CAPS)
    honest = mixture.noise + excess * mixture.law
    moments = terms.offset[0] + (honest[:, None] * (np.exp(terms.log_ratio[0]) - 1)).sum(0)
    assert moments == pytest.approx(np.zeros(12), abs=1e-9)


def test_attribution_equals_the_plain_expectation_step():
    rng = np.random.default_rng(2)
    mixture, tables = random_mixture(rng), rng.poisson(0.7, (50, 9))
    which, excess, terms = mixture.terms(tables)
    ratios = np.empty((50, 12))
    kernels.sum_ratios(tables, which, terms.log_ratio, terms.offset, ratios)
    weights, influence = rng.random(12) / 60, np.minimum(1, 3 / excess)
    law, templates, mass = np.zeros(9), np.zeros((3, 9)), np.zeros(12)
    kernels.attribute(
        tables, which, influence, terms.honest, terms.odd, terms.usual, ratios, weights, law, templates, mass
    )
    resp = np.column_stack([np.full(50, 1 - weights.sum()), weights * np.exp(ratios)])
    resp /= resp.sum(1, keepdims=True)
    assert mass == pytest.approx(resp[:, 1:].sum(0))
    odd, usual = terms.odd[which], terms.usual[which]
    by_part = np.einsum("vx,vk,vxk->kx", tables, resp[:, 1:], odd)
    assert templates == pytest.approx(by_part.reshape(3, 4, 9).sum(1))
    lawful = resp[:, :1] * terms.honest[which] + np.einsum("vk,vxk->vx", resp[:, 1:], usual)
    assert law == pytest.approx((influence[which][:, None] * tables * lawful).sum(0))


def test_split_of_totals_is_the_posterior():
    """Ties 0, 1 or 5 a user and Poisson noise: given the total, the number of noise pairs follows Bayes' rule.
    50,000 draws; 5 standard errors."""
    rng = np.random.default_rng(3)
    ties = rng.choice([0, 1, 5], 40_000, p=[0.5, 0.3, 0.2])
    split = Split(ties + rng.poisson(0.7, 40_000), np.full(7, 0.1), sweeps=400)
    poisson = np.exp(-0.7) * 0.7 ** np.arange(6) / [math.factorial(k) for k in range(6)]
    weight = np.array([0.2 * poisson[0], 0.3 * poisson[4], 0.5 * poisson[5]])  # noise 0, 4 or 5 of a total of 5
    drawn = np.bincount(split.draw(5, 50_000, rng), minlength=6) / 50_000
    assert drawn[0] == pytest.approx(weight[0] / weight.sum(), abs=0.02)
    assert drawn[1:].sum() == pytest.approx(weight[1:].sum() / weight.sum(), abs=0.02)


def test_honest_tables_follow_noise_and_law():
    rng, law = np.random.default_rng(4), np.array([0.7, 0.2, 0.1, 0.0])
    for total in (6, 40):  # drawn pair by pair, and as multinomials
        tables = honest_tables(total, np.full(20_000, 2), np.array([0.1, 0.2, 0.3, 0.4]), law, rng)
        assert (tables.sum(1) == total).all()
        assert tables.mean(0) == pytest.approx(2 * np.array([0.1, 0.2, 0.3, 0.4]) + (total - 2) * law, abs=0.1)


def test_many_levels_share_bins():
    assert bins_of(5).tolist() == [0, 1, 2, 3, 4]
    bins = bins_of(40)
    assert bins[0] == 0 and bins[-1] == 7 and (bins[1:-1] >= 1).all() and (bins[1:-1] <= 6).all()
    assert (np.diff(bins) >= 0).all() and len(np.unique(bins)) == 8
    law = np.random.default_rng(0).dirichlet(np.ones(1600)).reshape(40, 40)
    plain = np.zeros((8, 8))
    for x in range(40):
        for y in range(40):
            plain[bins[x], bins[y]] += law[x, y]
    assert in_bins(law) == pytest.approx(plain.ravel())


def test_a_hundred_levels_still_tell_over_claimers():
    rng = np.random.default_rng(14)
    ties, labels = block_graph(400, 4.0, rng)
    world = make_world(ties, labels, 100, "correlated", rng, "1", 10, 12)
    found = TypedMixture().score(evidence(noisy_lists(world, 9.0, rng), 9.0, 100), Streams(1))
    assert auc(found.score, world.attackers) > 0.99


def test_groups_are_single_then_widen():
    assert group_of(np.arange(21)).tolist() == list(range(21))
    assert group_of(np.array([21, 22, 23, 100]))[[0, 1]].tolist() == [21, 21]
    assert np.diff(group_of(np.arange(1000))).max() == 1


def test_p_values_rank_within_the_group():
    null = Null(np.r_[np.arange(100.0), np.arange(100.0) + 50], np.repeat([0, 3], 100))
    p = null.p_values(np.array([50.0, 50.0, 99.0]), np.array([0, 3, 9]))  # group 9 is unknown: the nearest is 3
    assert p[:2] == pytest.approx([0.5, 1.0])
    assert p[2] == pytest.approx(0.51)


def test_tail_beyond_the_null_is_exponential():
    values = np.sort(np.random.default_rng(5).exponential(1.0, 5000))
    far = upper_share(values, np.array([values[-20] + 3.0]))[0]
    assert far == pytest.approx(20 / 5000 * math.exp(-3.0))


def test_simulated_null_does_not_depend_on_numbering():
    rng = np.random.default_rng(6)
    totals, mixture = rng.poisson(5, 300), random_mixture(rng)
    split = Split(totals, mixture.noise)
    runs = [
        simulate(t, split, mixture.law, mixture.score, np.random.default_rng(0))
        for t in (totals, rng.permutation(totals))
    ]
    assert (runs[0].score == runs[1].score).all()


def test_fit_learns_the_honest_law():
    rng = np.random.default_rng(7)
    channel = Channel(5.0, 3)
    law = channel.image(np.diag([0.2, 0.3, 0.5])).ravel()
    tables = rng.poisson(0.02 + 6 * law, (2000, 9))
    fitted = fit_mixture(tables, channel, 1999)
    assert np.abs(fitted.law - law).sum() < 0.12


def test_parts_are_even_and_follow_the_users():
    rng = np.random.default_rng(8)
    ties, labels = block_graph(200, 4.0, rng)
    held = evidence(noisy_lists(make_world(ties, labels, 5, "correlated", rng), 4.0, rng), 4.0, 5)
    assert np.bincount(parts(held, 2)).tolist() == [100, 100]


@pytest.mark.parametrize("attack", ["1", "4", "6", "7"])
def test_tells_compliant_attacks_apart(attack):
    rng = np.random.default_rng(10)
    ties, labels = block_graph(800, 4.0, rng)
    world = make_world(ties, labels, 5, "correlated", rng, attack, 16, 12)
    found = TypedMixture().score(evidence(noisy_lists(world, 5.0, rng), 5.0, 5), Streams(1))
    assert auc(found.score, world.attackers) > 0.99
    assert (found.p_value[world.attackers] < 0.01).mean() > 0.9


def test_one_level_says_nothing():
    rng = np.random.default_rng(12)
    ties, labels = block_graph(100, 4.0, rng)
    held = evidence(noisy_lists(make_world(ties, labels, 1, "maximal", rng), 4.0, rng), 4.0, 1)
    found = TypedMixture().score(held, Streams(0))
    assert (found.score == 0).all() and (found.p_value == 1).all()


def test_hardly_anybody_reported():
    reported = np.array([True, True, False, False])
    found = TypedMixture().score(evidence(FOUR, 5.0, 3, reported=reported), Streams(0))
    assert found.p_value == pytest.approx([1, 1, np.nan, np.nan], nan_ok=True)
