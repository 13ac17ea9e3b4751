"""Broken twins of honest mechanisms: the audit rejects each, on the line that is about the mistake."""

import itertools
import math
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from agents.privacy.audit import Effort, audit_degrees, audit_features, audit_labels, audit_memoized_ties, audit_ties
from agents.privacy.audit.protocol import audit_memoized_features, audit_whole_report
from agents.privacy.features.base import FeatureMechanism
from agents.privacy.features.gaussian import Gaussian, smallest_sigma
from agents.privacy.features.laplace import Laplace
from agents.privacy.features.multi_bit import MultiBit
from agents.privacy.features.one_bit import OneBit
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.features.square_wave import SquareWave
from agents.privacy.labels import PublicLabels, RandomizedResponseLabels
from agents.privacy.noise import DegreeNoise
from agents.privacy.ties.base import TieReports
from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Protocol
from sim.kernel.component import add_plugin_folder
from sim.kernel.randomness import Streams

STREAMS = Streams(90)
EFFORT = Effort(pilot=50_000, most=800_000)


def violated(rows) -> set[str]:
    return {row.quantity for row in rows if row.violates}


def protocol(ties=None, features=None):
    return Protocol(
        129, 4, 4, features or Piecewise(epsilon=1.0), ties or VerificationList(epsilon=2.0), "list-entry", 3, 2.0
    )


# Ten per cent too little noise ----------------------------------------------------------------------------------------


def ten_per_cent_off(cls: type) -> type:
    class Twin(cls):
        """Perturbs with 1.1 times the budget that it accounts for."""

        def spent(self, dimensions):
            return self.epsilon, 0.0

        def perturb(self, features, senders, epochs, streams):
            return cls(epsilon=1.1 * self.epsilon).perturb(features, senders, epochs, streams)

        def rectify(self, reports):
            return cls(epsilon=1.1 * self.epsilon).rectify(reports)

        def variance(self, value, dimensions):
            return cls(epsilon=1.1 * self.epsilon).variance(value, dimensions)

    return Twin


@pytest.mark.parametrize("cls", [Laplace, OneBit, MultiBit, Piecewise, SquareWave])
def test_ten_per_cent_too_little_noise_on_features(cls):
    found = violated(audit_features(ten_per_cent_off(cls)(epsilon=1.0), 2, STREAMS, EFFORT))
    assert "epsilon" in found and not found & {"bias", "mean square", "budget"}


class LouderList(VerificationList):
    """Randomises with 1.1 times the budget that it accounts for."""

    def encode(self, truth, senders, streams, call):
        return VerificationList(epsilon=1.1 * self.epsilon, levels=self.levels).encode(truth, senders, streams, call)


def test_ten_per_cent_too_little_noise_on_ties_labels_and_degrees():
    assert "epsilon" in violated(audit_ties(protocol(LouderList(epsilon=2.0)), STREAMS, EFFORT))

    class LouderLabels(RandomizedResponseLabels):
        def perturb(self, labels, senders, epochs, streams, classes):
            honest = RandomizedResponseLabels(epsilon=1.1 * self.epsilon)
            return honest.perturb(labels, senders, epochs, streams, classes)

    assert "epsilon" in violated(audit_labels(LouderLabels(epsilon=2.0), 5, STREAMS, EFFORT))

    class LouderDegrees(DegreeNoise):
        def draw(self, columns, senders, epochs, streams, purpose):
            return DegreeNoise(self.kind, 1.1 * self.epsilon).draw(columns, senders, epochs, streams, purpose)

    for kind in ("laplace", "geometric"):
        assert violated(audit_degrees(LouderDegrees(kind, 1.0), STREAMS, effort=EFFORT)) >= {"epsilon", "variance"}


def test_ten_per_cent_too_little_noise_in_a_whole_report():
    twin = protocol(LouderList(epsilon=2.0), ten_per_cent_off(Piecewise)(epsilon=1.0))
    assert violated(audit_whole_report(twin, PublicLabels(), True, STREAMS, EFFORT)) == {"epsilon"}
    assert not violated(audit_whole_report(protocol(), PublicLabels(), True, STREAMS, EFFORT))


# Wrong randomised response --------------------------------------------------------------------------------------------


