"""LAPGRAPH: Laplace noise on every cell of the adjacency matrix, of which the largest are published."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.privacy.ties import TieProtocol
from agents.privacy.ties.trusted_curator import TrustedCurator
from server.evidence import Evidence, Structure
from server.refinement._pairs import among, curator_noise, random_cells, reported_pairs, triangle_cells, triangle_pairs
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams


class LapGraph(Refinement, kind="lapgraph"):
    """The T pairs with the largest noisy cells, T a noisy number of ties (LAPGRAPH). A trusted curator holds raw lists.

    A tie is what both ends name (or either, with `ends: 1`). `count_share` of epsilon pays for T = E +
    Lap(1/epsilon_1), cut to a whole number; the rest for Lap(1/epsilon_2) on every pair. The release covers all users;
    ties of pruned users are dropped afterwards, so that pruning costs nothing.
    """

    source: ClassVar[str] = "LinkTeller: Wu et al., S&P 2022, LAPGRAPH"
    accepts: ClassVar[tuple[str, ...]] = ("raw-list",)
    curator: ClassVar[str] = "trusted"

    count_share: float = Field(0.01, gt=0, lt=1)
    ends: int = Field(2, ge=1, le=2)

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        return TrustedCurator(epsilon=epsilon)

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        n, epsilon = evidence.n, evidence.protocol.ties.epsilon
        u, v = reported_pairs(evidence.lists, self.ends)
        rng = curator_noise("refinement/lapgraph", u, v, evidence, streams)
        total = n * (n - 1) // 2
        wanted = int(len(u) + rng.laplace(0.0, 1.0 / (self.count_share * epsilon)))
        cells = largest_cells(
            triangle_cells(u, v, n), total, min(max(wanted, 0), total), (1.0 - self.count_share) * epsilon, rng
        )
        published_u, published_v = among(kept, *triangle_pairs(cells, n))
        return Structure(published_u, published_v, summary={"published_ties": float(len(cells))})


def largest_cells(ones: np.ndarray, total: int, wanted: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """The `wanted` largest cells of a 0/1 vector of length `total` under Lap(1/epsilon), ascending, in O(ones +
    wanted).

    `ones` (sorted) are the positions that hold 1. The zero cells are exchangeable, so it is enough to know their
    largest noises, which are order statistics, and to put them on uniformly chosen cells: exactly the law of adding
    noise to every cell and sorting.
    """
    noisy_ones = 1.0 + rng.laplace(0.0, 1.0 / epsilon, len(ones))
    zeros = total - len(ones)
    noisy_zeros = largest_laplace(zeros, min(wanted, zeros), 1.0 / epsilon, rng)
    values = np.concatenate([noisy_ones, noisy_zeros])
    picked = np.argsort(-values, kind="stable")[:wanted]
    from_ones = ones[picked[picked < len(ones)]]
    from_zeros = random_cells(total, ones, int((picked >= len(ones)).sum()), rng)
    return np.sort(np.concatenate([from_ones, from_zeros]))


def largest_laplace(count: int, first: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """The `first` largest of `count` independent Laplace draws of mean 0, in descending order.

    Of `count` uniforms the largest is V^(1/count), and each next one the one before times V^(1/(how many are left)), V
    uniform. Carried as logarithms, from which the upper tail is computed without cancellation.
    """
    left = count - np.arange(first)
    log_u = np.cumsum(np.log1p(-rng.random(first)) / left)
    with np.errstate(divide="ignore"):
        upper = -np.log(-2.0 * np.expm1(log_u))
    return scale * np.where(log_u > -math.log(2.0), upper, math.log(2.0) + log_u)
