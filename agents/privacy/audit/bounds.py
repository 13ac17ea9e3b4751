"""Binomial confidence bounds, the lower bound on epsilon that they give, and how many draws a test needs.

An event that has probability p1 in one world and p2 in another shows epsilon >= ln((p1 - delta) / p2).
"""

from __future__ import annotations

import math

POWER = 0.99
"""Probability with which a planned test finds a mechanism at `EXCESS` times its epsilon."""
EXCESS = 1.1


def clopper_pearson(hits: int, draws: int, alpha: float) -> tuple[float, float]:
    """(lower, upper) bounds of a probability, each wrong with probability at most alpha (Clopper & Pearson, 1934)."""
    from scipy.special import betaincinv

    lower = 0.0 if hits == 0 else float(betaincinv(hits, draws - hits + 1, alpha))
    upper = 1.0 if hits == draws else float(betaincinv(hits + 1, draws - hits, 1 - alpha))
    return lower, upper


def epsilon_lower_bound(hits_first: int, hits_second: int, draws: int, alpha: float, delta: float = 0.0) -> float:
    """A lower bound on epsilon at confidence 1 - alpha, from an event's hits in `draws` reports of either world; at
    least 0, which always holds."""
    low = clopper_pearson(hits_first, draws, alpha / 2)[0] - delta
    high = clopper_pearson(hits_second, draws, alpha / 2)[1]
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def normal_quantile(alpha: float) -> float:
    """z with P(Z > z) = alpha."""
    from scipy.special import ndtri

    return float(-ndtri(alpha))


def error_per_root_draw(first: float, second: float, alpha: float, delta: float = 0.0) -> float:
    """How far below the truth the lower bound falls, at most, with probability `POWER`: this number / sqrt(draws).

    Both confidence bounds add their errors, the two counts vary independently (normal approximation).
    """
    up = math.sqrt(first * (1 - first)) / (first - delta)
    down = math.sqrt((1 - second) / second)
    return normal_quantile(alpha / 2) * (up + down) + normal_quantile(1 - POWER) * math.hypot(up, down)
