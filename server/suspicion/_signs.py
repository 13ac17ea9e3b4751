"""Exact law of a sum of differences whose signs are fair coins, in numba, with its plain reference."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numba import njit

EXACT_UP_TO = 300
MOST_WORK = 300_000
"""Terms, and terms times reach, above which the normal law (with a continuity correction) stands in for the exact
one."""


@njit(cache=True, nogil=True)
def upper_tails(counts, sums):
    """P(sum of +-d >= observed) per user: `counts[v, d]` is how many of v's pairs differ by d (column 0 is not used).

    `sums` (n,) int64 is the observed sum. Exact by convolution up to `EXACT_UP_TO` terms and `MOST_WORK`.
    """
    n, width = counts.shape
    out = np.ones(n)
    for v in range(n):
        terms, reach, spread = 0, 0, 0.0
        for d in range(1, width):
            terms += counts[v, d]
            reach += d * counts[v, d]
            spread += d * d * counts[v, d]
        if terms == 0:
            continue
        if terms > EXACT_UP_TO or terms * reach > MOST_WORK:
            out[v] = 0.5 * math.erfc((sums[v] - 1.0) / math.sqrt(2.0 * spread))  # such sums lie 2 apart
            continue
        law, used = np.zeros(2 * reach + 1), 0
        law[reach] = 1.0
        for d in range(1, width):
            for _ in range(counts[v, d]):
                used += d
                fresh = np.zeros(2 * reach + 1)
                for s in range(reach - used, reach + used + 1):
                    below = law[s - d] if s - d >= 0 else 0.0
                    above = law[s + d] if s + d <= 2 * reach else 0.0
                    fresh[s] = 0.5 * (below + above)
                law = fresh
        total = 0.0
        for s in range(2 * reach, max(reach + sums[v], 0) - 1, -1):
            total += law[s]
        out[v] = min(total, 1.0)
    return out


def upper_tail_plain(differences: list[int], observed: int) -> float:
    """The same for one user by trying all sign patterns."""
    signs = itertools.product((-1, 1), repeat=len(differences))
    hits = [sum(s * d for s, d in zip(sign, differences)) >= observed for sign in signs]
    return sum(hits) / len(hits)
