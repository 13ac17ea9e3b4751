"""Kernel of attestation: the intersection of a sparse matrix with its transpose, and its plain reference."""

from __future__ import annotations

import numpy as np
from numba import njit

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@njit(cache=True, nogil=True)
def intersect(indptr, indices, levels):
    """Pairs u < v stored in both directions: (u, v, level of u about v, level of v about u), row-major.

    Rows are visited in ascending order, so the place of u in row v only moves forward; every stored entry is passed at
    most once, whatever the degrees.
    """
    n = len(indptr) - 1
    place = indptr[:-1].copy()
    room = len(indices) // 2
    us, vs = np.empty(room, np.int32), np.empty(room, np.int32)
    xs, ys = np.empty(room, np.int8), np.empty(room, np.int8)
    found = 0
    for u in range(n):
        for here in range(indptr[u], indptr[u + 1]):
            v = indices[here]
            if v <= u:
                continue
            there, end = place[v], indptr[v + 1]
            while there < end and indices[there] < u:
                there += 1
            if there < end and indices[there] == u:
                us[found], vs[found] = u, v
                xs[found], ys[found] = levels[here], levels[there]
                found += 1
                there += 1
            place[v] = there
    return us[:found].copy(), vs[:found].copy(), xs[:found].copy(), ys[:found].copy()


def intersect_plain(indptr: np.ndarray, indices: np.ndarray, levels: np.ndarray) -> Arrays:
    """The same by a dictionary of all entries: slow and obvious."""
    stored = {
        (u, int(indices[i])): int(levels[i]) for u in range(len(indptr) - 1) for i in range(indptr[u], indptr[u + 1])
    }
    both = sorted((u, v) for u, v in stored if u < v and (v, u) in stored)
    u = np.array([pair[0] for pair in both], dtype=np.int32)
    v = np.array([pair[1] for pair in both], dtype=np.int32)
    x = np.array([stored[pair] for pair in both], dtype=np.int8)
    y = np.array([stored[pair[1], pair[0]] for pair in both], dtype=np.int8)
    return u, v, x, y


def warm_up() -> None:
    """Compile for the index widths that scipy uses."""
    for width in (np.int32, np.int64):
        intersect(np.zeros(2, width), np.zeros(0, width), np.zeros(0, np.int8))
