"""Selection of EdgeRefine: which pairs fill a quota, found in one scan and a bounded heap instead of a sort.

Pairs come in groups of equal probability. Whole groups are taken from the most probable down; of the group in which the
quota ends, the tie rule picks the rest.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from server.refinement._bit_rows import bit, row_start
from server.refinement._edgerefine_kernels import score_row
from sim.kernel.counter import philox

NONE, ALL, SOME = 0, 1, 2
ROW_ORDER, CONTINUOUS, RANDOM = 0, 1, 2
RULES = {"row-order": ROW_ORDER, "continuous": CONTINUOUS, "random": RANDOM}


@njit(inline="always")
def _before(score, word, other_score, other_word):
    """Whether the first candidate ranks below the second."""
    return score < other_score or (score == other_score and word < other_word)


@njit(cache=True, nogil=True)
def _offer(scores, words, us, vs, held, need, score, word, i, j):
    """Offer a candidate to a heap of the `need` highest ones (lowest on top); returns how many it holds."""
    if held == need and not _before(scores[0], words[0], score, word):
        return held
    if held < need:
        at = held
        while at > 0:
            parent = (at - 1) // 2
            if not _before(score, word, scores[parent], words[parent]):
                break
            scores[at], words[at], us[at], vs[at] = scores[parent], words[parent], us[parent], vs[parent]
            at = parent
        held += 1
    else:
        at = 0
        while True:
            child = 2 * at + 1
            if child >= need:
                break
            if child + 1 < need and _before(scores[child + 1], words[child + 1], scores[child], words[child]):
                child += 1
            if not _before(scores[child], words[child], score, word):
                break
            scores[at], words[at], us[at], vs[at] = scores[child], words[child], us[child], vs[child]
            at = child
    scores[at], words[at], us[at], vs[at] = score, word, i, j
    return held


@njit(cache=True, nogil=True)
def select(rows, degrees, planes, least, codes, low, scale, cells, quota, take, whole, some, ties, words, key):
    """The chosen pairs (u, v), in no particular order.

    `take[s, code]` is NONE, ALL or SOME for candidates of set s: with `quota` those whose noisy bit is s, without it
    set 0 holds all pairs. `whole[s]` and `some[s]` are the numbers of pairs that ALL and SOME give. With empty `codes`
    a pair's code is its cell of similarity. Under SOME, `ties` says which pairs are taken: the first ones, the most
    similar ones (equal ones at random) or random ones. Chance is keyed by the users' `words`, not by their ids.
    """
    n = rows.shape[0]
    room = whole.sum() + some.sum()
    us, vs = np.empty(room, np.int32), np.empty(room, np.int32)
    size = 0
    scores, marks = np.empty((2, some.max()), np.float64), np.empty((2, some.max()), np.uint64)
    heap_u, heap_v = np.empty((2, some.max()), np.int32), np.empty((2, some.max()), np.int32)
    held = np.zeros(2, np.int64)
    line = np.empty(n)
    for i in range(n):
        start = row_start(i, n)
        if size == room:
            break
        if len(codes) == 0:
            score_row(rows, degrees, planes, least, i, i + 1, n, line)
        for j in range(i + 1, n):
            if len(codes):
                group = np.int64(codes[start + j])
            else:
                group = np.int64(min((line[j - i - 1] - low) * scale, cells - 1.0))
            of = np.int64(bit(rows, i, j)) if quota else 0
            action = take[of, group]
            if action == NONE:
                continue
            if action == SOME:
                if ties == ROW_ORDER:
                    if held[of] == some[of]:
                        continue
                    held[of] += 1
                else:
                    s = 0.0
                    if ties == CONTINUOUS:
                        if len(codes):
                            score_row(rows, degrees, planes, least, i, j, j + 1, line[j - i - 1 : j - i])
                        s = line[j - i - 1]
                    mark = philox(1, words[i] + words[j], words[i] ^ words[j], 0, key[0], key[1])[0]
                    held[of] = _offer(
                        scores[of], marks[of], heap_u[of], heap_v[of], held[of], some[of], s, uint64(mark), i, j
                    )
                    continue
            us[size], vs[size] = i, j
            size += 1
    if ties != ROW_ORDER:
        for of in range(2):
            for at in range(held[of]):
                us[size], vs[size] = heap_u[of, at], heap_v[of, at]
                size += 1
    return us[:size], vs[:size]


def plan(
    probability: np.ndarray, counts: np.ndarray, need: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `select` takes of each group so that set s gives need[s] pairs: (take (2, groups), whole (2,), some (2,)).

    `probability` (groups,) ranks the groups, equal values count as one; `counts` (groups, sets) are their sizes. A set
    smaller than its need gives all it has.
    """
    take = np.zeros((2, len(probability)), dtype=np.uint8)
    whole, some = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    ranks = np.unique(-probability, return_inverse=True)[1]
    for s, wanted in enumerate(need):
        sizes = np.bincount(ranks, weights=counts[:, s]).astype(np.int64)
        before = np.concatenate([[0], np.cumsum(sizes)])
        rest = wanted - before[:-1]
        full = (rest >= sizes) & (sizes > 0)
        part = (rest > 0) & (rest < sizes)
        take[s, full[ranks]] = ALL
        take[s, part[ranks]] = SOME
        whole[s] = sizes[full].sum()
        some[s] = rest[part].sum()
    return take, whole, some
