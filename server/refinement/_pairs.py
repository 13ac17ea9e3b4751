"""Undirected pairs u < v as arrays: what several refinements need, in plain numpy."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from server.evidence import Evidence
from sim.kernel.randomness import Streams, digest64


def named_pairs(lists: sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(u, v, ends): pairs u < v that at least one end reports, in row-major order, and how many ends (1 or 2) do."""
    ones = sparse.csr_array(
        (np.ones(lists.nnz, dtype=np.int8), lists.indices.copy(), lists.indptr.copy()), shape=lists.shape
    )
    both = sparse.triu(ones + ones.T, k=1, format="csr")
    both.sort_indices()
    rows = np.repeat(np.arange(lists.shape[0], dtype=np.int32), np.diff(both.indptr))
    return rows, both.indices.astype(np.int32), both.data


def reported_pairs(lists: sparse.csr_array, ends: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (u, v), u < v, that at least `ends` (1 or 2) of their two ends report, in row-major order."""
    u, v, told = named_pairs(lists)
    return u[told >= ends], v[told >= ends]


def among(kept: np.ndarray, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs whose two ends are kept."""
    inside = kept[u] & kept[v]
    return u[inside], v[inside]


def distinct_pairs(u: np.ndarray, v: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Each undirected pair of distinct users once, u < v, in row-major order; loops and repetitions collapse."""
    low, high = np.minimum(u, v).astype(np.int64), np.maximum(u, v).astype(np.int64)
    codes = np.unique((low * n + high)[low != high])
    return (codes // n).astype(np.int32), (codes % n).astype(np.int32)


def random_cells(total: int, taken: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` distinct whole numbers in 0..total-1 outside `taken` (sorted), uniformly; O(count) while cells are
    plenty.

    Raises ValueError when fewer than `count` are free.
    """
    free = total - len(taken)
    if count > free:
        raise ValueError(f"{count} cells were asked for, but only {free} of {total} are free")
    if count * 2 > free:
        mask = np.ones(total, dtype=bool)
        mask[taken] = False
        return np.sort(rng.choice(np.flatnonzero(mask), count, replace=False))
    chosen = np.zeros(0, dtype=np.int64)
    while len(chosen) < count:
        # Draws that were seen before, or are taken, are rejected; those of the first excess draws win at random.
        drawn = rng.integers(0, total, int(1.2 * (count - len(chosen))) + 16)
        drawn = drawn[~contains(taken, drawn) & ~contains(chosen, drawn)]
        fresh = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
        chosen = np.sort(np.concatenate([chosen, fresh[: count - len(chosen)]]))
    return chosen


def contains(ascending: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Elementwise: is the value in the ascending array?"""
    if not len(ascending):
        return np.zeros(len(values), dtype=bool)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return ascending[at] == values


def triangle_pairs(cells: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (u, v), u < v, of positions 0..n(n-1)/2-1 in the row-major upper triangle."""
    cells = cells.astype(np.int64)
    u = np.floor(((2 * n - 1) - np.sqrt((2 * n - 1.0) ** 2 - 8.0 * cells)) / 2).astype(np.int64)
    start = u * (2 * n - u - 1) // 2
    u -= start > cells  # the square root may round up across a row's start, or down
    u += (u + 1) * (2 * n - u - 2) // 2 <= cells
    return u.astype(np.int32), (cells - u * (2 * n - u - 1) // 2 + u + 1).astype(np.int32)


def triangle_cells(u: np.ndarray, v: np.ndarray, n: int) -> np.ndarray:
    """Positions of pairs u < v in the row-major upper triangle: the inverse of `triangle_pairs`."""
    u = u.astype(np.int64)
    return u * (2 * n - u - 1) // 2 + v - u - 1


def curator_noise(
    purpose: str, u: np.ndarray, v: np.ndarray, evidence: Evidence, streams: Streams
) -> np.random.Generator:
    """The curator's noise for one release about the ties (u, v).

    Keyed by the round's epoch and by the ties: the same ties in the same epoch are answered by the same release,
    however often the server refines (it does so once a threshold it tries), and ties that moved by a wholly new one.
    """
    held = digest64(triangle_cells(u, v, evidence.n))
    return streams.generator(purpose, held, int(evidence.extra.get("epoch", 0)))