class LieMayBeTrue(VerificationList):
    """Keeps with probability p, and otherwise draws the lie among all symbols, the true one included."""

    def encode(self, truth, senders, streams, call):
        symbols, flip = self.levels + 1, self.flip
        # p + (1 - p)/symbols stays, where honest randomised response keeps p: as if epsilon were larger.
        stay, other = self.keep + self.levels * flip / symbols, self.levels * flip / symbols
        louder = VerificationList(epsilon=math.log(stay / other), levels=self.levels)
        return louder.encode(truth, senders, streams, call)


class OnlyExistingTies(VerificationList):
    """Leaves the zeros of a list alone."""

    def encode(self, truth, senders, streams, call):
        made = super().encode(truth, senders, streams, call)
        lists = sparse.csr_array(made.lists * (truth > 0))
        lists.eliminate_zeros()
        return TieReports(lists, made.numbers)


@pytest.mark.parametrize("levels", [1, 5])
@pytest.mark.parametrize("cls", [LieMayBeTrue, OnlyExistingTies])
def test_wrong_randomised_response(cls, levels):
    assert "epsilon" in violated(audit_ties(protocol(cls(epsilon=2.0, levels=levels)), STREAMS, EFFORT))


def test_only_existing_bits_perturbed():
    class OnlyExistingBits(BinaryList):
        def encode(self, truth, senders, streams, call):
            made = super().encode(truth, senders, streams, call)
            return TieReports(sparse.csr_array(made.lists * (truth > 0)), made.numbers)

    assert "epsilon" in violated(audit_ties(protocol(OnlyExistingBits(epsilon=2.0)), STREAMS, EFFORT))


# Wrong scales ---------------------------------------------------------------------------------------------------------


class NoDimensionFactor(Laplace):
    """Scale 1 / epsilon on each of m coordinates, where m / epsilon is due."""

    def _scale(self, dimensions):
        return 1 / self.epsilon


def test_laplace_without_the_dimension_factor_is_caught_by_its_own_account_and_by_draws():
    rows = audit_features(NoDimensionFactor(epsilon=1.0, dimensions=4), 4, STREAMS, EFFORT)
    assert violated(rows) == {"budget", "epsilon"}

    class Retyped(NoDimensionFactor):
        def spent(self, dimensions):
            return self.epsilon, 0.0

    assert violated(audit_features(Retyped(epsilon=1.0, dimensions=4), 4, STREAMS, EFFORT)) == {"epsilon"}


def test_gaussian_with_a_wrong_sigma():
    class Smaller(Gaussian):
        def perturb(self, features, senders, epochs, streams):
            reports = super().perturb(sparse.csr_array(features.shape, dtype=np.float32), senders, epochs, streams)
            reports.data *= np.float32(0.9)
            reports.data += features.toarray().ravel()
            return reports

    assert violated(audit_features(Smaller(epsilon=1.0), 4, STREAMS, EFFORT)) == {"mean square"}

    class PerCoordinate(Gaussian):
        """Calibrated for one coordinate, used on all."""

        def _sigma(self, dimensions):
            return smallest_sigma(self.epsilon, self.delta)

    rows = audit_features(PerCoordinate(epsilon=1.0, delta=1e-5), 16, STREAMS, EFFORT)
    assert violated(rows) >= {"budget"}

    class Retyped(PerCoordinate):
        def spent(self, dimensions):
            return self.epsilon, self.delta

    assert violated(audit_features(Retyped(epsilon=1.0, delta=1e-2), 64, STREAMS, EFFORT)) == {"epsilon"}


# Biased estimates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Piecewise, Laplace, SquareWave])
def test_an_output_clipped_before_rectification(cls):
    class Clipped(cls):
        def perturb(self, features, senders, epochs, streams):
            reports = super().perturb(features, senders, epochs, streams)
            np.clip(reports.data, 0.0, 1.0, out=reports.data)
            return reports

    assert "bias" in violated(audit_features(Clipped(epsilon=1.0), 2, STREAMS, EFFORT))


def test_a_forgotten_factor_for_the_coordinates_not_sampled():
    class Unscaled(MultiBit):
        def rectify(self, reports):
            rectified = super().rectify(reports)
            rectified.data *= self.sampled(reports.shape[1]) / reports.shape[1]
            return rectified

    assert {"bias", "mean square"} <= violated(audit_features(Unscaled(epsilon=1.0, dimensions=1), 3, STREAMS, EFFORT))


