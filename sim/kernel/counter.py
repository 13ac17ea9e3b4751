"""Philox4x64-10 inside numba kernels: the same words as `numpy.random.Philox` for the same key and counter.

numpy increments the counter before it generates, so draw number i (from 0) of a stream with counter (0, b, id, e) is
word i % 4 of the block with counter (1 + i // 4, b, id, e).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, uint64

_M0 = np.uint64(0xD2E7470EE14C6C93)
_M1 = np.uint64(0xCA5A826395121157)
_W0 = np.uint64(0x9E3779B97F4A7C15)
_W1 = np.uint64(0xBB67AE8584CAA73B)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_11 = np.uint64(11)
_TO_UNIT = 1.0 / 9007199254740992.0


@njit(inline="always")
def _high(a, b):
    """Upper 64 bits of a 64 x 64 bit product."""
    al, ah, bl, bh = a & _LOW, a >> _32, b & _LOW, b >> _32
    mid = ah * bl + ((al * bl) >> _32)
    low = (mid & _LOW) + al * bh
    return ah * bh + (mid >> _32) + (low >> _32)


@njit(cache=True, nogil=True)
def philox(c0, c1, c2, c3, k0, k1):
    """Four uint64 words for one 256-bit counter and 128-bit key."""
    c0, c1, c2, c3, k0, k1 = uint64(c0), uint64(c1), uint64(c2), uint64(c3), uint64(k0), uint64(k1)
    for _ in range(10):
        h0, l0 = _high(_M0, c0), _M0 * c0
        h1, l1 = _high(_M1, c2), _M1 * c2
        c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
        k0 += _W0
        k1 += _W1
    return c0, c1, c2, c3


@njit(inline="always")
def unit(word):
    """A double in [0, 1) from a word, exactly as `Generator.random` makes it."""
    return float(word >> _11) * _TO_UNIT


@njit(inline="always")
def failures(word, log_miss, most):
    """How many misses come before the next hit, each a miss with probability e^log_miss; cut at `most`.

    Cut as a float, before it becomes an integer: where hits are rare enough, no integer holds the number.
    """
    return int(min(math.log(1.0 - unit(word)) / log_miss, float(most)))


@njit(inline="always")
def below(word, n):
    """An integer in 0..n-1 from a word by the multiply-high map (bias below n / 2^64)."""
    return _high(word, uint64(n))
