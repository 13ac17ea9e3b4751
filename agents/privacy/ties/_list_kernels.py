"""Numba kernel of randomised response over whole lists, in time proportional to the output.

Zero entries: the replaced positions of a block of 8,192 columns are found by geometric skips through one Philox stream
(two words a position: the skip and the new symbol). Held (non-zero) entries have words of their own, keyed by column
and level, so the noise of two values of one entry is independent.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from sim.kernel.counter import below, failures, philox, unit
from sim.kernel.randomness import BLOCK

_BLOCK = BLOCK


@njit(cache=True, nogil=True)
def randomise(indptr, indices, levels, senders, columns, symbols, replaced, key, held_key, epoch, capacity):
    """Randomised lists of some senders; returns (indptr, indices, levels), or an empty indptr when `capacity` is short.

    `replaced` is the probability that an entry is replaced by a uniform symbol of 0..symbols-1.
    """
    k0, k1, h0, h1 = key[0], key[1], held_key[0], held_key[1]
    out_indices = np.empty(capacity, np.int32)
    out_levels = np.empty(capacity, np.int8)
    out_indptr = np.zeros(len(senders) + 1, np.int64)
    log_keep = math.log1p(-replaced)
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
                if draw % 2 == 0:
                    words = philox(1 + draw // 2, block, sender, epoch, k0, k1)
                    skip_word, symbol_word = words[0], words[1]
                else:
                    skip_word, symbol_word = words[2], words[3]
                draw += 1
                column += 1 + failures(skip_word, log_keep, _BLOCK)
                limit = min(column, end)
                while held < last and indices[held] < limit:
                    level = int(levels[held])
                    own = philox(1, indices[held], sender, epoch * 256 + level, h0, h1)
                    if unit(own[0]) < replaced:
                        level = int(below(own[1], symbols))
                    if level > 0:
                        if size >= capacity:
                            return out_indptr[:0], out_indices, out_levels
                        out_indices[size] = indices[held]
                        out_levels[size] = level
                        size += 1
                    held += 1
                if column >= end:
                    break
                symbol = int(below(symbol_word, symbols))
                if symbol == 0 or column == sender or (held < last and indices[held] == column):
                    continue
                if size >= capacity:
                    return out_indptr[:0], out_indices, out_levels
                out_indices[size] = column
                out_levels[size] = symbol
                size += 1
        out_indptr[row + 1] = size
    return out_indptr, out_indices[:size].copy(), out_levels[:size].copy()
