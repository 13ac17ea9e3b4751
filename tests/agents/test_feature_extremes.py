"""Feature mechanisms at the ends of what a scenario may ask: next to no budget, a huge one, one coordinate, all of them."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse

from agents.privacy.features import FeatureMechanism
from sim.kernel.component import Problem, build
from sim.kernel.randomness import Streams

SENDERS = np.arange(2_000)
KINDS = ["laplace", "gaussian", "one-bit", "multi-bit", "piecewise", "square-wave"]
SHAPES = [(1, None), (1, 1), (6, 1), (6, 6), (60, None)]  # (d, m)


def made(kind, epsilon, sampled=None) -> FeatureMechanism:
    problems: list[Problem] = []
    more = {} if sampled is None else {"dimensions": sampled}
    mechanism = build(FeatureMechanism, {"kind": kind, "epsilon": epsilon, **more}, (), problems)
    assert not problems, problems
    return mechanism


def rows_of(value, dimensions):
    return sparse.csr_array(np.full((len(SENDERS), dimensions), value, dtype=np.float32))


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 50.0, 700.0, 800.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_reports_stay_finite_in_range_and_unbiased_as_float32(kind, epsilon):
    """Bias: 5.5 standard errors of the stated variance, a false alarm in 10^7 a check."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dimensions, sampled in SHAPES:
            if kind == "one-bit" and sampled is not None:
                continue
            mechanism = made(kind, epsilon, sampled)
            low, high = mechanism.output_range(dimensions)
            for value in (0.0, 0.3, 1.0):
                epochs = np.full(len(SENDERS), 3, dtype=np.uint64)
                reports = mechanism.perturb(rows_of(value, dimensions), SENDERS, epochs, Streams(6))
                assert reports.data.dtype == np.float32 and np.isfinite(reports.data).all()
                assert (np.diff(reports.indptr) == mechanism.sampled(dimensions)).all()
                outputs = reports.data.astype(np.float64)
                assert low <= outputs.min() and outputs.max() <= high
                rectified = mechanism.rectify(reports)
                assert rectified.data.dtype == np.float32 and np.isfinite(rectified.data).all()
                variance = float(mechanism.variance(np.array(value), dimensions))
                assert math.isfinite(variance) and variance >= -1e-12
                first = rectified[:, [0]].toarray().astype(np.float64)
                error = abs(first.mean() - (value - mechanism.neutral))
                assert error <= 5.5 * math.sqrt(max(variance, 0.0) / len(SENDERS)) + 1e-6


@pytest.mark.parametrize("dimensions", [1, 60])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 50.0, 700.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_spent_is_what_was_asked_and_never_more(kind, epsilon, dimensions):
    """A coordinate's budget is cut at 700, where its exponential would overflow; Gaussian noise is solved for."""
    mechanism = made(kind, epsilon)
    spent, delta = mechanism.spent(dimensions)
    assert delta == (1e-10 if kind == "gaussian" else 0.0)
    asked = epsilon if kind in ("laplace", "gaussian") else min(epsilon, 700.0 * mechanism.sampled(dimensions))
    assert spent <= epsilon * (1 + 1e-9) + 1e-14 and spent == pytest.approx(asked, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_values_outside_the_unit_interval_are_brought_inside_before_the_noise(kind):
    """A user whose features are not in [0, 1] would be told by outputs that no other value can give."""
    mechanism, epochs = made(kind, 2.0), np.zeros(len(SENDERS), dtype=np.uint64)
    for wild, tame in ((7.5, 1.0), (-3.0, 0.0), (np.nan, 0.0), (np.inf, 1.0)):
        one, two = (mechanism.perturb(rows_of(value, 4), SENDERS, epochs, Streams(1)) for value in (wild, tame))
        assert one.data.tobytes() == two.data.tobytes() and one.indices.tobytes() == two.indices.tobytes()
