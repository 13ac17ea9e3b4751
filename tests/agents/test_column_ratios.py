"""The exact channel matrix of every discrete mechanism: its largest column ratio is e^epsilon."""

import math

import numpy as np
import pytest

from agents.privacy.features.multi_bit import MultiBit
from agents.privacy.features.one_bit import OneBit
from agents.privacy.labels import RandomizedResponseLabels
from agents.privacy.noise import DegreeNoise
from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.verification_list import VerificationList

EPSILONS = [0.01, 0.5, 1.0, 5.0, 9.0]


def largest_ratio(matrix: np.ndarray) -> float:
    """Over the outputs (columns): most likely input against least likely input (rows)."""
    assert matrix.sum(axis=1) == pytest.approx(np.ones(len(matrix)), abs=1e-12)
    return float((matrix.max(axis=0) / matrix.min(axis=0)).max())


def symmetric(symbols: int, keep: float, other: float) -> np.ndarray:
    return np.full((symbols, symbols), other) + np.eye(symbols) * (keep - other)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("levels", [1, 2, 5, 120])
def test_verification_lists(epsilon, levels):
    ties = VerificationList(epsilon=epsilon, levels=levels)
    assert largest_ratio(symmetric(levels + 1, ties.keep, ties.flip)) == pytest.approx(math.exp(epsilon), rel=1e-12)
    # The replacement form that is drawn: replaced with (kappa + 1) q by a uniform symbol, the true one included.
    replaced = (levels + 1) * ties.flip
    drawn = symmetric(levels + 1, 1 - replaced + replaced / (levels + 1), replaced / (levels + 1))
    assert largest_ratio(drawn) == pytest.approx(math.exp(epsilon), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bits_of_lists_and_pairs(epsilon):
    for ties in (BinaryList(epsilon=epsilon), PairBits(epsilon=epsilon)):
        assert largest_ratio(symmetric(2, 1 - ties.flip, ties.flip)) == pytest.approx(math.exp(epsilon), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("classes", [2, 18])
def test_labels(epsilon, classes):
    matrix = RandomizedResponseLabels(epsilon=epsilon).transition(classes)
    assert largest_ratio(matrix) == pytest.approx(math.exp(epsilon), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("cls", "more"), [(MultiBit, {}), (MultiBit, {"dimensions": 3}), (OneBit, {})])
def test_feature_bits(epsilon, cls, more):
    mechanism, dimensions = cls(epsilon=epsilon, **more), 8
    chance = mechanism.probability(np.linspace(0, 1, 33), dimensions)
    one = largest_ratio(np.stack([chance, 1 - chance], axis=1))
    assert one ** mechanism.sampled(dimensions) == pytest.approx(math.exp(epsilon), rel=1e-11)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", ["laplace", "geometric"])
def test_degree_noise(epsilon, kind):
    noise = DegreeNoise(kind, epsilon)
    steps = np.arange(-40, 41)
    chance = math.tanh(noise.rate / 2) * np.exp(-noise.rate * np.abs(steps))  # (1 - q)/(1 + q) q^|s|
    moved = round(noise.sensitivity / noise.grid)
    if kind == "geometric":
        ratios = chance[moved:] / chance[:-moved]
        assert max(ratios.max(), 1 / ratios.min()) == pytest.approx(math.exp(epsilon), rel=1e-12)
    assert noise.rate * moved == pytest.approx(epsilon, rel=1e-12)
