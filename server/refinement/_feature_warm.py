"""Compiles the kernels of feature-prior refinement on a toy world."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from server.refinement._public import PublicView, knn_graph, tf_idf


def warm_up() -> None:
    """Run every kernel once, for the types that a run uses, with and without common neighbours."""
    from server.refinement._bit_rows import pack_either, words_of
    from server.refinement._pair_ranking import Ranking, Score
    from server.refinement._prior_fit import Bits, Commons, cosine_bins, count_pairs

    size = 6
    features = sparse.csr_array(np.eye(size, 3, dtype=np.float32) + np.eye(size, 3, k=-2, dtype=np.float32))
    nobody, labels = np.zeros(size, dtype=bool), np.arange(size) % 2
    view = PublicView(np.arange(size), tf_idf(features), labels, ~nobody, nobody, np.arange(size) // 3, 2)
    lists = sparse.csr_array(np.eye(size, k=1, dtype=np.int8))
    rows = np.zeros((size, words_of(size)), dtype=np.uint64)
    pack_either(lists.indptr, lists.indices, np.arange(size), rows)
    bits = Bits(rows, nobody, 1.0)
    graph = sparse.csr_array(np.eye(size, k=1, dtype=np.float32) + np.eye(size, k=-1, dtype=np.float32))
    for commons in (None, Commons(graph.indptr.astype(np.int32), graph.indices.astype(np.int32), graph.data)):
        count_pairs(view, view.first_round, cosine_bins(view), commons, bits)
        score = Score.of_similarity(5.0)
        Ranking(view, view.first_round, score, score, commons, bits).top(3, "sum", 0.0)
    knn_graph(view, 2)
