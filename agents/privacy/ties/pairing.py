"""Who speaks for a pair: a public hash of the two stable ids picks the one end that reports an undirected tie."""

from __future__ import annotations

import numpy as np

_MULTIPLY_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLY_2 = np.uint64(0x94D049BB133111EB)
_ADD = np.uint64(0x9E3779B97F4A7C15)


def reporter(u: np.ndarray | int, v: np.ndarray | int) -> np.ndarray:
    """The end (u or v) that reports the pair {u, v}; symmetric in its arguments, elementwise, int64.

    The pair's two ids, smaller first, go through the finaliser of SplitMix64; an even word picks the smaller id. Every
    pair has an owner that everybody can name, each user owns about half of its pairs, and a new participant changes no
    pair of the others.
    """
    first, second = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
    low, high = np.minimum(first, second), np.maximum(first, second)
    with np.errstate(over="ignore"):
        word = ((low.astype(np.uint64) << np.uint64(32)) | high.astype(np.uint64)) + _ADD
        word = (word ^ (word >> np.uint64(30))) * _MULTIPLY_1
        word = (word ^ (word >> np.uint64(27))) * _MULTIPLY_2
        word ^= word >> np.uint64(31)
    return np.where(word & np.uint64(1), high, low)
