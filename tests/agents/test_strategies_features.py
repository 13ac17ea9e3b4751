"""What attackers report as features."""

import numpy as np
import pytest
from coalitions import coalition, opened, public, view

from agents.privacy.features.laplace import Laplace
from agents.privacy.features.none import PublicFeatures
from agents.privacy.features.piecewise import Piecewise
from agents.strategies import features as kinds

B = (np.exp(8 / 6) + 1) / (np.exp(8 / 6) - 1)  # bound of the piecewise mechanism at 8/3 a coordinate


def test_extreme_writes_the_bound_on_the_same_coordinates_of_every_member():
    rows = kinds.Extreme().craft(view()).toarray()
    assert rows.shape == (6, 20)
    assert (rows == rows[0]).all()
    written = rows[0][rows[0] != 0]
    assert len(written) == 3
    assert written == pytest.approx(B, rel=1e-5)


def test_extreme_can_point_down_or_both_ways():
    down = kinds.Extreme(sign="negative").craft(view())
    assert down.data == pytest.approx(-B, rel=1e-5)
    wide = public(dimensions=4000, features=Piecewise(epsilon=1000.0))
    both = kinds.Extreme(sign="mixed").craft(view(protocol=wide))
    rows = both.toarray()
    assert (rows == rows[0]).all()
    assert abs((rows[0][rows[0] != 0] > 0).mean() - 0.5) < 0.13  # 400 fair signs: five standard deviations


def test_extreme_stays_within_the_range_after_rounding_to_float32():
    for epsilon in (0.1, 0.37, 1.0, 3.3):
        protocol = public(features=Piecewise(epsilon=epsilon))
        low, high = protocol.features.output_range(20)
        for sign in ("positive", "negative"):
            data = kinds.Extreme(sign=sign).craft(view(protocol=protocol)).data.astype(float)
            assert low <= data.min() and data.max() <= high


def test_extreme_under_unbounded_noise_stops_at_the_quantile_of_honest_reports():
    protocol = public(features=Laplace(epsilon=1.0, dimensions=1))
    top = kinds.Extreme().craft(view(protocol=protocol)).data[0]
    # Laplace of scale 1 about 0: the 99.9 % quantile is ln 500 = 6.21; the empirical one of 20,000 draws is off by
    # sqrt(0.001 * 0.999 / 20000)/0.001 = 0.22 at one standard deviation
    assert top == pytest.approx(np.log(500), abs=1.0)


def test_extreme_with_public_features_writes_ones():
    assert (kinds.Extreme().craft(view(protocol=public(features=PublicFeatures()))).toarray() == 1).all()


def test_illegal_dense_writes_every_coordinate():
    rows = kinds.IllegalDense().craft(view()).toarray()
    assert rows.shape == (6, 20)
    assert rows == pytest.approx(B, rel=1e-5)


def test_random_is_even_over_the_range_on_own_coordinates():
    protocol = public(participants=2060, dimensions=20)
    rows = kinds.Random().craft(view(members=2000, protocol=protocol))
    assert (np.diff(rows.indptr) == 3).all()
    assert rows.has_sorted_indices
    assert abs(rows.data.mean()) < 5 * 2 * B / np.sqrt(12 * 6000)
    assert rows.data.std() == pytest.approx(2 * B / np.sqrt(12), rel=0.03)
    chosen = np.bincount(rows.indices, minlength=20)  # 6000 choices over 20 coordinates
    assert abs(chosen - 300).max() < 5 * np.sqrt(300)


def test_random_moves_with_the_perturbation_epoch_and_only_then():
    spec = coalition(features={"kind": "random"})
    one, two = (spec.plan(opened(round, memoized=False)).features for round in (1, 2))
    assert (one != two).nnz
    spec = coalition(features={"kind": "random"})
    one, two = (spec.plan(opened(round, memoized=True)).features for round in (1, 2))
    assert (one != two).nnz == 0


def test_constant_takes_its_place_in_the_range():
    rows = kinds.Constant(position=0.75).craft(view()).toarray()
    assert (rows == rows[0]).all()
    assert rows[0][rows[0] != 0] == pytest.approx(B / 2, rel=1e-5)  # -B + 0.75 * 2 B


def _mean_report(strategy, coordinates=slice(None)):
    """Mean rectified estimate of features, over 4,000 members."""
    protocol = public(participants=4060, features=Piecewise(epsilon=8.0))
    rows = strategy.craft(view(members=4000, protocol=protocol))
    assert (np.diff(rows.indptr) == 3).all()
    return protocol.features.rectify(rows).toarray()[:, coordinates].mean() + protocol.features.neutral


def test_honest_like_and_opposite_follow_the_mechanism_with_what_they_hold():
    # the standard error of each mean over 4000 x 20 coordinates is below 0.01
    assert _mean_report(kinds.HonestLike(density=0.0)) == pytest.approx(0.0, abs=0.04)
    assert _mean_report(kinds.HonestLike(density=0.3)) == pytest.approx(0.3, abs=0.04)
    assert _mean_report(kinds.Opposite(density=0.3)) == pytest.approx(0.7, abs=0.04)


def test_honest_like_keeps_what_it_made_up_over_the_rounds():
    seen = view()
    assert (kinds.made_up(seen, 0.4) != kinds.made_up(seen, 0.4)).nnz == 0
    assert set(kinds.made_up(seen, 0.4).data) == {1.0}


def test_mimic_class_holds_the_coordinates_of_its_class():
    guess = kinds.MimicClass(label=1)  # 1, 4, 7, ... of 20 coordinates and 3 classes
    assert _mean_report(guess, [1, 4, 7, 10, 13, 16, 19]) == pytest.approx(1.0, abs=0.06)
    assert _mean_report(guess, [0, 2, 3, 5]) == pytest.approx(0.0, abs=0.06)
    told = kinds.MimicClass(label=1, coordinates=[2, 3])
    assert _mean_report(told, [2, 3]) == pytest.approx(1.0, abs=0.1)
    assert _mean_report(told, [1, 4]) == pytest.approx(0.0, abs=0.1)


def test_mimic_class_names_a_class_or_coordinate_that_does_not_exist():
    with pytest.raises(ValueError, match="found label 3; allowed: 0 to 2"):
        kinds.MimicClass(label=3).craft(view())
    with pytest.raises(ValueError, match=r"must lie in 0\.\.19; found 5 to 20"):
        kinds.MimicClass(coordinates=[20, 5]).craft(view())
