"""The numba Philox equals numpy's, word for word."""

import numpy as np
from numba import njit

from sim.kernel.counter import below, failures, philox, unit
from sim.kernel.randomness import Streams


@njit
def _draws(key, block, ident, epoch, n):
    out = np.empty(n)
    words = np.empty(n, np.uint64)
    for i in range(0, n, 4):
        block_words = philox(1 + i // 4, block, ident, epoch, key[0], key[1])
        for j in range(4):
            if i + j < n:
                words[i + j] = block_words[j]
                out[i + j] = unit(block_words[j])
    return words, out


@njit
def _below_many(words, n):
    return np.array([below(w, n) for w in words])


def test_numba_philox_equals_numpy_philox():
    streams = Streams(7)
    words, units = _draws(streams.key("ties"), 3, 12345, 2, 23)
    reference = streams.generator("ties", ident=12345, epoch=2, block=3)
    assert (reference.bit_generator.random_raw(23) == words).all()
    assert (streams.generator("ties", 12345, 2, 3).random(23) == units).all()


def test_below_stays_in_range_and_is_even():
    words = np.random.Generator(np.random.Philox(1)).bit_generator.random_raw(60_000)
    values = _below_many(words, 6)
    counts = np.bincount(values.astype(int), minlength=6)
    assert len(counts) == 6 and abs(counts - 10_000).max() < 500


@njit
def _failures_many(words, log_miss, most):
    return np.array([failures(w, log_miss, most) for w in words])


def test_failures_are_geometric_and_cut_where_no_integer_would_hold_them():
    """Hits with probability 0.3: P(no failure) = 0.3 and the mean is 0.7 / 0.3; with hits of 1e-300 all are cut."""
    words = np.random.Generator(np.random.Philox(5)).bit_generator.random_raw(100_000)
    found = _failures_many(words, np.log1p(-0.3), 10_000)
    assert abs((found == 0).mean() - 0.3) < 0.006 and abs(found.mean() - 0.7 / 0.3) < 0.04
    assert (_failures_many(words[:100], -1e-300, 8192) == 8192).all()
