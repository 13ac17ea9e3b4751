"""Numba kernel of degree-preserving randomised response: a list of noisy ones in time proportional to its length.

The full randomised-response row is never made. A zero entry ends up reported with probability (1 - p) keep, so the
reported zeros of a block of 8,192 columns are found by geometric skips at that rate; a held entry ends up reported with
probability p keep and has a word of its own, keyed by its column. Entries are independent given the noisy degree, which
is what makes the two steps of the definition one.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, uint64

from sim.kernel.counter import failures, philox, unit
from sim.kernel.randomness import BLOCK

_BLOCK = BLOCK


@njit(cache=True, nogil=True)
def sample_rows(indptr, indices, senders, epochs, keeps, columns, flip, key, held_key):
    """Reported ones of some senders as (indptr, indices).

    `epochs` (k,) uint64 names each row's perturbation, `keeps` (k,) is the probability that a noisy one of the row
    stays, and `flip` the probability q = 1 - p that randomised response inverts a bit.
    """
    out_indptr = np.zeros(len(senders) + 1, np.int64)
    out = np.empty(2 * len(indices) + 64, np.int32)
    size = 0
    for row in range(len(senders)):
        sender, epoch, keep = senders[row], epochs[row], keeps[row]
        held, last = indptr[row], indptr[row + 1]
        if keep > 0.0:
            keep_held, log_drop = (1.0 - flip) * keep, math.log1p(-flip * keep)
            for block in range((columns + _BLOCK - 1) // _BLOCK):
                end = min(columns, (block + 1) * _BLOCK)
                column = block * _BLOCK - 1
                draw = 0
                words = philox(1, block, sender, epoch, key[0], key[1])
                while True:
                    turn = draw & 3
                    if turn == 0 and draw > 0:
                        words = philox(1 + (draw >> 2), block, sender, epoch, key[0], key[1])
                    word = words[0] if turn == 0 else words[1] if turn == 1 else words[2] if turn == 2 else words[3]
                    draw += 1
                    column += 1 + failures(word, log_drop, _BLOCK)
                    limit = min(column, end)
                    while size + (last - held) + 1 >= len(out):
                        larger = np.empty(2 * len(out), np.int32)
                        larger[:size] = out[:size]
                        out = larger
                    while held < last and indices[held] < limit:
                        own = philox(1, uint64(indices[held]), sender, epoch, held_key[0], held_key[1])
                        if unit(own[0]) < keep_held:
                            out[size] = indices[held]
                            size += 1
                        held += 1
                    if column >= end:
                        break
                    if column != sender and not (held < last and indices[held] == column):
                        out[size] = column
                        size += 1
        out_indptr[row + 1] = size
    return out_indptr, out[:size].copy()
