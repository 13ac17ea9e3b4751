"""Bit-packed graphs for numba kernels: row i holds the neighbours of i, 64 to a word, rows padded to 8 words.

Such a graph of n nodes takes about n^2 / 8 bytes, and common neighbours are a popcount of two rows. The upper triangle
is numbered row-major: pair (i, j), i < j, has position `row_start(i, n) + j` (`_pairs.triangle_cells` for arrays).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types, uint64
from numba.extending import intrinsic


def _popcount(typingctx, word):
    """Number of ones in a uint64, as the processor counts them."""

    def codegen(context, builder, signature, args):
        function = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
        return builder.call(function, args)

    return types.uint64(types.uint64), codegen


popcount: Any = intrinsic(_popcount)


@njit(inline="always")
def row_start(i, n):
    """Position of pair (i, j) minus j, in the row-major upper triangle."""
    return i * (2 * n - i - 1) // 2 - i - 1


@njit(inline="always")
def bit(rows, i, j):
    """1 where the pair (i, j) is set, else 0."""
    return (rows[i, j >> 6] >> uint64(j & 63)) & uint64(1)


@njit(inline="always")
def set_both(rows, i, j):
    """Set the bit of an undirected pair in both rows."""
    rows[i, j >> 6] |= uint64(1) << uint64(j & 63)
    rows[j, i >> 6] |= uint64(1) << uint64(i & 63)


def words_of(n: int) -> int:
    """Words a row of n bits takes."""
    return max(1, -(-n // 512)) * 8


@njit(cache=True, nogil=True)
def pack_either(indptr, indices, place, rows):
    """Set a pair wherever either end reports it. `place` maps a user to its row, or to -1 (left out)."""
    for user in range(len(indptr) - 1):
        i = place[user]
        if i < 0:
            continue
        for at in range(indptr[user], indptr[user + 1]):
            j = place[indices[at]]
            if j >= 0 and j != i:
                set_both(rows, i, j)


@njit(cache=True, nogil=True)
def pack_pairs(u, v, place, rows):
    """Set listed pairs. `place` as in `pack_either`."""
    for at in range(len(u)):
        i, j = place[u[at]], place[v[at]]
        if i >= 0 and j >= 0 and i != j:
            set_both(rows, i, j)


@njit(cache=True, nogil=True)
def degrees_of(rows):
    """(n,) int64: ones in each row."""
    out = np.zeros(rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        total = uint64(0)
        for w in range(rows.shape[1]):
            total += popcount(rows[i, w])
        out[i] = total
    return out
