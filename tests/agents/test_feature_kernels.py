"""Feature mechanisms, bit for bit against plain Python versions that follow the formulas one draw at a time."""

import math

import numpy as np
import pytest
from scipy import sparse

from agents.privacy.features.gaussian import Gaussian
from agents.privacy.features.laplace import Laplace
from agents.privacy.features.multi_bit import MultiBit
from agents.privacy.features.one_bit import OneBit
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.features.square_wave import SquareWave
from sim.kernel.randomness import Streams

STREAMS = Streams(2024)


def units(words) -> list[float]:
    return [(int(word) >> 11) * 2.0**-53 for word in words]


def plain_choice(purpose: str, sender: int, epoch: int, dimensions: int, sampled: int) -> list[int]:
    """Floyd's algorithm with a set."""
    if sampled == dimensions:
        return list(range(dimensions))
    words = STREAMS.generator(purpose, sender, epoch, 0).bit_generator.random_raw(sampled)
    taken: set[int] = set()
    for step, word in enumerate(words):
        top = dimensions - sampled + step
        place = int(word) * (top + 1) >> 64
        taken.add(top if place in taken else place)
    return sorted(taken)


def rounded(value: float, grid: float) -> float:
    return float(np.rint(value / grid)) * grid


def piecewise(mechanism, x, draws, d):
    e = mechanism.epsilon / mechanism.sampled(d)
    width = 2 / math.expm1(e / 2)
    bound = 1 + width
    left = -bound + (bound + 1) * x
    if draws[0] < 1 / (1 + math.exp(-e / 2)):
        output = left + width * draws[1]
    else:
        output = -bound + (2 * bound - width) * draws[1]
        output += width if output >= left else 0.0
    return rounded(output, 2.0 ** (math.frexp(bound)[1] - 22))


def square_wave(mechanism, x, draws, d):
    reach, near = mechanism._reach(d), mechanism._densities(d)[0]
    left, width = -reach + x, 2 * reach
    if draws[0] < width * near:
        output = left + width * draws[1]
    else:
        output = -reach + (1 + 2 * reach - width) * draws[1]
        output += width if output >= left else 0.0
    return rounded(output, 2.0 ** (math.frexp(1 + reach)[1] - 22))


def laplace(mechanism, x, draws, d):
    grid, scale = mechanism._grid(d), mechanism._scale(d)
    step = math.floor(x / grid)
    step += draws[2] < x / grid - step
    step += math.floor(-math.log(1 - draws[0]) / (grid / scale)) - math.floor(-math.log(1 - draws[1]) / (grid / scale))
    return step * grid


def gaussian(mechanism, x, draws, d):
    normal = math.sqrt(-2 * math.log(1 - draws[0])) * math.cos(2 * math.pi * draws[1])
    return rounded(x + mechanism._sigma(d) * normal, mechanism._grid(d))


def bit(mechanism, x, draws, d):
    e = mechanism.epsilon / mechanism.sampled(d)
    chance = math.exp(-e) / (1 + math.exp(-e)) + math.tanh(e / 2) * x
    return 1.0 if draws[0] < chance else -1.0


CASES = [
    (Piecewise(epsilon=0.1), piecewise),
    (Piecewise(epsilon=6.0, dimensions=3), piecewise),
    (Piecewise(epsilon=2.0, dimensions=9), piecewise),
    (SquareWave(epsilon=0.1), square_wave),
    (SquareWave(epsilon=12.0, dimensions=4), square_wave),
    (Laplace(epsilon=0.5), laplace),
    (Laplace(epsilon=30.0, dimensions=7), laplace),
    (Gaussian(epsilon=1.0), gaussian),
    (Gaussian(epsilon=1.0, dimensions=2), gaussian),
    (MultiBit(epsilon=1.0), bit),
    (MultiBit(epsilon=9.0, dimensions=6), bit),
    (OneBit(epsilon=3.0), bit),
]


@pytest.mark.parametrize(("mechanism", "plain"), CASES, ids=lambda c: getattr(c, "kind", ""))
def test_the_compiled_mechanism_equals_the_plain_one(mechanism, plain):
    generator = np.random.Generator(np.random.Philox(8))
    dense = generator.random((5, 9), dtype=np.float32) * (generator.random((5, 9)) < 0.6)
    dense[0, :2] = 0, 1
    senders = np.array([0, 3, 70_000, 5, 2**40])
    epochs = np.array([1, 1, 2**63 + 11, 0, 7], dtype=np.uint64)
    reports = mechanism.perturb(sparse.csr_array(dense), senders, epochs, STREAMS)
    d, purpose, per_coordinate = 9, f"privacy.features.{mechanism.kind}", 1 if plain is bit else 4
    for row, (sender, epoch) in enumerate(zip(senders.tolist(), epochs.tolist())):
        chosen = plain_choice(purpose, sender, epoch, d, mechanism.sampled(d))
        words = STREAMS.generator(purpose, sender, epoch, 1).bit_generator.random_raw(d * per_coordinate)
        draws = [units(group) for group in words.reshape(d, per_coordinate)]
        expected = [np.float32(plain(mechanism, float(dense[row, j]), draws[j], d)) for j in chosen]
        cut = slice(*reports.indptr[row : row + 2])
        assert reports.indices[cut].tolist() == chosen
        assert reports.data[cut].tolist() == expected


@pytest.mark.parametrize(("dimensions", "sampled"), [(6, 1), (6, 2), (6, 5), (11, 4)])
def test_every_coordinate_is_sampled_equally_often(dimensions, sampled):
    count = 60_000
    mechanism = MultiBit(epsilon=1.0, dimensions=sampled)
    empty = sparse.csr_array((count, dimensions), dtype=np.float32)
    reports = mechanism.perturb(empty, np.arange(count), np.zeros(count), STREAMS)
    assert (np.diff(reports.indptr) == sampled).all()
    assert all(len(set(reports.indices[a : a + sampled])) == sampled for a in range(0, 400 * sampled, sampled))
    share = sampled / dimensions
    deviation = np.bincount(reports.indices, minlength=dimensions) - count * share
    assert np.abs(deviation).max() < 5.5 * math.sqrt(count * share * (1 - share))  # under 1e-6 by chance


def test_pairs_of_coordinates_are_sampled_equally_often():
    count = 60_000
    mechanism = MultiBit(epsilon=1.0, dimensions=2)
    reports = mechanism.perturb(
        sparse.csr_array((count, 4), dtype=np.float32), np.arange(count), np.ones(count), STREAMS
    )
    first, second = reports.indices.reshape(count, 2).T
    counts = np.bincount(4 * first + second, minlength=16)
    seen = counts[counts > 0]
    assert len(seen) == 6 and np.abs(seen - count / 6).max() < 5.5 * math.sqrt(count / 6)
