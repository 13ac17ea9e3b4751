"""Reading a graph from CSV tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sim.kernel.graphs._arrays import Parts
from sim.kernel.graphs.base import GraphError


def read_tables(edges: Path, labels: Path, features: Path | None) -> Parts:
    """Parts from an edge list, a label table and an optional feature table; the first line of each names its columns.

    `labels`: node id, label (empty for unknown); its rows are the nodes, in this order. `edges`: the two ids of a tie;
    further columns are ignored. `features`: node id, then numbers. Ids are any text. Raises GraphError naming the
    file, what was found and what is expected.
    """
    nodes = _table(labels, 2, "node id and label")
    ids = nodes.iloc[:, 0]
    if ids.duplicated().any():
        raise GraphError(f"{labels}: node {ids[ids.duplicated()].iloc[0]!r} occurs twice; expected one row a node")
    pairs = _table(edges, 2, "the two node ids of a tie")
    known = set(ids)
    if set(pairs.columns[:2]) <= known:
        raise GraphError(
            f"{edges}: the first line {','.join(pairs.columns)} is a tie; expected a line that names the columns, "
            "such as source,target"
        )
    ends = np.stack([_positions(edges, pairs.iloc[:, side], ids, labels) for side in (0, 1)])
    return Parts(None if features is None else _numbers(features, ids, labels), ends, _classes(nodes.iloc[:, 1]))


def _classes(column: Any) -> np.ndarray:
    """Whole numbers when all are, so that class 10 does not sort before class 2; else text. Unknown is -1 or empty."""
    texts = column.str.strip()
    if texts.str.fullmatch(r"-?\d+|").all():
        return texts.replace("", "-1").astype(np.int64).to_numpy()
    return texts.to_numpy(dtype=str)


def _table(path: Path, columns: int, what: str) -> Any:
    import pandas

    separator = "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    try:
        table = pandas.read_csv(path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # pandas' parser and Unicode errors are ValueErrors
        raise GraphError(f"cannot read {path}: {str(error).strip()}") from error
    if table.shape[1] < columns:
        raise GraphError(f"{path}: found the columns {', '.join(table.columns)}; expected {what}")
    return table


def _positions(path: Path, column: Any, ids: Any, labels: Path) -> np.ndarray:
    """Row numbers, in the label table, of a column of ids."""
    import pandas

    found = pandas.Index(ids).get_indexer(column)
    if (found < 0).any():
        absent = column[found < 0]
        raise GraphError(
            f"{path}: {absent.nunique()} node ids are not in {labels.name}; the first is {absent.iloc[0]!r}"
        )
    return found


def _numbers(path: Path, ids: Any, labels: Path) -> np.ndarray:
    """The feature matrix in the label table's order."""
    import pandas

    table = _table(path, 2, "node id and at least one number")
    order = _positions(path, table.iloc[:, 0], ids, labels)
    if len(order) != len(ids) or len(set(order)) != len(order):
        raise GraphError(f"{path}: {len(order)} rows for {len(ids)} nodes of {labels.name}; expected one row a node")
    values = table.iloc[:, 1:].apply(pandas.to_numeric, errors="coerce")
    wrong = np.argwhere(~np.isfinite(values.to_numpy(dtype=np.float64)))
    if len(wrong):
        row, column = wrong[0]
        found = table.iloc[row, column + 1]
        raise GraphError(
            f"{path}: line {row + 2}, column {table.columns[column + 1]!r} holds {found!r}; expected a finite number"
        )
    matrix = np.empty(values.shape, dtype=np.float32)
    matrix[order] = values.to_numpy()
    return matrix
