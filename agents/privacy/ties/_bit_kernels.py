"""Numba kernel of binary randomised response over lists, in time proportional to the noisy ones.

Zero entries: the flipped positions of a block of 8,192 columns are found by geometric skips through one Philox stream,
one word a skip. Held entries have a word of their own, keyed by column, so that the noise of the two values of an entry
is independent. Where only owned pairs are reported, flips of pairs that belong to the other end are dropped: flips are
independent of each other, so what remains is randomised response over the owned pairs alone.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, uint64

from sim.kernel.counter import failures, philox, unit
from sim.kernel.randomness import BLOCK

_BLOCK = BLOCK


@njit(cache=True, nogil=True, inline="always")
def owns(sender, other):
    """Whether `sender` reports the pair {sender, other}: `agents.privacy.ties.pairing.reporter` for one pair."""
    low, high = uint64(min(sender, other)), uint64(max(sender, other))
    word = ((low << uint64(32)) | high) + uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    word ^= word >> uint64(31)
    return ((word & uint64(1)) == uint64(0)) == (sender < other)


@njit(cache=True, nogil=True)
def flip_bits(indptr, indices, senders, columns, owned_only, flip, key, held_key, epoch, capacity):
    """Noisy ones of some senders as (indptr, indices); an empty indptr when `capacity` is too small.

    `indptr`, `indices` hold the true ones; every bit is flipped with probability `flip`.
    """
    k0, k1, h0, h1 = key[0], key[1], held_key[0], held_key[1]
    out_indices = np.empty(capacity, np.int32)
    out_indptr = np.zeros(len(senders) + 1, np.int64)
    log_keep = math.log1p(-flip)
    size = 0
    for row in range(len(senders)):
        sender = senders[row]
        held, last = indptr[row], indptr[row + 1]
        for block in range((columns + _BLOCK - 1) // _BLOCK):
            end = min(columns, (block + 1) * _BLOCK)
            column = block * _BLOCK - 1
            draw = 0
            words = philox(1, block, sender, epoch, k0, k1)
            while True:
                turn = draw & 3
                if turn == 0:
                    words = philox(1 + (draw >> 2), block, sender, epoch, k0, k1)
                    word = words[0]
                elif turn == 1:
                    word = words[1]
                elif turn == 2:
                    word = words[2]
                else:
                    word = words[3]
                draw += 1
                column += 1 + failures(word, log_keep, _BLOCK)
                limit = min(column, end)
                while held < last and indices[held] < limit:
                    other = indices[held]
                    held += 1
                    if owned_only and not owns(sender, other):
                        continue
                    own = philox(1, other, sender, epoch * 256 + 1, h0, h1)
                    if unit(own[0]) < flip:
                        continue
                    if size >= capacity:
                        return out_indptr[:0], out_indices
                    out_indices[size] = other
                    size += 1
                if column >= end:
                    break
                if column == sender or (held < last and indices[held] == column):
                    continue
                if size >= capacity:
                    return out_indptr[:0], out_indices
                out_indices[size] = column  # kept or written over: a branch here would be mispredicted half the time
                size += 1 if not owned_only else int(owns(sender, column))
        out_indptr[row + 1] = size
    return out_indptr, out_indices[:size].copy()
