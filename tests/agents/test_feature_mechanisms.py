"""Feature mechanisms: budgets, hand-worked numbers, range, unbiasedness, variance, and rows that stand alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import integrate, sparse

from agents.privacy.features.base import FeatureMechanism
from agents.privacy.features.gaussian import Gaussian, gaussian_delta, smallest_epsilon, smallest_sigma
from agents.privacy.features.laplace import Laplace
from agents.privacy.features.multi_bit import MultiBit
from agents.privacy.features.one_bit import OneBit
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.features.square_wave import SquareWave, exponential_remainder
from sim.kernel.randomness import Streams

STREAMS = Streams(77)
KINDS = [Laplace, Gaussian, OneBit, MultiBit, Piecewise, SquareWave]
PURE = [Laplace, OneBit, MultiBit, Piecewise, SquareWave]


def make(cls: type, epsilon: float, dimensions="auto") -> FeatureMechanism:
    return cls(epsilon=epsilon) if cls is OneBit else cls(epsilon=epsilon, dimensions=dimensions)


def test_all_kinds_are_found_by_name():
    family = FeatureMechanism._family
    assert {c.kind for c in family.classes()} == {"none", *(c.kind for c in KINDS)}


# Budgets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", PURE)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 20.0, 300.0])
@pytest.mark.parametrize("dimensions", [1, 7, 1433])
def test_the_epsilon_of_the_probabilities_is_the_budget(cls, epsilon, dimensions):
    for m in ("auto", 1, 3):
        assert make(cls, epsilon, m).spent(dimensions)[0] == pytest.approx(epsilon, rel=1e-9)
        assert make(cls, epsilon, m).spent(dimensions)[1] == 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5])
def test_gaussian_noise_spends_what_it_was_calibrated_for(epsilon, delta):
    spent = Gaussian(epsilon=epsilon, delta=delta, dimensions=4).spent(9)
    assert spent == (pytest.approx(epsilon, rel=1e-6), delta)
    assert gaussian_delta(smallest_sigma(epsilon, delta), epsilon) <= delta * (1 + 1e-5)
    assert gaussian_delta(0.999 * smallest_sigma(epsilon, delta), epsilon) > delta


def test_gaussian_delta_against_the_integral_of_the_privacy_loss():
    sigma, epsilon = 1.3, 0.8

    def excess(y):
        p, q = (math.exp(-((y - mean) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi)) for mean in (1, 0))
        return max(0.0, p - math.exp(epsilon) * q)

    assert gaussian_delta(sigma, epsilon) == pytest.approx(integrate.quad(excess, -15, 15, limit=400)[0], rel=1e-6)
    assert smallest_epsilon(sigma, gaussian_delta(sigma, epsilon)) == pytest.approx(epsilon, rel=1e-9)
    assert smallest_epsilon(1e12, 1e-10) == 0.0


@pytest.mark.parametrize("epsilon", [1e-5, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("cls", [MultiBit, OneBit])
def test_column_ratio_of_the_bit_mechanisms(cls, epsilon):
    mechanism, d = make(cls, epsilon), 10
    chance = mechanism.probability(np.linspace(0, 1, 101), d)
    matrix = np.array([chance, 1 - chance])
    if epsilon < 20:  # the difference 1 - chance has lost its digits beyond
        ratios = matrix.max(axis=1) / matrix.min(axis=1)
        assert ratios.max() == pytest.approx(math.exp(epsilon / mechanism.sampled(d)), rel=1e-12)
    assert (np.diff(chance) > 0).all(), "a larger value sends +1 more often"


@pytest.mark.parametrize(("cls", "epsilon"), [(Piecewise, 0.1), (Piecewise, 3.0), (SquareWave, 0.1), (SquareWave, 3.0)])
def test_densities_of_the_window_mechanisms(cls, epsilon):
    """Draws at 0 and at 1 against the two-level density: window and mass as printed, by a binomial test."""
    mechanism, count = make(cls, epsilon, 1), 200_000
    if cls is Piecewise:
        s = math.exp(epsilon / 2)
        bound = (s + 1) / (s - 1)
        windows, inside = {0.0: (-bound, -1.0), 1.0: (1.0, bound)}, s / (s + 1)
    else:
        e = math.exp(epsilon)
        b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
        windows, inside = {0.0: (-b, b), 1.0: (1 - b, 1 + b)}, 2 * b * e / (2 * b * e + 1)
    for value, (low, high) in windows.items():
        outputs = draws(mechanism, value, count)
        share = ((outputs >= low - 1e-6) & (outputs <= high + 1e-6)).mean()
        assert abs(share - inside) < 5.5 * math.sqrt(inside * (1 - inside) / count)


# Numbers worked by hand -----------------------------------------------------------------------------------------------


def test_hand_worked_numbers():
    piecewise = Piecewise(epsilon=2.0, dimensions=2)  # e = 1: B = (1.648721 + 1)/0.648721 = 4.082988
    assert piecewise.output_range(8)[1] == pytest.approx(4.082988, abs=1e-5)
    # t^2/(s - 1) + (s + 3)/(3 (s - 1)^2) at t = 0: 4.648721/(3 * 0.420839) = 3.682103; rectified: (8/2)/4 of it
    assert piecewise.variance(np.array([0.5]), 8) == pytest.approx([3.682103], rel=1e-6)
    # at t = 1: 1.541494 + 3.682103 = 5.223597; (8/2)(5.223597 + 1)/4 - 1/4 = 5.973597
    assert piecewise.variance(np.array([1.0]), 8) == pytest.approx([5.973597], rel=1e-6)
    # multi-bit, e = ln 3, m = 1 of d = 4: slope 1/(2 * 0.5) = 1, factor 4
    bits = MultiBit(epsilon=math.log(3), dimensions=1)
    reports = sparse.csr_array(np.array([[0, 1, 0, 0], [0, 0, 0, -1]], dtype=np.float32))
    assert bits.rectify(reports).toarray().tolist() == [[0, 4, 0, 0], [0, 0, 0, -4]]
    assert bits.probability(np.array([0, 0.5, 1]), 4) == pytest.approx([0.25, 0.5, 0.75])
    # square wave, e = 1: b = 1/(2 e (e - 2)) = 0.256083, 2 b (P - Q) = 0.367879
    wave = SquareWave(epsilon=1.0)
    assert wave._reach(3) == pytest.approx(0.256083, abs=1e-6)
    assert wave._affine(3)[0] == pytest.approx(2.718282, rel=1e-6)
    assert Laplace(epsilon=1.0, dimensions=2).variance(np.array([0.5]), 2) == pytest.approx([8.0], rel=1e-5)


def test_exponential_remainder_keeps_its_digits():
    for x in (-0.5, -1e-3, 1e-9, 0.2, 0.5001, 3.0):
        exact = sum(x**k / math.factorial(k) for k in range(2, 40))
        assert exponential_remainder(x) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("cls", "epsilon", "expected"),
    [
        (Piecewise, 0.1, 1), (Piecewise, 2.6, 1), (Piecewise, 5.0, 2), (Piecewise, 1e4, 12),
        (SquareWave, 7.6, 3), (MultiBit, 4.36, 2), (MultiBit, 2.0, 1), (OneBit, 0.1, 12),
        (Laplace, 1.0, 1), (Laplace, 3.9, 1), (Laplace, 4.1, 2), (Laplace, 400.0, 12), (Gaussian, 0.1, 12),
    ],
)  # fmt: skip
def test_automatic_number_of_coordinates(cls, epsilon, expected):
    assert make(cls, epsilon).sampled(12) == expected


@pytest.mark.parametrize("cls", [Laplace, Gaussian])
@pytest.mark.parametrize("epsilon", [0.5, 4.1, 9.0, 40.0])
def test_the_automatic_number_minimises_the_largest_variance(cls, epsilon):
    worst = [float(make(cls, epsilon, m).variance(np.array([1.0]), 20)[0]) for m in range(1, 21)]
    assert make(cls, epsilon).sampled(20) == 1 + int(np.argmin(worst))


# Statistics -----------------------------------------------------------------------------------------------------------


def draws(mechanism: FeatureMechanism, value: float, count: int) -> np.ndarray:
    """Outputs of a one-dimensional mechanism."""
    features = sparse.csr_array(np.full((count, 1), value, dtype=np.float32))
    return mechanism.perturb(features, np.arange(count), np.full(count, 9), STREAMS).data


@pytest.mark.parametrize("cls", KINDS)
@pytest.mark.parametrize(("epsilon", "m"), [(0.1, "auto"), (4.0, 3), (25.0, "auto")])
def test_estimates_are_unbiased_with_the_variance_of_theory(cls, epsilon, m):
    count, row = 40_000, np.array([0, 1, 0.25, 0.5, 0.9], dtype=np.float32)
    mechanism = make(cls, epsilon, m)
    reports = mechanism.perturb(sparse.csr_array(np.tile(row, (count, 1))), np.arange(count), np.zeros(count), STREAMS)
    estimates = mechanism.rectify(reports).toarray().astype(float)
    theory, centred = mechanism.variance(row, 5), row - mechanism.neutral
    # Five coordinates of 18 cases, so 5.2 standard errors are passed by chance less than once in 10,000 runs.
    assert (np.abs(estimates.mean(axis=0) - centred) < 5.2 * np.sqrt(theory / count)).all()
    squares = (estimates - centred) ** 2
    assert (np.abs(squares.mean(axis=0) - theory) < 5.2 * squares.std(axis=0) / math.sqrt(count) + 1e-6 * theory).all()


@pytest.mark.parametrize("cls", KINDS)
def test_the_mean_output_grows_with_the_value(cls):
    mechanism = make(cls, 2.0, 1)
    means = [draws(mechanism, value, 60_000).mean() for value in (0.0, 0.5, 1.0)]
    assert means[0] < means[1] < means[2]


# Properties -----------------------------------------------------------------------------------------------------------


@given(
    cls=some.sampled_from(KINDS),
    epsilon=some.floats(1e-4, 1e3),
    m=some.one_of(some.just("auto"), some.integers(1, 40)),
    d=some.integers(1, 30),
    seed=some.integers(0, 10),
)
@settings(max_examples=150, deadline=None)
def test_range_shape_and_rows_that_stand_alone(cls, epsilon, m, d, seed):
    mechanism = make(cls, epsilon, m)
    generator = np.random.Generator(np.random.Philox(seed))
    features = sparse.csr_array(generator.random((6, d), dtype=np.float32) * (generator.random((6, d)) < 0.5))
    senders, epochs = generator.integers(0, 2**40, 6), generator.integers(0, 2**63, 6).astype(np.uint64)
    reports = mechanism.perturb(features, senders, epochs, Streams(seed))
    sampled = mechanism.sampled(d)
    assert reports.shape == (6, d) and reports.dtype == np.float32 and 1 <= sampled <= d
    assert (np.diff(reports.indptr) == sampled).all() and np.isfinite(reports.data).all()
    low, high = mechanism.output_range(d)
    assert low <= reports.data.min() and reports.data.max() <= high
    assert (np.diff(reports.indices.reshape(6, sampled), axis=1) > 0).all()
    alone = mechanism.perturb(features[[4]], senders[[4]], epochs[[4]], Streams(seed))
    cut = slice(*reports.indptr[4:6])
    assert (alone.indices == reports.indices[cut]).all() and (alone.data == reports.data[cut]).all()
    rectified = mechanism.rectify(reports)
    assert rectified.dtype == np.float32 and (rectified.indices == reports.indices).all()
    assert (mechanism.variance(np.array([0.0, 0.3, 1.0]), d) >= 0).all()


@pytest.mark.parametrize("cls", KINDS)
def test_the_extremes_of_a_range_survive_float32(cls):
    for epsilon in (1e-3, 0.1, 1.0, 7.3, 50.0):
        low, high = make(cls, epsilon).output_range(4)
        if math.isfinite(high):
            assert float(np.float32(low)) == low and float(np.float32(high)) == high
            outputs = np.concatenate([draws(make(cls, epsilon), value, 20_000) for value in (0.0, 1.0)])
            assert low <= outputs.min() and outputs.max() <= high


@pytest.mark.parametrize("cls", KINDS)
def test_values_outside_the_declared_range_are_clamped_first(cls):
    mechanism, senders = make(cls, 1.0), np.arange(50)
    outside = np.array([-3.0, 7.0, np.nan, 0.5], dtype=np.float32)
    inside = np.array([0.0, 1.0, 0.0, 0.5], dtype=np.float32)
    a, b = (
        mechanism.perturb(sparse.csr_array(np.tile(r, (50, 1))), senders, senders, STREAMS) for r in (outside, inside)
    )
    assert (a.data == b.data).all()


def test_unsorted_rows_give_the_same_reports():
    mechanism = Piecewise(epsilon=8.0)
    features = sparse.csr_array(
        (np.array([0.9, 0.1, 0.4], np.float32), np.array([5, 1, 3]), np.array([0, 3])), shape=(1, 6)
    )
    dense = sparse.csr_array(features.toarray())
    a, b = (mechanism.perturb(f, np.array([3]), np.array([1]), STREAMS) for f in (features, dense))
    assert (a.data == b.data).all() and (a.indices == b.indices).all()
