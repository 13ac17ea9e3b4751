"""Numba kernels over all pairs of users by their public scores, one tile of pairs at a time.

A tile holds the pairs (i, j), i < j, with i in a run of columns. Scores are whole-number codes, so that what is counted
and what is ranked is the same number: cosine c = code / 65535, class agreement g = code / 4095, and the logarithm of
common neighbours l = code * LARGEST_LOG / 255.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, uint64

from server.refinement._bit_rows import bit

COSINES = 65536
AGREEMENTS = 4096
COMMONS = 256
COMMON_UNIT = 0.01
LARGEST_LOG = math.log1p(2.0 / COMMON_UNIT)


@njit(cache=True, nogil=True)
def cosine_tile(indptr, indices, data, wide, first, out):
    """Codes of the cosines of rows j = first.. with columns first..first + width - 1 into `out` (m - first, width)
    uint16.

    Rows are unit vectors in csr form (float32, ascending features); `wide` (features, width) holds the columns' rows,
    dense and transposed. Sums run over features in ascending order, so a cosine does not depend on who is i and who is
    j.
    """
    width = wide.shape[1]
    total = np.empty(width, np.float32)
    for j in range(first, len(indptr) - 1):
        total[:] = np.float32(0.0)
        for at in range(indptr[j], indptr[j + 1]):
            value, row = data[at], wide[indices[at]]
            for i in range(width):
                total[i] += value * row[i]
        line = out[j - first]
        for i in range(width):
            line[i] = np.uint16(min(max(total[i], np.float32(0.0)), np.float32(1.0)) * np.float32(65535.0) + 0.5)


@njit(inline="always")
def _agreements(classes, wide, j, total):
    """Codes (as float32 whole numbers) of the agreement of row j with each column of `wide` (classes, width)."""
    width = wide.shape[1]
    total[:] = np.float32(0.0)
    for c in range(wide.shape[0]):
        value = classes[j, c]
        for i in range(width):
            total[i] += value * wide[c, i]
    for i in range(width):
        total[i] = min(max(total[i], np.float32(0.0)), np.float32(1.0)) * np.float32(4095.0) + np.float32(0.5)


@njit(inline="always")
def _commons(indptr, indices, data, j, first, width, total):
    """sum_k P_jk P_ki for the columns i of the tile, from a symmetric csr P with ascending indices."""
    total[:] = np.float32(0.0)
    for at in range(indptr[j], indptr[j + 1]):
        k, value = indices[at], data[at]
        start, stop = indptr[k], indptr[k + 1]
        start += np.searchsorted(indices[start:stop], first)
        while start < stop and indices[start] < first + width:
            total[indices[start] - first] += value * data[start]
            start += 1


@njit(inline="always")
def _common_code(common):
    return np.int64(min(math.log1p(common / COMMON_UNIT) / LARGEST_LOG, 1.0) * 255.0 + 0.5)


@njit(cache=True, nogil=True)
def count_codes(tile, counts):
    """Add the tile's cosine codes to `counts` (65536,)."""
    height, width = tile.shape
    for j in range(height):
        for i in range(min(width, j)):
            counts[tile[j, i]] += 1


@njit(cache=True, nogil=True)
def count_cells(
    tile, first, classes, wide, cosine_bin, agreement_bin, common_bin, bins, indptr, indices, data, bits, silent, cells
):
    """Add the tile's pairs to `cells` (cells, 5): pairs, noisy ones, sums of the cosine, agreement and common codes.

    The cell of a pair is (cosine bin * bins[1] + agreement bin) * bins[2] + common bin. `indptr`, `indices`, `data` are
    the graph whose common neighbours count (empty: none do). Pairs of silent users are left out: their bit is unknown.
    """
    height, width = tile.shape
    agreement, common = np.empty(width, np.float32), np.zeros(width, np.float32)
    for row in range(1, height):
        j = first + row
        if silent[j]:
            continue
        _agreements(classes, wide, j, agreement)
        if len(indices):
            _commons(indptr, indices, data, j, first, width, common)
        for i in range(min(width, row)):
            if silent[first + i]:
                continue
            c, g = np.int64(tile[row, i]), np.int64(agreement[i])
            shared = _common_code(common[i]) if common[i] > 0.0 else 0
            cell = (np.int64(cosine_bin[c]) * bins[1] + agreement_bin[g]) * bins[2] + common_bin[shared]
            cells[cell, 0] += 1
            cells[cell, 1] += np.int64(bit(bits, first + i, j))
            cells[cell, 2] += c
            cells[cell, 3] += g
            cells[cell, 4] += shared


