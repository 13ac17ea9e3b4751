"""Exact quantile bins of the similarity of all pairs, from one popcount pass and a byte a pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from server.refinement import _edgerefine_kernels as kernels
from server.refinement._bit_rows import degrees_of, words_of
from server.refinement._pairs import triangle_pairs

_CELLS = 16384
_SAMPLE = 65536
_SLOT_CELLS = 1024


@dataclass(frozen=True)
class PackedGraph:
    """A noisy graph in bits with what similarities need: arguments of the kernels, in their order."""

    rows: np.ndarray  # (n, words) uint64
    degrees: np.ndarray  # (n,) int64
    planes: np.ndarray  # Adamic-Adar weights as bit planes; (0, words) for Jaccard
    least: int  # the least Adamic-Adar weight

    @property
    def n(self) -> int:
        """Nodes."""
        return self.rows.shape[0]

    @property
    def pairs(self) -> int:
        """n (n - 1) / 2."""
        return self.n * (self.n - 1) // 2

    @property
    def ones(self) -> int:
        """Noisy ties."""
        return int(self.degrees.sum()) // 2

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """(rows, degrees, planes, least)."""
        return self.rows, self.degrees, self.planes, self.least


def packed(rows: np.ndarray, similarity: str) -> PackedGraph:
    """A graph ready for `similarity` `jaccard` or `adamic-adar`."""
    degrees = degrees_of(rows)
    if similarity == "jaccard":
        return PackedGraph(rows, degrees, np.zeros((0, rows.shape[1]), dtype=np.uint64), 0)
    return PackedGraph(rows, degrees, *kernels.weight_planes(degrees, rows.shape[1]))


def empty_rows(n: int) -> np.ndarray:
    """Bit rows of n nodes without ties."""
    return np.zeros((n, words_of(n)), dtype=np.uint64)


@dataclass(frozen=True)
class Bins:
    """Every pair's bin, `bin_of_code[codes]`; `counts` (bins, 2) pairs by noisy bit; `edges` (bins + 1,)."""

    codes: np.ndarray
    bin_of_code: np.ndarray
    counts: np.ndarray
    edges: np.ndarray


