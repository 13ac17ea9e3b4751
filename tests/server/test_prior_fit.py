"""The feature prior's maximum-likelihood fit: by hand, at its maximum, and on simulated bits whose prior is known."""

from dataclasses import replace

import numpy as np
import pytest

from server.refinement._pair_ranking import Score
from server.refinement._prior_fit import (
    Cells,
    expected_ties,
    fit_prior,
    log_likelihood,
    sigmoid,
)


def simulated_cells(theta, epsilon, seed, scale=1.0):
    """Cells on a grid of scores whose noisy ones come from the prior `theta`."""
    rng = np.random.default_rng(seed)
    cosine, agreement = (x.ravel() for x in np.meshgrid(np.linspace(0, 0.6, 20), np.linspace(0.05, 0.9, 15)))
    pairs = np.rint(scale * 2e5 * np.exp(-8 * cosine)).astype(float)
    blank = Cells(pairs, pairs, cosine, agreement, np.zeros_like(cosine))
    pi, flip = sigmoid(blank.design(False) @ theta), 1 / (1 + np.exp(epsilon))
    ones = rng.binomial(pairs.astype(int), flip + (1 - 2 * flip) * pi).astype(float)
    return replace(blank, ones=ones), pi, flip


THETA = np.array([-8.0, 0.6, 0.5, 0.4, 0.8, 0.3])


def test_fit_recovers_the_prior_from_noisy_bits():
    """Fitted probabilities within 5 % of the true ones, weighted by where the ties are, and the coefficients within 4.5
    standard errors (from the information matrix) of the truth; 30 fits' worth of error rate under 1e-3."""
    for epsilon, seed in [(1.0, 1), (3.0, 2)]:
        cells, pi, flip = simulated_cells(THETA, epsilon, seed, scale=20)
        design = cells.design(False)
        theta = fit_prior(design, cells, flip)
        fitted = sigmoid(design @ theta)
        assert (cells.pairs * np.abs(fitted - pi)).sum() / (cells.pairs * pi).sum() < 0.05
        rate, slope = flip + (1 - 2 * flip) * pi, (1 - 2 * flip) * pi * (1 - pi)
        information = (design.T * (cells.pairs * slope**2 / (rate * (1 - rate)))) @ design
        gap = theta - THETA
        information[1:, 1:] += np.eye(5)
        bias = np.linalg.solve(information, np.r_[0, -THETA[1:]])
        assert np.abs((gap - bias) / np.sqrt(np.diag(np.linalg.inv(information)))).max() < 4.5


def test_fit_is_a_maximum():
    cells, _, flip = simulated_cells(THETA, 1.0, 3)
    design = cells.design(False)
    theta = fit_prior(design, cells, flip)
    best = log_likelihood(theta, design, cells, flip)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.3):
        for _ in range(20):
            assert log_likelihood(theta + size * rng.normal(size=6), design, cells, flip) <= best + 1e-6


def test_fit_starts_from_a_positive_mass_even_when_the_bits_say_less():
    cells, _, flip = simulated_cells(np.array([-30.0, 0, 0, 0, 0, 0]), 1.0, 4)
    low = replace(cells, ones=np.floor(cells.pairs * flip * 0.99))
    theta = fit_prior(low.design(False), low, flip)
    assert np.isfinite(theta).all() and (low.pairs * sigmoid(low.design(False) @ theta)).sum() < 1000


def test_expected_ties_by_hand():
    # prior 0.2 (odds 1/4), epsilon = log 2: P(1) = (1/2)/(3/2) = 1/3, P(0) = (1/8)/(9/8) = 1/9; 3 ones, 6 zeros: 1 +
    # 2/3
    cells = Cells(np.array([9.0]), np.array([3.0]), np.zeros(1), np.zeros(1), np.zeros(1))
    assert expected_ties(np.array([0.2]), cells, np.log(2)) == pytest.approx(5 / 3)


def test_design_by_hand():
    cells = Cells(*(np.array([x]) for x in (1.0, 0.0, 0.25, 0.45, 2.0)))
    half = np.log(0.5)
    assert cells.design(True)[0] == pytest.approx([1, 1.25, 2, 0.9, half, 0.5625, 2, 1, 2.5, 2 * half])
    assert cells.design(False).shape == (1, 6)
    theta = np.arange(1.0, 11.0)
    score = Score.of_prior(theta)
    code, agree = 16384, 1843  # c = 0.250004, g = 0.450061
    total = score.by_cosine[code] + score.by_agreement[agree] + score.products * code / 65535 * agree / 4095
    assert total == pytest.approx(cells.design(False)[0] @ theta[:6], abs=1e-2)
    assert score.extra == pytest.approx((7, 2, 45, 10))