def test_a_choice_of_coordinates_that_depends_on_the_values():
    class PicksOnes(MultiBit):
        def perturb(self, features, senders, epochs, streams):
            reports = super().perturb(features, senders, epochs, streams)
            filled = np.flatnonzero(np.diff(features.indptr) == 1)
            reports.indices[filled] = features.indices[features.indptr[filled]]
            return reports

    assert "epsilon, one coordinate" in violated(audit_features(PicksOnes(epsilon=1.0), 12, STREAMS, EFFORT))


# Memoized values ------------------------------------------------------------------------------------------------------


def test_a_memoized_row_drawn_again_without_charge():
    fresh = itertools.count()

    class DrawnAgain(Piecewise):
        def perturb(self, features, senders, epochs, streams):
            return super().perturb(features, senders, epochs + np.uint64(next(fresh)), streams)

    rows = audit_memoized_features(protocol(features=DrawnAgain(epsilon=1.0)), STREAMS, EFFORT)
    assert violated(rows) == {"epsilon, 3 rounds memoized"}
    assert not violated(audit_memoized_features(protocol(), STREAMS, EFFORT))


def test_a_memoized_list_drawn_again_without_charge():
    class DrawnAgain(VerificationList):
        def encode(self, truth, senders, streams, call):
            return super().encode(truth, senders, streams, replace(call, epoch=call.round))

    assert violated(audit_memoized_ties(protocol(DrawnAgain(epsilon=2.0)), STREAMS, EFFORT))
    assert not violated(audit_memoized_ties(protocol(), STREAMS, EFFORT))


# A user's own ---------------------------------------------------------------------------------------------------------

PLUGIN = '''
import numpy as np
from scipy import sparse
from agents.privacy.features.base import FeatureMechanism


class Rounded(FeatureMechanism):
    """Sends the rounded feature, and a coin flip one time in three."""

    epsilon: float = 1.0

    @property
    def neutral(self):
        return 0.5

    def sampled(self, dimensions):
        return dimensions

    def spent(self, dimensions):
        return self.epsilon, 0.0

    def output_range(self, dimensions):
        return 0.0, 1.0

    def perturb(self, features, senders, epochs, streams):
        key = streams.integer("rounded") + int(senders[0])
        generator = np.random.Generator(np.random.Philox(key=key))
        dense = np.rint(features.toarray())
        flips = generator.random(dense.shape) < 1 / 3
        dense[flips] = generator.integers(0, 2, int(flips.sum()))
        reports = sparse.csr_array(np.ones_like(dense, dtype=np.float32))
        reports.data[:] = dense.ravel()
        return reports

    def rectify(self, reports):
        rectified = reports.copy()
        rectified.data = 1.5 * (reports.data - 0.5)
        return rectified

    def variance(self, value, dimensions):
        return 9 / 16 - (np.asarray(value) - 0.5) ** 2
'''


def test_a_plugin_that_leaks_more_than_it_says(tmp_path):
    (tmp_path / "leaky_rounding.py").write_text(textwrap.dedent(PLUGIN))
    add_plugin_folder(str(tmp_path))
    cls = FeatureMechanism._family.resolve("leaky_rounding:Rounded")
    # 5/6 against 1/6 on each of three coordinates: epsilon is 3 ln 5 = 4.8, not 1.
    rows = audit_features(cls(epsilon=1.0), 3, STREAMS, EFFORT)
    assert "epsilon" in violated(rows) and rows[1].measured > 2


def test_the_audit_tells_ten_per_cent_from_none_nearly_always():
    """Power of 0.99 by design: of 30 twins at 1.1 epsilon at most two may pass (by chance 3e-3); no honest one fails."""

    class Louder(RandomizedResponseLabels):
        def perturb(self, labels, senders, epochs, streams, classes):
            honest = RandomizedResponseLabels(epsilon=1.1 * self.epsilon)
            return honest.perturb(labels, senders, epochs, streams, classes)

    caught = [bool(violated(audit_labels(Louder(epsilon=1.5), 4, Streams(seed), EFFORT)[:1])) for seed in range(30)]
    honest = RandomizedResponseLabels(epsilon=1.5)
    accused = [bool(violated(audit_labels(honest, 4, Streams(seed), EFFORT))) for seed in range(10)]
    assert sum(caught) >= 28 and not any(accused)
