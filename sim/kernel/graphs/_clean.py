"""One way to clean a graph, whatever its source."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sim.kernel.graphs.base import Graph, GraphError


def clean(name: str, features: Any, ties: Any, labels: Any) -> Graph:
    """A `Graph` from raw parts.

    `features`: dense or sparse (n, d), or None for none. `ties`: a sparse (n, n) matrix, or an integer array (2, m) of
    end points, in any direction and any number of times. `labels`: (n,), integers (negative means unknown) or names.

    Ties become undirected, without loops or duplicates. A feature column that leaves [0, 1] is scaled into it by its
    minimum and maximum; others keep their values. Columns that hold one value only are dropped. Class ids become
    0..c-1 in sorted order. Raises GraphError when sizes disagree, an end point does not exist, or a feature is NaN or
    infinite.
    """
    label_ids = _compact(name, np.asarray(labels))
    n = label_ids.size
    if n == 0:
        raise GraphError(f"graph {name!r} has no nodes")
    return Graph(name, _scale(name, features, n), _undirected(name, ties, n), label_ids)


def _compact(name: str, labels: np.ndarray) -> np.ndarray:
    if labels.ndim != 1:
        raise GraphError(f"graph {name!r}: labels have shape {labels.shape}; expected one label a node, shape (n,)")
    numeric = np.issubdtype(labels.dtype, np.number) or labels.dtype == bool
    if numeric and not np.array_equal(labels, labels.astype(np.int64)):
        raise GraphError(f"graph {name!r}: labels hold fractions or NaN; expected whole numbers, -1 for unknown")
    known = labels.astype(np.int64) >= 0 if numeric else labels.astype(str) != ""
    ids = np.full(labels.size, -1, dtype=np.int64)
    ids[known] = np.unique(labels[known], return_inverse=True)[1].reshape(-1)
    return ids


def _undirected(name: str, ties: Any, n: int) -> sparse.csr_array:
    if sparse.issparse(ties):
        matrix: Any = ties
        held = matrix.tocoo()
        if held.shape != (n, n):
            raise GraphError(f"graph {name!r}: {n} labels but an adjacency matrix of shape {held.shape}")
        present = held.data != 0
        u, v = held.row[present].astype(np.int64), held.col[present].astype(np.int64)
    else:
        pairs = np.asarray(ties)
        if pairs.ndim != 2 or pairs.shape[0] != 2:
            raise GraphError(f"graph {name!r}: edges have shape {pairs.shape}; expected (2, number of edges)")
        u, v = pairs.astype(np.int64)
        wrong = (u < 0) | (u >= n) | (v < 0) | (v >= n)
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise GraphError(
                f"graph {name!r}: {int(wrong.sum())} edges end outside nodes 0..{n - 1}; "
                f"the first is ({u[first]}, {v[first]})"
            )
    apart = u != v
    u, v = u[apart], v[apart]
    codes = np.unique(np.concatenate([u * n + v, v * n + u]))  # row-major order: sorted rows, sorted indices
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes // n, minlength=n), out=indptr[1:])
    indices = codes % n
    index_type = np.int32 if max(n, codes.size) < 2**31 else np.int64
    parts: Any = (np.ones(codes.size, dtype=np.int8), indices.astype(index_type), indptr.astype(index_type))
    return sparse.csr_array(parts, shape=(n, n))


def _no_features(n: int) -> sparse.csr_array:
    empty: Any = np.zeros((n, 0), dtype=np.float32)
    return sparse.csr_array(empty)


def _scale(name: str, features: Any, n: int) -> sparse.csr_array:
    if features is None:
        return _no_features(n)
    if not sparse.issparse(features):
        features = np.asarray(features)
    if len(features.shape) != 2 or features.shape[0] != n:
        raise GraphError(f"graph {name!r}: {n} labels but features of shape {features.shape}; expected ({n}, d)")
    if features.shape[1] == 0:
        return _no_features(n)
    columns: Any = sparse.csc_array(features, dtype=np.float64)
    columns.sum_duplicates()
    if not np.isfinite(columns.data).all():
        raise GraphError(f"graph {name!r}: features hold NaN or infinity; remove or fill them first")
    low = columns.min(axis=0).toarray().reshape(-1)
    high = columns.max(axis=0).toarray().reshape(-1)
    varies = high > low
    columns, low, high = sparse.csc_array(columns[:, varies]), low[varies], high[varies]
    outside = (low < 0) | (high > 1)
    if outside.any():
        shift, span = np.where(outside, low, 0.0), np.where(outside, high - low, 1.0)
        columns = _affine(columns, shift, span)
    rows = sparse.csr_array(columns, dtype=np.float32)
    np.clip(rows.data, 0, 1, out=rows.data)
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


def _affine(columns: Any, shift: np.ndarray, span: np.ndarray) -> Any:
    """(column - shift) / span; only the columns whose zeros move become dense."""
    moves = np.flatnonzero(shift)
    still = np.flatnonzero(shift == 0)
    scaled = columns[:, still] @ sparse.diags_array(1 / span[still])
    dense = (columns[:, moves].toarray() - shift[moves]) / span[moves]
    joined: Any = sparse.hstack([scaled, sparse.csc_array(dense)], format="csc")
    order = np.empty(columns.shape[1], dtype=np.int64)
    order[np.concatenate([still, moves])] = np.arange(columns.shape[1])
    return sparse.csc_array(joined[:, order])