@njit(cache=True, nogil=True)
def collect(
    tile, first, classes, wide, by_cosine, by_agreement, products, extra, by_cosine_2, by_agreement_2, products_2,
    log_agreement, indptr, indices, data, bits, silent, shift, bound, most
):  # fmt: skip
    """Pairs with max(prior log-odds, posterior log-odds) above `bound`: i, j (int32), prior and posterior log-odds
    (float64).

    Prior log-odds: by_cosine[c] + by_agreement[g] + products c g. Posterior: the same with the second set of tables,
    plus l (extra[0] + extra[1] l + extra[2] c + extra[3] log-agreement), plus or minus `shift` by the noisy bit
    (nothing where an end is silent). Returns empty arrays and the number found when there are more than `most`.
    """
    height, width = tile.shape
    agreement, common = np.empty(width, np.float32), np.zeros(width, np.float32)
    left, right = np.empty(most, np.int32), np.empty(most, np.int32)
    prior, posterior = np.empty(most), np.empty(most)
    size = 0
    for row in range(1, height):
        j = first + row
        _agreements(classes, wide, j, agreement)
        if len(indices):
            _commons(indptr, indices, data, j, first, width, common)
        for i in range(min(width, row)):
            c, g = np.int64(tile[row, i]), np.int64(agreement[i])
            cosine, agree = c / 65535.0, g / 4095.0
            before = by_cosine[c] + by_agreement[g] + products * cosine * agree
            after = by_cosine_2[c] + by_agreement_2[g] + products_2 * cosine * agree
            if common[i] > 0.0:
                shared = _common_code(common[i]) * (LARGEST_LOG / 255.0)
                after += shared * (extra[0] + extra[1] * shared + extra[2] * cosine + extra[3] * log_agreement[g])
            if not (silent[j] or silent[first + i]):
                after += shift if bit(bits, first + i, j) == uint64(1) else -shift
            if before > bound or after > bound:
                if size < most:
                    left[size], right[size], prior[size], posterior[size] = first + i, j, before, after
                size += 1
    if size > most:
        return left[:0], right[:0], prior[:0], posterior[:0], size
    return left[:size].copy(), right[:size].copy(), prior[:size].copy(), posterior[:size].copy(), size


@njit(cache=True, nogil=True)
def nearest(indptr, indices, data, wide, first, best, who):
    """Offer columns first..first + width - 1 as neighbours to every row: keeps each row's largest cosines, descending.

    `best` (m, k) float32 and `who` (m, k) int32 hold what was found so far (-1 and 0 where nothing was). Columns come
    in ascending order; of equal cosines the earlier column stays. Only positive cosines count.
    """
    width, k = wide.shape[1], best.shape[1]
    total = np.empty(width, np.float32)
    for j in range(len(indptr) - 1):
        total[:] = np.float32(0.0)
        for at in range(indptr[j], indptr[j + 1]):
            value, row = data[at], wide[indices[at]]
            for i in range(width):
                total[i] += value * row[i]
        for i in range(width):
            if first + i == j or total[i] <= best[j, k - 1]:
                continue
            at = k - 1
            while at > 0 and best[j, at - 1] < total[i]:
                best[j, at], who[j, at] = best[j, at - 1], who[j, at - 1]
                at -= 1
            best[j, at], who[j, at] = total[i], first + i
