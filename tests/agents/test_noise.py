"""Degree noise: the same bits as a plain version, the right distribution, and rows that stand alone."""

import math

import numpy as np
import pytest

from agents.privacy.noise import DegreeNoise
from sim.kernel.randomness import Streams

STREAMS = Streams(11)


def plain(noise: DegreeNoise, columns: int, sender: int, epoch: int, purpose: str) -> list[float]:
    words = STREAMS.generator(purpose, sender, epoch, 0).bit_generator.random_raw(4 * columns).reshape(columns, 4)
    units = (words >> np.uint64(11)) * 2.0**-53
    steps = [
        math.floor(-math.log(1 - a) / noise.rate) - math.floor(-math.log(1 - b) / noise.rate) for a, b in units[:, :2]
    ]
    return [s * noise.grid for s in steps]


@pytest.mark.parametrize("kind", ["laplace", "geometric"])
@pytest.mark.parametrize("epsilon", [0.01, 0.7, 6.0])
def test_the_compiled_noise_equals_the_plain_one(kind, epsilon):
    noise = DegreeNoise(kind, epsilon)
    senders, epochs = np.array([3, 70_001, 0]), np.array([1, 2**63 + 5, 4], np.uint64)
    drawn = noise.draw(5, senders, epochs, STREAMS, "degrees")
    for row, sender, epoch in zip(drawn, senders, epochs):
        assert row.tolist() == plain(noise, 5, int(sender), int(epoch), "degrees")


def test_a_row_stands_alone_and_streams_differ():
    noise = DegreeNoise("laplace", 1.0)
    everybody = noise.draw(3, np.arange(50), 7, STREAMS, "degrees")
    assert (noise.draw(3, np.array([20]), 7, STREAMS, "degrees")[0] == everybody[20]).all()
    assert (noise.draw(1, np.arange(50), 7, STREAMS, "degrees")[:, 0] == everybody[:, 0]).all()
    assert (noise.draw(3, np.arange(50), 8, STREAMS, "degrees") != everybody).any()
    assert (noise.draw(3, np.arange(50), 7, STREAMS, "other") != everybody).any()


@pytest.mark.parametrize("kind", ["laplace", "geometric"])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.1, 1.0), (1.0, 2.0), (5.0, 1.0)])
def test_mean_and_variance_are_those_of_theory(kind, epsilon, sensitivity):
    noise = DegreeNoise(kind, epsilon, sensitivity)
    count = 200_000
    drawn = noise.draw(1, np.arange(count), 0, STREAMS, "moments")[:, 0]
    assert abs(drawn.mean()) < 5 * math.sqrt(noise.variance() / count)  # 6e-7 by chance
    fourth = (drawn**4).mean()
    assert abs((drawn**2).mean() - noise.variance()) < 5 * math.sqrt(fourth / count)
    assert noise.spent() == pytest.approx(epsilon, rel=1e-14)


def test_laplace_variance_is_close_to_the_continuous_one():
    assert DegreeNoise("laplace", 0.5).variance() == pytest.approx(2 / 0.5**2, rel=1e-6)
    # q = e^-1: 2 q / (1 - q)^2 = 0.735759 / 0.399576 = 1.841348
    assert DegreeNoise("geometric", 1.0).variance() == pytest.approx(1.841348, rel=1e-6)


def test_geometric_probabilities_have_the_ratio_e_to_epsilon():
    noise = DegreeNoise("geometric", 1.0)
    drawn = noise.draw(1, np.arange(400_000), 0, STREAMS, "ratio")[:, 0]
    counts = np.array([(drawn == s).sum() for s in range(4)])
    expected = (1 - math.exp(-1)) / (1 + math.exp(-1)) * np.exp(-np.arange(4)) * len(drawn)
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_draws_lie_on_the_grid():
    laplace = DegreeNoise("laplace", 0.3)
    drawn = laplace.draw(2, np.arange(1000), 0, STREAMS, "grid") / laplace.grid
    assert (drawn == np.rint(drawn)).all() and 1 / laplace.grid == 2 ** round(math.log2(1 / laplace.grid))


@pytest.mark.parametrize("bad", [("normal", 1.0, 1.0), ("laplace", 0.0, 1.0), ("laplace", 1.0, -1.0)])
def test_bad_settings_are_explained(bad):
    with pytest.raises(ValueError, match="degree noise"):
        DegreeNoise(*bad)
