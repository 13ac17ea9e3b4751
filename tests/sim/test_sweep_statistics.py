"""Every statistic against scipy, a brute-force count, or numbers worked by hand."""

import itertools

import numpy as np
import pytest
from scipy import stats

from sim.sweep.statistics import (
    bootstrap_interval,
    effect_size,
    equivalence,
    gain_ratio,
    holm,
    paired_t,
    resamples,
    student_interval,
    wilcoxon,
)

VALUES = np.random.default_rng(1).normal(0.3, 1.0, (40, 9))


def test_student_interval_by_hand_and_against_scipy():
    # mean 3, s = sqrt(2.5), s / sqrt(5) = .70711, t(.975, 4) = 2.77645: 3 -+ 1.96324
    assert student_interval(np.arange(1.0, 6.0)) == pytest.approx((1.03676, 4.96324), abs=1e-5)
    for values in VALUES:
        expected = stats.t.interval(0.95, 8, values.mean(), stats.sem(values))
        assert student_interval(values) == pytest.approx(expected)
    assert student_interval(np.array([4.0, 4.0])) == (4.0, 4.0)


@pytest.mark.parametrize("values", [[1.0], [], [1.0, np.inf]])
def test_no_interval_where_there_is_none(values):
    assert student_interval(np.array(values)) == (None, None)
    assert bootstrap_interval([np.array(values)]) == (None, None)


def test_student_intervals_cover_the_mean_as_often_as_they_say():
    # 2000 samples of 6: coverage .95 -+ 4 standard errors (.0049 each)
    samples = np.random.default_rng(2).normal(5, 2, (2000, 6))
    covered = np.mean([low <= 5 <= high for low, high in map(student_interval, samples)])
    assert abs(covered - 0.95) < 0.02


def test_bootstrap_against_scipy_and_repeatable():
    for values in VALUES[:5]:
        found = bootstrap_interval([values])
        assert found == bootstrap_interval([values.copy()])
        expected = stats.bootstrap(
            (values,), np.mean, n_resamples=10_000, method="percentile", rng=3
        ).confidence_interval
        assert found == pytest.approx(expected, abs=0.05 * values.std())
    assert resamples(9) is resamples(9) and resamples(9).shape == (10_000, 9)


def test_bootstrap_of_two_values_is_exact():
    # Means of resamples of {0, 1}: 0, .5, 1 with weights 1/4, 1/2, 1/4, so both 2.5 % tails are the values themselves.
    assert bootstrap_interval([np.array([0.0, 1.0])]) == (0.0, 1.0)


def test_paired_t_against_scipy():
    for first, second in zip(VALUES[::2], VALUES[1::2]):
        expected = stats.ttest_rel(first, second)
        assert paired_t(first - second) == pytest.approx((expected.statistic, expected.pvalue))
    assert paired_t(np.zeros(4)) == (0.0, 1.0)
    assert paired_t(np.full(4, 0.1)) == (None, None) and paired_t(np.array([1.0])) == (None, None)
    # Rounding of the last digit is no spread: differences of .1, .2, .3 and so on.
    assert paired_t(np.array([0.3 - 0.2, 0.2 - 0.1, 0.1])) == (None, None)


def test_wilcoxon_by_hand():
    # Five positive differences: one sign pattern of 32 is as extreme on each side, p = 2/32.
    assert wilcoxon(np.array([0.1, 0.2, 0.3, 0.4, 0.5])) == (15.0, 0.0625)
    # Ranks 1 2 3 with 1 negative: W+ = 5, P(W+ >= 5) = {5, 6} of 8 patterns = 2/8, doubled .5.
    assert wilcoxon(np.array([-1.0, 2.0, 3.0])) == (5.0, 0.5)
    # Zeros are dropped; all zeros is no evidence at all.
    assert wilcoxon(np.array([0.0, 1.0, 2.0, 3.0])) == wilcoxon(np.array([1.0, 2.0, 3.0])) == (6.0, 0.25)
    assert wilcoxon(np.zeros(5)) == (0.0, 1.0)


def test_wilcoxon_against_scipy_without_ties():
    for values in VALUES:
        assert wilcoxon(values).p == pytest.approx(stats.wilcoxon(values, method="exact").pvalue)


def test_wilcoxon_with_ties_against_all_sign_patterns():
    generator = np.random.default_rng(4)
    for _ in range(20):
        values = generator.integers(-3, 4, 8).astype(float)
        held = values[values != 0]
        if not len(held):
            continue
        ranks = stats.rankdata(abs(held))
        sums = np.array([(ranks * signs).sum() for signs in itertools.product([0, 1], repeat=len(held))])
        seen = ranks[held > 0].sum()
        expected = min(1.0, 2 * min((sums <= seen).mean(), (sums >= seen).mean()))
        assert wilcoxon(values) == pytest.approx((seen, expected))


def test_effect_size():
    # mean 2, s = 1: d = 2; and t = d * sqrt(n)
    assert effect_size(np.array([1.0, 2.0, 3.0])) == pytest.approx(2.0)
    for values in VALUES:
        assert effect_size(values) == pytest.approx(paired_t(values).statistic / 3)
    assert effect_size(np.zeros(3)) == 0.0 and effect_size(np.full(3, 0.2)) is None and effect_size(np.ones(1)) is None


def test_equivalence_is_the_larger_of_two_one_sided_tests():
    for values in VALUES:
        above = stats.ttest_1samp(values, -0.8, alternative="greater").pvalue
        below = stats.ttest_1samp(values, 0.8, alternative="less").pvalue
        assert equivalence(values, 0.8) == pytest.approx(max(above, below))
    assert equivalence(np.ones(3), 2.0) is None


def test_equivalence_is_claimed_wrongly_at_most_as_often_as_stated():
    # True mean on the margin: the 5 % test may claim equivalence in 5 % of 2000 samples (+ 4 standard errors).
    samples = np.random.default_rng(5).normal(0.5, 0.3, (2000, 10))
    assert np.mean([equivalence(s, 0.5) < 0.05 for s in samples]) < 0.05 + 0.02
    close = np.random.default_rng(6).normal(0.0, 0.3, (200, 10))
    assert np.mean([equivalence(s, 0.5) < 0.05 for s in close]) > 0.9


def test_holm_by_hand():
    # .01*4, .02*3, .03*2 -> .06, .04*1 -> kept from falling; None takes no part.
    assert holm([0.01, 0.04, None, 0.03, 0.02]) == pytest.approx([0.04, 0.06, None, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0] and holm([]) == [] and holm([None]) == [None]


def test_gain_is_a_ratio_of_means_not_a_mean_of_ratios():
    test, none, true = np.array([0.5, 0.9]), np.array([0.3, 0.3]), np.array([0.4, 0.9])
    # (.7 - .3) / (.65 - .3) = 1.142857; the mean of the ratios 2 and 1 would be 1.5
    assert float(gain_ratio(test.mean(), none.mean(), true.mean())) == pytest.approx(8 / 7)
    assert np.isnan(gain_ratio(0.5, 0.5, 0.51))
    low, high = bootstrap_interval([test, none, true], gain_ratio)
    assert (low, high) == pytest.approx((1.0, 2.0))
    assert bootstrap_interval([test, none, none], gain_ratio) == (None, None)
