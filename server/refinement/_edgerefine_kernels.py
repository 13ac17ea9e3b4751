"""Numba kernels of EdgeRefine: similarity of all pairs, and exact quantiles by histogram.

One blocked popcount pass writes a byte for each pair, its *zone*: an interval of similarity. Any intervals will do:
where a quantile falls inside one, only its pairs are scored again. Memory: n^2/8 bytes of bits and n^2/2 of zones.
Arguments that kernels share: `rows` (n, words) uint64 bit rows, `degrees` (n,) int64, and for Adamic-Adar its weights
as bit `planes` and the `least` weight (empty planes mean Jaccard).
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from server.refinement._bit_rows import bit, popcount, row_start

_TILE = 128
FIXED_POINT = 1 << 20
"""Adamic-Adar weights are whole numbers of 2^-20, so that a sum has one value whatever the order."""


def weight_planes(degrees: np.ndarray, words: int) -> tuple[np.ndarray, int]:
    """Adamic-Adar weights round(2^20 / log degree) as bit planes: (1 + bits, words) uint64 and the least weight.

    Plane 0 marks nodes of degree 2 or more (others are no pair's common neighbour); plane 1 + b marks bit b of a weight
    minus the least one. Degrees of a noisy graph are close to each other, so few planes are needed.
    """
    counted = degrees >= 2
    weights = np.zeros(len(degrees), dtype=np.int64)
    weights[counted] = np.rint(FIXED_POINT / np.log(degrees[counted]))
    least = int(weights[counted].min()) if counted.any() else 0
    rest = np.where(counted, weights - least, 0)
    bits = int(rest.max(initial=0)).bit_length()
    marks = np.zeros((1 + bits, words * 64), dtype=bool)
    marks[0, : len(degrees)] = counted
    for b in range(bits):
        marks[1 + b, : len(degrees)] = (rest >> b) & 1
    return np.packbits(marks, axis=1, bitorder="little").view("<u8").astype(np.uint64), least


@njit(cache=True, nogil=True)
def score_row(rows, degrees, planes, least, i, first, last, out):
    """Similarities of i and first..last-1 into the head of `out`."""
    if planes.shape[0] == 0:
        for j in range(first, last):
            common = uint64(0)
            for w in range(rows.shape[1]):
                common += popcount(rows[i, w] & rows[j, w])
            out[j - first] = np.int64(common)
        for j in range(first, last):
            shared = out[j - first]
            union = degrees[i] + degrees[j] - shared
            out[j - first] = shared / union if union > 0 else 0.0
        return
    for j in range(first, last):
        common = uint64(0)
        for w in range(rows.shape[1]):
            common += popcount(rows[i, w] & rows[j, w] & planes[0, w])
        total = np.int64(common) * least
        if common == 0:
            out[j - first] = 0.0
            continue
        for plane in range(1, planes.shape[0]):
            common = uint64(0)
            for w in range(rows.shape[1]):
                common += popcount(rows[i, w] & rows[j, w] & planes[plane, w])
            total += np.int64(common) << np.int64(plane - 1)
        out[j - first] = total / FIXED_POINT


@njit(cache=True, nogil=True)
def score_pairs(rows, degrees, planes, least, u, v):
    """Similarities of listed pairs."""
    out = np.empty(len(u))
    for at in range(len(u)):
        score_row(rows, degrees, planes, least, u[at], v[at], v[at] + 1, out[at : at + 1])
    return out


@njit(cache=True, nogil=True)
def scan_zones(rows, degrees, planes, least, low, scale, zone_of_cell, codes):
    """Zone of every pair into `codes`; returns counts (256, 2) by zone and bit, and the zones' least and greatest.

    A pair's cell is floor((similarity - low) * scale), clipped to the table `zone_of_cell`, which maps it to its zone.
    """
    n = rows.shape[0]
    cells = len(zone_of_cell)
    counts = np.zeros((256, 2), np.int64)
    scores = np.empty(_TILE)
    lows, highs = np.full(256, np.inf), np.full(256, -np.inf)
    for first in range(0, n, _TILE):
        for second in range(first, n, _TILE):
            for i in range(first, min(first + _TILE, n)):
                start, begin, end = row_start(i, n), max(i + 1, second), min(second + _TILE, n)
                score_row(rows, degrees, planes, least, i, begin, end, scores)
                for j in range(begin, end):
                    s = scores[j - begin]
                    zone = zone_of_cell[np.int64(min(max((s - low) * scale, 0.0), cells - 1.0))]
                    codes[start + j] = zone
                    counts[zone, bit(rows, i, j)] += 1
                    if s < lows[zone]:
                        lows[zone] = s
                    if s > highs[zone]:
                        highs[zone] = s
    return counts, lows, highs


@njit(cache=True, nogil=True)
def zone_histogram(rows, degrees, planes, least, codes, slots_of_code, lows, highs, scales, cells):
    """Histograms of chosen pairs: (slots, cells) counts, and the least and greatest similarity of each cell.

    Slot k counts similarities in [lows[k], highs[k]] among the pairs whose code has bit k in `slots_of_code`.
    """
    n = rows.shape[0]
    slots = len(lows)
    count = np.zeros((slots, cells), np.int64)
    smallest = np.full((slots, cells), np.inf)
    greatest = np.full((slots, cells), -np.inf)
    one = np.empty(1)
    for i in range(n):
        start = row_start(i, n)
        for j in range(i + 1, n):
            mask = slots_of_code[codes[start + j]]
            if mask == 0:
                continue
            score_row(rows, degrees, planes, least, i, j, j + 1, one)
            s = one[0]
            for k in range(slots):
                if (mask >> uint64(k)) & uint64(1) and lows[k] <= s <= highs[k]:
                    cell = np.int64(min((s - lows[k]) * scales[k], cells - 1.0))
                    count[k, cell] += 1
                    smallest[k, cell] = min(s, smallest[k, cell])
                    greatest[k, cell] = max(s, greatest[k, cell])
    return count, smallest, greatest


@njit(cache=True, nogil=True)
def split_zones(rows, degrees, planes, least, codes, split, edges, first_code):
    """Give each pair of a zone with `split` set the code first_code + (number of edges at or below its similarity).

    Returns (len(edges) + 1, 2) counts of those pairs by noisy bit.
    """
    n = rows.shape[0]
    counts = np.zeros((len(edges) + 1, 2), np.int64)
    one = np.empty(1)
    for i in range(n):
        start = row_start(i, n)
        for j in range(i + 1, n):
            if not split[codes[start + j]]:
                continue
            score_row(rows, degrees, planes, least, i, j, j + 1, one)
            found = 0
            while found < len(edges) and edges[found] <= one[0]:
                found += 1
            codes[start + j] = first_code + found
            counts[found, bit(rows, i, j)] += 1
    return counts


@njit(cache=True, nogil=True)
def extremes(rows, degrees, planes, least):
    """The least and the greatest similarity of all pairs."""
    n = rows.shape[0]
    scores = np.empty(_TILE)
    smallest, greatest = np.inf, -np.inf
    for first in range(0, n, _TILE):
        for second in range(first, n, _TILE):
            for i in range(first, min(first + _TILE, n)):
                begin, end = max(i + 1, second), min(second + _TILE, n)
                score_row(rows, degrees, planes, least, i, begin, end, scores)
                for at in range(end - begin):
                    smallest, greatest = min(scores[at], smallest), max(scores[at], greatest)
    return smallest, greatest


@njit(cache=True, nogil=True)
def cell_histogram(rows, degrees, planes, least, low, scale, cells):
    """(cells, 2) counts of all pairs by equal-width cell of similarity, floor((s - low) * scale), and noisy bit."""
    n = rows.shape[0]
    counts = np.zeros((cells, 2), np.int64)
    scores = np.empty(_TILE)
    for first in range(0, n, _TILE):
        for second in range(first, n, _TILE):
            for i in range(first, min(first + _TILE, n)):
                begin, end = max(i + 1, second), min(second + _TILE, n)
                score_row(rows, degrees, planes, least, i, begin, end, scores)
                for j in range(begin, end):
                    cell = np.int64(min((scores[j - begin] - low) * scale, cells - 1.0))
                    counts[cell, bit(rows, i, j)] += 1
    return counts


@njit(cache=True, nogil=True)
def cells_of_all(rows, degrees, planes, least, low, scale, cells):
    """(n(n-1)/2,) uint16: the cell of every pair, as `cell_histogram` counts them."""
    n = rows.shape[0]
    out = np.empty(n * (n - 1) // 2, np.uint16)
    scores = np.empty(n)
    for i in range(n):
        start = row_start(i, n)
        score_row(rows, degrees, planes, least, i, i + 1, n, scores)
        for j in range(i + 1, n):
            out[start + j] = np.int64(min((scores[j - i - 1] - low) * scale, cells - 1.0))
    return out