def sample_pairs(
    n: int, size: int, generator: np.random.Generator, distinct: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """(u, v), u < v: `size` uniform pairs, `distinct` or not; every pair once when there are no more."""
    total = n * (n - 1) // 2
    if size >= total:
        return triangle_pairs(np.arange(total), n)
    chosen = np.sort(generator.integers(0, total, size))
    while distinct and not (fresh := np.diff(chosen, prepend=-1) > 0).all():
        again = generator.integers(0, total, size - int(fresh.sum()))
        chosen = np.sort(np.concatenate([chosen[fresh], again]))
    return triangle_pairs(chosen, n)


def quantile_ranks(count: int, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ranks below and above each of the bins + 1 quantiles of `count` values, and the part of the way between them."""
    virtual = np.linspace(0, 100, bins + 1) / 100 * (count - 1)
    below = np.floor(virtual).astype(np.int64)
    part = virtual - below
    return below, np.where(part > 0, below + 1, below), part


def interpolate(lower: np.ndarray, upper: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Linear interpolation in the two-sided form that numpy's quantiles use, to the last bit."""
    return np.where(part >= 0.5, upper - (upper - lower) * (1 - part), lower + (upper - lower) * part)


def distinct_edges(edges: np.ndarray) -> np.ndarray:
    """Edges without those that leave a bin no wider than 1e-8 (the rule of scikit-learn's KBinsDiscretizer, on
    similarities halved as the authors' code has them)."""
    return edges[np.ediff1d(edges / 2, to_begin=np.inf) > 1e-8]


def quantile_bins(graph: PackedGraph, bins: int, generator: np.random.Generator, sample: int | None = None) -> Bins:
    """Quantile bins of all pairs; with `sample` the edges are quantiles of that many random pairs, as the code has it.

    A random sample also chooses the zones: it makes the exact edges quick to find and has no part in them.
    """
    u, v = sample_pairs(graph.n, sample or _SAMPLE, generator, distinct=sample is not None)
    scores = np.sort(kernels.score_pairs(*graph.arguments, u, v))
    low, scale, zone_of_cell = _zones(scores, bins)
    codes = np.empty(graph.pairs, dtype=np.uint8)
    counts, lows, highs = kernels.scan_zones(*graph.arguments, low, scale, zone_of_cell, codes)
    if sample is None:
        below, above, part = quantile_ranks(graph.pairs, bins)
        values = _values_at(graph, codes, counts.sum(axis=1), np.concatenate([below, above]), lows, highs)
        edges = interpolate(values[: bins + 1], values[bins + 1 :], part)
    else:
        below, above, part = quantile_ranks(len(scores), bins)
        edges = interpolate(scores[below], scores[above], part)
    edges = distinct_edges(edges)
    return _bins(graph, codes, counts, edges, lows, highs, 256 - bins)


def _zones(scores: np.ndarray, bins: int) -> tuple[float, float, np.ndarray]:
    """Cells between two sample quantiles and their zones: narrow ones round the expected edges, wide ones between."""
    inner = np.arange(1, bins) / bins
    edge = 0.25 / bins
    low, high = np.quantile(scores, [edge, 1 - edge], method="lower")
    zone_of_cell = np.zeros(_CELLS, dtype=np.uint8)
    if high <= low:  # most pairs share one value
        high = scores[-1]
    if bins == 1 or high <= low:
        return float(low), 1.0, zone_of_cell
    scale = _CELLS / (high - low)
    steps = (254 - bins) // (bins - 1)
    reach = 4 * np.sqrt(inner * (1 - inner) / len(scores))
    fractions = np.clip(inner[:, None] + reach[:, None] * np.linspace(-1, 1, steps), 0, 1)
    limits = np.quantile(scores, np.unique(fractions), method="lower")
    zone_of_cell[np.clip((limits - low) * scale, 1, _CELLS - 1).astype(np.int64)] = 1
    zone_of_cell[1] = 1  # the lowest value has a zone of its own: in sparse graphs it is the most frequent one
    return float(low), float(scale), np.cumsum(zone_of_cell).astype(np.uint8)


def _values_at(
    graph: PackedGraph, codes: np.ndarray, sizes: np.ndarray, ranks: np.ndarray, lows: np.ndarray, highs: np.ndarray
) -> np.ndarray:
    """The similarities of the given ranks (0 = least) among all pairs.

    A zone that holds a rank inside is cut into cells, and the cell that holds it again, until a cell has one value or
    the rank is at its end. `sizes`, `lows` and `highs` are those of the zones.
    """
    ends = np.cumsum(sizes)
    found: dict[int, float] = {}
    open_ranks: dict[int, tuple[int, float, float, int]] = {}

    def place(rank: int, zone: int, least: float, most: float, first: int, end: int) -> None:
        """Settle a rank among first..end-1, whose similarities run from `least` to `most`, or keep it open."""
        if rank == first or least == most:
            found[rank] = least
        elif rank == end - 1:
            found[rank] = most
        else:
            open_ranks[rank] = (zone, least, most, first)

    for rank in np.unique(ranks).tolist():
        zone = int(np.searchsorted(ends, rank, side="right"))
        place(rank, zone, float(lows[zone]), float(highs[zone]), int(ends[zone] - sizes[zone]), int(ends[zone]))
    while pending := [rank for rank in open_ranks if rank not in found]:
        slots = sorted({open_ranks[rank] for rank in pending})[:64]
        masks = np.zeros(256, dtype=np.uint64)
        for k, (zone, _, _, _) in enumerate(slots):
            masks[zone] |= np.uint64(1 << k)
        starts, stops = np.array([s[1] for s in slots]), np.array([s[2] for s in slots])
        scales = np.array([_SLOT_CELLS / (stop - start) if stop > start else 0.0 for start, stop in zip(starts, stops)])
        split, least, most = kernels.zone_histogram(*graph.arguments, codes, masks, starts, stops, scales, _SLOT_CELLS)
        for rank in pending:
            if open_ranks[rank] not in slots:
                continue
            k, (zone, _, _, base) = slots.index(open_ranks[rank]), open_ranks[rank]
            cell_ends = base + np.cumsum(split[k])
            cell = int(np.searchsorted(cell_ends, rank, side="right"))
            first = int(cell_ends[cell] - split[k, cell])
            place(rank, zone, float(least[k, cell]), float(most[k, cell]), first, int(cell_ends[cell]))
    return np.array([found[rank] for rank in ranks.tolist()])


def _bins(
    graph: PackedGraph,
    codes: np.ndarray,
    counts: np.ndarray,
    edges: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    first_code: int,
) -> Bins:
    """Zones to bins: a zone that no edge cuts belongs to one bin, the pairs of the others are placed one by one."""
    inner = edges[1:-1]
    bin_of_code = np.searchsorted(inner, lows, side="right")
    split = bin_of_code != np.searchsorted(inner, highs, side="right")
    split[counts.sum(axis=1) == 0] = False
    bin_of_code[first_code:] = np.minimum(np.arange(256 - first_code), len(inner))
    totals = np.zeros((len(inner) + 1, 2), dtype=np.int64)
    whole = ~split
    whole[first_code:] = False
    np.add.at(totals, bin_of_code[whole], counts[whole])
    if split.any():
        totals += kernels.split_zones(*graph.arguments, codes, split, inner, first_code)
    return Bins(codes, bin_of_code, totals, edges)
