"""Norm-sub: noisy counts made whole and non-negative with about their sum kept (as PrivGraph uses it)."""

from __future__ import annotations

import numpy as np


def norm_sub(noisy: np.ndarray) -> np.ndarray:
    """Non-negative whole numbers, int64, near `noisy` (any shape): truncate, subtract one amount, cut at 0.

    With a negative entry, the amount i is that of 0..|least|-1 whose result sums closest to the truncated numbers (the
    smaller on a tie). The sum falls as i grows, so bisection finds it.
    """
    whole = np.trunc(noisy).astype(np.int64)
    if not whole.size or whole.min() >= 0:
        return whole
    target, last = int(whole.sum()), int(-whole.min()) - 1

    def total(amount: int) -> int:
        return int(np.maximum(whole - amount, 0).sum())

    low, high = 0, last  # the first amount whose sum is at most the target, if there is one
    while low < high:
        middle = (low + high) // 2
        if total(middle) <= target:
            high = middle
        else:
            low = middle + 1
    best = low
    if low > 0 and total(low - 1) - target <= abs(total(low) - target):
        best = low - 1
    # Smaller amounts of the same sum give the same numbers: what is cut at 0 only shrinks where it is positive.
    return np.maximum(whole - best, 0)
