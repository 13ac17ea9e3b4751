"""Compile every kernel of EdgeRefine for the types that it is called with."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import sparse

from server.refinement import _bit_rows as bit_rows
from server.refinement import _edgerefine_bins as bins
from server.refinement import _edgerefine_kernels as kernels
from server.refinement import _edgerefine_select as selection


@cache
def warm_up() -> None:
    """Run all kernels once on a graph of twelve users."""
    from server._attestation import warm_up as attestation
    from server._canonical import fingerprints

    attestation()
    n = 12
    lists = sparse.csr_array(np.triu(np.ones((n, n), dtype=np.int8), 2))
    place = np.arange(n)
    rows = bins.empty_rows(n)
    indptr, indices = lists.indptr.astype(np.int64), lists.indices.astype(np.int32)
    bit_rows.pack_either(indptr, indices, place, rows)
    fingerprints(indptr, indices, lists.data, np.zeros(n, dtype=np.uint64), 1)
    bit_rows.pack_pairs(np.zeros(1, dtype=np.int32), np.ones(1, dtype=np.int32), place, rows)
    generator = np.random.Generator(np.random.Philox(0))
    key, words = np.zeros(2, dtype=np.uint64), np.zeros(n, dtype=np.uint64)
    for similarity in ("jaccard", "adamic-adar"):
        graph = bins.packed(rows, similarity)
        found = bins.quantile_bins(graph, 3, generator)
        low, high = kernels.extremes(*graph.arguments)
        kernels.cell_histogram(*graph.arguments, low, 8 / (high - low), 8)
        kernels.cells_of_all(*graph.arguments, low, 8 / (high - low), 8)
        take, whole, some = selection.plan(np.zeros(len(found.counts)), found.counts, (1, 1))
        take = take[:, found.bin_of_code]
        for codes in (found.codes, found.codes[:0]):
            selection.select(*graph.arguments, codes, low, 1.0, 256, True, take, whole, some, 0, words, key)
    one, mask = np.zeros(1), np.zeros(256, dtype=np.uint64)
    kernels.zone_histogram(*graph.arguments, found.codes, mask, one, one, one, 4)
    kernels.split_zones(*graph.arguments, found.codes, np.zeros(256, dtype=bool), one, 250)
    kernels.score_pairs(*graph.arguments, np.zeros(1, dtype=np.int32), np.ones(1, dtype=np.int32))
