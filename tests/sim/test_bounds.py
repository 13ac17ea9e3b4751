"""The detection bound: exact likelihoods against brute force, closed cases, and that no rule of ours beats it."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm

from server.channel import Channel, level_law
from sim._bounds import log_likelihood_plain, log_likelihoods
from sim.bounds import PairLaw, both_sides, counts_of, detection_bound, neyman_pearson, tie_law


def random_law(rng, cells=3, most=3):
    return PairLaw(rng.random(cells), rng.dirichlet(np.ones(cells + 1))[:-1], rng.dirichlet(np.ones(most + 1)))


@pytest.mark.parametrize("seed", range(5))
def test_likelihood_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    law = random_law(rng)
    tables = rng.poisson(1.0, (8, 3))
    plain = [log_likelihood_plain(table, law.background, law.chance, law.counts) for table in tables]
    assert law.log_likelihood(tables) == pytest.approx(plain)


def test_likelihood_is_a_law():
    """Summed over all tables of one cell, divided by the factorials that are left out, it is 1."""
    law = PairLaw(np.array([0.4]), np.array([0.6]), np.array([0.2, 0.5, 0.3]))
    tables = np.arange(40)[:, None]
    factorials = np.cumsum(np.log(np.maximum(np.arange(40), 1)))
    assert np.exp(law.log_likelihood(tables) - factorials).sum() == pytest.approx(1.0)


def test_many_pairs_do_not_overflow():
    law = PairLaw(np.full(4, 0.1), np.full(4, 0.2), counts_of(np.arange(300)))
    assert np.isfinite(law.log_likelihood(np.array([[200, 100, 0, 3], [0, 0, 0, 0]]))).all()
    assert np.isfinite(log_likelihoods(np.full((1, 4), 60), np.full(4, 0.1), np.full(4, 0.2), np.zeros(2)))


def test_equal_laws_cannot_be_told_apart():
    law = random_law(np.random.default_rng(1))
    found = neyman_pearson(law, [(1.0, law)], np.random.default_rng(2))
    assert found.auc == pytest.approx(0.5, abs=0.01)


def test_two_poissons_have_a_known_bound():
    """Backgrounds of 100 and 130 and nothing else: nearly normal, AUC = Phi((130 - 100) / sqrt(230)). 0.02 is four
    standard errors of 4,000 draws."""
    laws = [PairLaw(np.array([rate]), np.array([0.0]), np.array([1.0])) for rate in (100.0, 130.0)]
    found = neyman_pearson(laws[0], [(1.0, laws[1])], np.random.default_rng(3))
    assert found.auc == pytest.approx(norm.cdf(30 / np.sqrt(230)), abs=0.02)
    exact = norm.sf((100 + norm.ppf(0.99) * 10 - 130) / np.sqrt(130))
    assert found.true_positive_rates[0] == pytest.approx(exact, abs=0.06)


@pytest.mark.parametrize(
    ("epsilon", "claim", "targets", "expected"),
    [(3.0, 5, 2, 0.685), (3.0, 5, 5, 0.833), (3.0, 5, 12, 0.975), (5.0, 5, 3, 0.984), (5.0, 1, 5, 0.990)],
)
def test_published_bounds_on_cora(epsilon, claim, targets, expected):
    """With Poisson numbers of targets, as they were computed; over-claiming and level matching, answered with 1."""
    from sim.kernel.graphs import load

    channel, degrees = Channel(epsilon, 5), load("cora").degrees
    honest_levels, attack = np.pad(level_law("correlated", 5), ((1, 0), (1, 0))), np.zeros((6, 6))
    attack[claim, 1] = 1.0
    noise = np.full(25, 2734 * channel.flip**2)
    honest = PairLaw(noise, tie_law(honest_levels, channel), counts_of(degrees))
    other = PairLaw(noise + targets * tie_law(attack, channel), np.full(25, 0.0), np.array([1.0]))
    found = neyman_pearson(honest, [(1.0, other)], np.random.default_rng(0))
    assert found.auc == pytest.approx(expected, abs=0.012)
    fixed = np.zeros(targets + 1)
    fixed[targets] = 1.0
    exact = PairLaw(noise, tie_law(attack, channel), fixed)
    assert neyman_pearson(honest, [(1.0, exact)], np.random.default_rng(0)).auc > found.auc  # a known number tells more


def test_both_sides_of_four_users():
    lists = sparse.csr_array(np.array([[0, 3, 1, 0], [2, 0, 0, 1], [1, 0, 0, 2], [0, 3, 0, 0]], dtype=np.int8))
    rows = set(zip(*(part.tolist() for part in both_sides(lists))))
    assert rows == {
        (0, 1, 3, 2), (1, 0, 2, 3), (0, 2, 1, 1), (2, 0, 1, 1), (1, 3, 1, 3), (3, 1, 3, 1), (2, 3, 2, 0), (3, 2, 0, 2),
    }  # fmt: skip


def test_bound_of_a_run_grows_with_the_number_of_targets():
    found = []
    for targets in (1, 4, 12):
        rng = np.random.default_rng(6)
        dense = np.zeros((420, 420), np.int8)
        u, v = np.triu_indices(400, 1)
        tie = rng.random(len(u)) < 0.01
        dense[u[tie], v[tie]] = dense[v[tie], u[tie]] = rng.integers(1, 6, tie.sum())
        for fake in range(400, 420):
            victims = rng.choice(400, targets, replace=False)
            dense[fake, victims], dense[victims, fake] = 5, 1
        group = np.r_[np.full(400, -1), np.zeros(20, int)]
        bound = detection_bound(sparse.csr_array(dense), group, Channel(4.0, 5), rng)
        assert bound is not None
        found.append(bound.auc)
    assert 0.5 < found[0] < found[1] < found[2] <= 1.0


def test_no_attackers_no_bound():
    empty = sparse.csr_array((5, 5), dtype=np.int8)
    assert detection_bound(empty, np.full(5, -1), Channel(4.0, 5), np.random.default_rng(0)) is None
