"""EdgeRefine the slow and obvious way: sets of neighbours, a loop over pairs, a stable sort. Kernels are held to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from server.refinement._calibration import histogram
from server.refinement._edgerefine_bins import distinct_edges

Pair = tuple[int, int]
FIXED_POINT = 1 << 20


def jaccard_plain(neighbours: list[set[int]]) -> np.ndarray:
    """Jaccard similarity of all pairs i < j, in row-major order."""
    out = []
    for i in range(len(neighbours)):
        for j in range(i + 1, len(neighbours)):
            either = len(neighbours[i] | neighbours[j])
            out.append(len(neighbours[i] & neighbours[j]) / either if either else 0.0)
    return np.array(out)


def adamic_adar_plain(neighbours: list[set[int]]) -> np.ndarray:
    """Adamic-Adar similarity of all pairs: sum over common neighbours of 1 / log degree, in whole numbers of 2^-20."""
    weight = [round(FIXED_POINT / float(np.log(len(own)))) if len(own) > 1 else 0 for own in neighbours]
    out = []
    for i in range(len(neighbours)):
        for j in range(i + 1, len(neighbours)):
            out.append(sum(weight[k] for k in neighbours[i] & neighbours[j]) / FIXED_POINT)
    return np.array(out)


def quantile_bins_plain(scores: np.ndarray, bins: int, sample: np.ndarray | None = None) -> np.ndarray:
    """Bin of each score; the edges are quantiles of all scores or of a sample of them, and belong to the upper bin."""
    edges = distinct_edges(np.percentile(scores if sample is None else sample, np.linspace(0, 100, bins + 1)))
    return np.searchsorted(edges[1:-1], scores, side="right")


def probabilities_plain(bins: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Of each pair: the share of ones in its bin."""
    counts = np.array([[((bins == b) & (bits == bit)).sum() for bit in (0, 1)] for b in range(bins.max() + 1)])
    return histogram(np.zeros(len(counts)), counts)[bins]


def select_plain(
    pairs: list[Pair],
    bits: np.ndarray,
    probability: np.ndarray,
    need: tuple[int, ...],
    key: Callable[[int], tuple[float, ...]] = lambda position: (),
) -> set[Pair]:
    """The need[0] unreported and need[1] reported pairs of highest probability, or with one need the best of all.

    Python's sort is stable: pairs that the probability and `key` (greatest first) do not part stay in row-major order.
    """
    chosen: set[Pair] = set()
    for kind, wanted in enumerate(need):
        places = [at for at in range(len(pairs)) if len(need) == 1 or bits[at] == kind]
        places.sort(key=lambda at: (-probability[at], *(-part for part in key(at))))
        chosen |= {pairs[at] for at in places[:wanted]}
    return chosen


def edgerefine_plain(ties: np.ndarray, edges: int, rate: float, rho: float, rounded: bool = False) -> set[Pair]:
    """The authors' rule on a noisy (n, n) boolean matrix: Jaccard, ten quantile bins, quotas, row-major ties."""
    n = len(ties)
    neighbours = [set(np.flatnonzero(row).tolist()) for row in ties]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    bits = ties[np.triu_indices(n, 1)].astype(int)
    wanted = int(rate * edges)
    real = round(rho * wanted) if rounded else int(rho * wanted)
    probability = probabilities_plain(quantile_bins_plain(jaccard_plain(neighbours), 10), bits)
    return select_plain(pairs, bits, probability, (wanted - real, real))
