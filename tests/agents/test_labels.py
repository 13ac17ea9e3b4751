"""Label mechanisms: exact transition matrix, the same bits as a plain version, and rows that stand alone."""

import math

import numpy as np
import pytest

from agents.privacy.labels import PublicLabels, RandomizedResponseLabels
from sim.kernel.randomness import Streams

STREAMS = Streams(5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("classes", [2, 7, 40])
def test_the_matrix_is_k_ary_randomised_response_with_ratio_e_to_epsilon(epsilon, classes):
    mechanism = RandomizedResponseLabels(epsilon=epsilon)
    matrix = mechanism.transition(classes)
    keep = math.exp(epsilon) / (math.exp(epsilon) + classes - 1)
    assert matrix[0, 0] == pytest.approx(keep, rel=1e-12)
    assert matrix[1, 0] == pytest.approx((1 - keep) / (classes - 1), rel=1e-2 if epsilon == 30 else 1e-12)
    assert matrix.sum(axis=1) == pytest.approx(np.ones(classes), abs=1e-12)
    assert (matrix.max(axis=0) / matrix.min(axis=0)).max() == pytest.approx(math.exp(epsilon), rel=1e-12)
    assert mechanism.spent(classes) == pytest.approx(epsilon, rel=1e-12)


def test_hand_worked_matrix():
    # ln 2 and three classes: 2/(2 + 2) kept, 1/4 for each other class.
    assert RandomizedResponseLabels(epsilon=math.log(2)).transition(3) == pytest.approx(
        np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    )


def test_reports_follow_the_matrix():
    mechanism, classes, count = RandomizedResponseLabels(epsilon=1.0), 4, 100_000
    for truth in range(classes):
        labels = np.full(count, truth)
        reported = mechanism.perturb(labels, np.arange(count), np.full(count, truth), STREAMS, classes)
        expected = count * mechanism.transition(classes)[truth]
        statistic = ((np.bincount(reported, minlength=classes) - expected) ** 2 / expected).sum()
        assert statistic < 30.7  # chi-square, 3 degrees of freedom, 1e-6


def test_the_compiled_version_equals_the_plain_one():
    mechanism, classes = RandomizedResponseLabels(epsilon=0.5), 5
    senders, labels = np.array([0, 9, 123_456]), np.array([4, 0, 2])
    reported = mechanism.perturb(labels, senders, np.array([1, 2, 3]), STREAMS, classes)
    chance = classes / (math.exp(0.5) + classes - 1)
    for got, label, sender, epoch in zip(reported, labels, senders, [1, 2, 3]):
        words = STREAMS.generator("privacy.labels", int(sender), epoch, 0).bit_generator.random_raw(2)
        replaced = (int(words[0]) >> 11) * 2.0**-53 < chance
        assert got == (int(words[1]) * classes >> 64 if replaced else label)


def test_rows_stand_alone_and_missing_labels_stay():
    mechanism = RandomizedResponseLabels(epsilon=0.2)
    labels = np.arange(60) % 6
    labels[7] = -1
    everybody = mechanism.perturb(labels, np.arange(60), np.zeros(60), STREAMS, 6)
    alone = [mechanism.perturb(labels[[i]], np.array([i]), np.zeros(1), STREAMS, 6)[0] for i in range(60)]
    assert everybody.tolist() == alone and everybody[7] == -1 and (everybody != labels).any()


def test_public_labels_stay_raw():
    labels = np.array([1, 0, 2])
    assert (PublicLabels().perturb(labels, labels, labels, STREAMS, 3) == labels).all()
    assert PublicLabels().transition(3) is None and PublicLabels().spent(3) == 0


def test_a_label_beyond_the_classes_is_explained():
    with pytest.raises(ValueError, match=r"found label 3; allowed: 0\.\.2"):
        RandomizedResponseLabels(epsilon=1.0).perturb(np.array([3]), np.zeros(1), np.zeros(1), STREAMS, 3)
