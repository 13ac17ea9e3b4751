"""An order of the users that does not depend on their ids, so that sampled steps give the same answer after
relabelling."""

from __future__ import annotations

import numpy as np
from numba import njit

_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xBF58476D1CE4E5B9)
_C = np.uint64(0x94D049BB133111EB)
_GIVEN = np.uint64(0xD6E8FEB86659FD93)
_GOT = np.uint64(0xA0761D6478BD642F)


@njit(cache=True, nogil=True)
def _mix(word):
    """A 64-bit finaliser: every bit of the result depends on every bit of the word."""
    word = (word + _A) & np.uint64(0xFFFFFFFFFFFFFFFF)
    word = (word ^ (word >> np.uint64(30))) * _B
    word = (word ^ (word >> np.uint64(27))) * _C
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def fingerprints(indptr, indices, levels, colours, sweeps):
    """A 64-bit word per user from its surroundings in the lists, `sweeps` steps deep.

    Sums of mixed words do not depend on the order of the terms, so users keep their word under any renaming.
    `colours` (n,) uint64 are the starting words (labels, for instance).
    """
    n = len(indptr) - 1
    words = np.empty(n, np.uint64)
    for v in range(n):
        words[v] = _mix(colours[v])
    for _ in range(sweeps):
        gathered = np.zeros(n, np.uint64)
        for v in range(n):
            for i in range(indptr[v], indptr[v + 1]):
                u, level = indices[i], np.uint64(levels[i])
                gathered[v] += _mix(words[u] * _GIVEN + level)
                gathered[u] += _mix(words[v] * _GOT + level)
        for v in range(n):
            words[v] = _mix(words[v] + gathered[v])
    return words


def warm_up() -> None:
    """Compile for both index widths of scipy."""
    for width in (np.int32, np.int64):
        fingerprints(np.zeros(2, width), np.zeros(0, width), np.zeros(0, np.int8), np.zeros(1, np.uint64), 1)
