"""The audit passes honest mechanisms and has the power that it states."""

import math

import numpy as np
import pytest

from agents.privacy.audit import (
    Effort,
    audit_degrees,
    audit_features,
    audit_labels,
    audit_protocol,
    audit_ties,
    exit_code,
)
from agents.privacy.audit.bounds import clopper_pearson, epsilon_lower_bound, error_per_root_draw, normal_quantile
from agents.privacy.audit.events import Binning, best_event, plan
from agents.privacy.audit.moments import Expected, Moments, compare
from agents.privacy.audit.rows import NO_VIOLATION, NOT_AUDITED, NOT_LDP, VIOLATES
from agents.privacy.features.gaussian import Gaussian
from agents.privacy.features.laplace import Laplace
from agents.privacy.features.multi_bit import MultiBit
from agents.privacy.features.one_bit import OneBit
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.features.square_wave import SquareWave
from agents.privacy.labels import PublicLabels, RandomizedResponseLabels
from agents.privacy.noise import DegreeNoise
from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.group_degrees import GroupDegrees
from agents.privacy.ties.none import NoTies
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.sampled_list import SampledList
from agents.privacy.ties.trusted_curator import TrustedCurator
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Protocol
from sim.kernel.randomness import Streams

STREAMS = Streams(404)
LIGHT = Effort(pilot=30_000, most=300_000)


def protocol(ties=None, features=None, unit="list-entry", participants=129, dimensions=6):
    ties, features = ties or VerificationList(epsilon=3.0, levels=3), features or Piecewise(epsilon=1.0)
    ties = ties.localised(unit, participants, 1.0) if ties.form != "none" else ties
    return Protocol(participants, dimensions, 4, features, ties, unit, 3, 2.0)


# Bounds ---------------------------------------------------------------------------------------------------------------


def test_clopper_pearson_against_hand_worked_bounds():
    # No hits in n draws: the upper bound u has (1 - u)^n = alpha. All hits: the lower bound l has l^n = alpha.
    assert clopper_pearson(0, 50, 0.01) == (0.0, pytest.approx(1 - 0.01 ** (1 / 50)))
    assert clopper_pearson(50, 50, 0.01) == (pytest.approx(0.01 ** (1 / 50)), 1.0)
    # Two draws, one hit: P(at least one) = 1 - (1 - l)^2 = alpha, P(at most one) = 1 - u^2 = alpha.
    low, high = clopper_pearson(1, 2, 0.05)
    assert (low, high) == (pytest.approx(1 - math.sqrt(0.95)), pytest.approx(math.sqrt(0.95)))


def test_the_lower_bound_holds_as_often_as_it_says():
    generator, p, q, draws = np.random.Generator(np.random.Philox(3)), 0.6, 0.3, 500
    first, second = generator.binomial(draws, p, 4000), generator.binomial(draws, q, 4000)
    bounds = [epsilon_lower_bound(int(a), int(b), draws, 0.05) for a, b in zip(first, second)]
    assert np.mean(np.array(bounds) > math.log(p / q)) < 0.05
    assert np.median(bounds) > 0.7 * math.log(p / q)


def test_a_delta_is_taken_off_the_first_world():
    assert epsilon_lower_bound(900, 100, 1000, 1e-3, 0.5) < epsilon_lower_bound(900, 100, 1000, 1e-3)
    assert epsilon_lower_bound(10, 0, 1000, 1e-3, 0.5) == 0.0


def test_planned_power_is_reached():
    p, q, alpha = 0.5, 0.45, 1e-4
    draws = plan(p, q, math.log(p / q) / 1.1, 0.0, alpha, 10**9)[0]
    generator = np.random.Generator(np.random.Philox(5))
    hits = generator.binomial(int(draws), [[p], [q]], (2, 2000))
    bounds = np.array([epsilon_lower_bound(int(a), int(b), int(draws), alpha) for a, b in hits.T])
    assert (bounds > math.log(p / q) / 1.1).mean() > 0.98
    assert normal_quantile(0.975) == pytest.approx(-1.959964, abs=1e-5)
    assert error_per_root_draw(0.5, 0.4, 1e-3) > error_per_root_draw(0.5, 0.5, 1e-3)


# Events ---------------------------------------------------------------------------------------------------------------


def test_bins_keep_few_values_apart_and_absent_ones_too():
    binning = Binning(np.array([1.0, 5.0, 1.0, 3.0, np.nan]))
    assert binning.index(np.array([1.0, 3.0, 5.0, np.nan])).tolist() == [0, 1, 2, binning.count - 1]
    many = Binning(np.arange(10_000.0))
    assert np.ptp(np.bincount(many.index(np.arange(10_000.0)), minlength=many.count)[:-1]) < 5


def test_the_best_event_of_two_windows_is_the_window():
    generator = np.random.Generator(np.random.Philox(9))
    first = np.where(generator.random(20_000) < 0.75, 1.0, 0.0)
    second = np.where(generator.random(20_000) < 0.25, 1.0, 0.0)
    event = best_event((0, 1), [first[:, None]], [second[:, None]], math.log(3), 0.0, 1e-6)
    assert (event.first, event.second) == (pytest.approx(0.75, abs=0.02), pytest.approx(0.25, abs=0.02))
    assert event.hits([np.array([[1.0], [0.0], [1.0]])]) == 2


