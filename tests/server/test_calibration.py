"""Calibrations of EdgeRefine: by hand, against scikit-learn, and by the property that defines each."""

import numpy as np
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from server.refinement._calibration import METHODS, sigmoid

SIMILARITY = (np.arange(40) + 0.5) / 40


def table(seed):
    """Counts by group and bit, some groups empty, ones more frequent at high similarity."""
    rng = np.random.default_rng(seed)
    pairs = rng.poisson(30 * rng.random(40))
    pairs[:2] = pairs[17] = 0
    ones = rng.binomial(pairs, 0.1 + 0.5 * SIMILARITY**2)
    return np.stack([pairs - ones, ones], axis=1)


def test_histogram_is_the_share_of_ones_and_a_half_without_pairs():
    counts = np.array([[3, 1], [0, 0], [0, 5]])
    assert METHODS["histogram"](np.zeros(3), counts).tolist() == [0.25, 0.5, 1.0]


def test_simple_is_the_similarity_over_its_greatest():
    assert METHODS["simple"](np.array([0.0, 0.4, 1.0]), np.ones((3, 2))).tolist() == [0.0, 0.4, 1.0]


def test_isotonic_by_hand():
    counts = np.array([[1, 1], [3, 1], [0, 0], [1, 3]])  # 1/2 then 1/4: pooled to 2/6
    assert METHODS["isotonic"](np.zeros(4), counts) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 3 / 4])


@pytest.mark.parametrize("seed", range(5))
def test_isotonic_equals_scikit_learn(seed):
    counts = table(seed)
    held = counts.sum(axis=1) > 0
    share = counts[held, 1] / counts[held].sum(axis=1)
    expected = IsotonicRegression().fit_transform(np.flatnonzero(held), share, sample_weight=counts[held].sum(axis=1))
    assert METHODS["isotonic"](SIMILARITY, counts)[held] == pytest.approx(expected, abs=1e-12)


def test_beta_is_bayes_rule_with_two_beta_laws():
    counts = table(1)
    found = METHODS["beta"](SIMILARITY, counts)
    laws = []
    for bit in (0, 1):
        values = np.repeat(SIMILARITY, counts[:, bit])
        mean, variance = values.mean(), values.var()
        strength = mean * (1 - mean) / variance - 1
        laws.append(stats.beta(mean * strength, (1 - mean) * strength).pdf(SIMILARITY))
    prior = counts[:, 1].sum() / counts.sum()
    assert found == pytest.approx(prior * laws[1] / (prior * laws[1] + (1 - prior) * laws[0]))


def test_beta_without_spread_or_without_ones_leaves_the_prior():
    counts = np.zeros((40, 2), int)
    counts[7] = 6, 2
    assert METHODS["beta"](SIMILARITY, counts) == pytest.approx(np.full(40, 0.25))
    assert METHODS["beta"](SIMILARITY, np.stack([np.ones(40, int), np.zeros(40, int)], axis=1)).tolist() == [0.0] * 40


def test_temperature_has_the_least_log_loss():
    counts = table(2)
    found = METHODS["temperature"](SIMILARITY, counts)

    def loss(probability):
        return -(counts[:, 0] @ np.log1p(-probability) + counts[:, 1] @ np.log(probability))

    score = np.log(SIMILARITY) - np.log1p(-SIMILARITY)
    others = [loss(np.clip(sigmoid(score / t), 1e-12, 1 - 1e-12)) for t in np.exp(np.linspace(-6.9, 6.9, 400))]
    assert loss(found) <= min(others) + 1e-6
    ratio = (np.log(found) - np.log1p(-found)) / score
    assert ratio == pytest.approx(np.full(40, ratio[0]))


@pytest.mark.parametrize("name", list(METHODS))
def test_all_are_probabilities(name):
    made = METHODS[name](SIMILARITY, table(3))
    assert made.shape == (40,) and np.isfinite(made).all() and (made >= 0).all() and (made <= 1).all()