def test_moments_are_compared_at_the_stated_level():
    honest, off = Moments(), Moments()
    values = np.random.Generator(np.random.Philox(1)).normal(2.0, 1.0, 10_000)
    honest.add(values)
    off.add(values + 0.1)
    assert compare("x", "bias", [Expected("a", 2.0, honest)], False).verdict == NO_VIOLATION
    row = compare("x", "bias", [Expected("a", 2.0, honest), Expected("b", 2.0, off)], False)
    assert row.verdict == VIOLATES and row.case == "b" and row.measured == pytest.approx(0.1, abs=0.03)
    assert 0.05 < row.visible < 0.1
    exact = Moments()
    exact.add(np.full(10, 3.0))
    assert compare("x", "variance", [Expected("a", 3.0, exact)], True).verdict == NO_VIOLATION
    assert compare("x", "variance", [Expected("a", 3.1, exact)], True).verdict == VIOLATES


# Honest mechanisms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Laplace, Gaussian, OneBit, MultiBit, Piecewise, SquareWave])
@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_honest_feature_mechanisms_pass(cls, epsilon):
    rows = audit_features(cls(epsilon=epsilon), 5, STREAMS, LIGHT)
    assert [row.verdict for row in rows] == [NO_VIOLATION] * 5, rows
    assert {row.quantity for row in rows} == {"budget", "epsilon", "epsilon, one coordinate", "bias", "mean square"}
    line = rows[1]
    assert line.claimed == pytest.approx(epsilon, rel=1e-6) and line.measured < epsilon and line.draws > 0
    if cls in (MultiBit, Piecewise):
        assert line.measured > 0.6 * epsilon, "a bound near the claim, not a trivial one"


@pytest.mark.parametrize("unit", ["list-entry", "undirected-tie"])
@pytest.mark.parametrize("cls", [VerificationList, BinaryList, PairBits, SampledList, GroupDegrees])
def test_honest_tie_protocols_pass(cls, unit):
    rows = audit_ties(protocol(cls(epsilon=2.0), unit=unit), STREAMS, LIGHT)
    assert exit_code(rows) == 0 and rows[0].measured > 0, rows
    assert ("both ends" in {row.quantity for row in rows}) == (unit == "undirected-tie" and cls.two_ended)
    assert rows[0].claimed == (1.0 if unit == "undirected-tie" and cls.two_ended else 2.0)


@pytest.mark.parametrize("epsilon", [11.0, 13.0, 50.0, 800.0])
def test_honest_mechanisms_pass_where_nearly_every_draw_is_the_truth(epsilon):
    """Of some ten thousand draws none, or a single one, differs from the truth: neither accuses anybody."""
    effort = Effort(pilot=20_000, most=20_000)
    for ties in (VerificationList(epsilon=epsilon), BinaryList(epsilon=epsilon)):
        public = Protocol(60, 10, 3, Piecewise(epsilon=1.0), ties, "list-entry", 1, 3.0)
        assert exit_code(audit_ties(public, STREAMS, effort)) == 0
    assert exit_code(audit_labels(RandomizedResponseLabels(epsilon=epsilon), 3, STREAMS, effort)) == 0
    for cls in (MultiBit, Piecewise, SquareWave):
        assert exit_code(audit_features(cls(epsilon=epsilon, dimensions=1), 10, STREAMS, effort)) == 0


def test_outcomes_that_may_be_missing_are_allowed_for_and_not_more():
    """20,000 values, all 0. An outcome of size 5 with probability 1e-4 is missing with probability e^-2, of 2e-3 with
    e^-40: the first is no violation, the second is."""
    still = Moments()
    still.add(np.zeros(20_000))
    for chance, verdict in ((1e-4, NO_VIOLATION), (2e-3, VIOLATES)):
        assert compare("x", "bias", [Expected("a", 5 * chance, still, 5.0)], False).verdict == verdict
    assert compare("x", "bias", [Expected("a", 5e-4, still)], False).verdict == VIOLATES


def test_labels_and_degrees_pass():
    rows = audit_labels(RandomizedResponseLabels(epsilon=1.0), 5, STREAMS, LIGHT)
    rows += audit_degrees(DegreeNoise("laplace", 0.5), STREAMS, 2, LIGHT)
    rows += audit_degrees(DegreeNoise("geometric", 2.0), STREAMS, 1, LIGHT)
    assert exit_code(rows) == 0 and len(rows) == 8
    assert audit_labels(PublicLabels(), 5, STREAMS, LIGHT) == []


def test_what_is_not_local_is_not_audited():
    rows = audit_ties(protocol(TrustedCurator(epsilon=1.0)), STREAMS, LIGHT)
    assert [row.verdict for row in rows] == [NOT_AUDITED] and "trusted curator" in rows[0].note
    assert audit_ties(protocol(NoTies()), STREAMS, LIGHT) == []


def test_a_whole_protocol():
    labels = RandomizedResponseLabels(epsilon=1.0)
    rows = audit_protocol(protocol(), labels, "memoized", True, STREAMS, LIGHT)
    assert exit_code(rows) == 0
    whole = next(row for row in rows if row.subject == "one whole report")
    assert whole.claimed == pytest.approx(5.0) and 2.0 < whole.measured < 5.0
    over_rounds = [row for row in rows if "memoized" in row.quantity]
    assert [row.verdict for row in over_rounds] == [NO_VIOLATION, NO_VIOLATION, NOT_LDP]
    assert over_rounds[2].measured > over_rounds[2].claimed, "more than twice the budget of one answer"
    still = audit_protocol(protocol(), labels, "memoized", False, STREAMS, Effort(5_000, 20_000))
    assert NOT_LDP not in {row.verdict for row in still}
    fresh = audit_protocol(protocol(), labels, "fresh", True, STREAMS, Effort(5_000, 20_000))
    assert not [row for row in fresh if "memoized" in row.quantity]


def test_an_audit_repeats_bit_for_bit():
    first, second = (audit_features(MultiBit(epsilon=1.0), 3, Streams(8), Effort(5_000, 20_000)) for _ in range(2))
    assert first == second
