"""Reading a graph that another library saved: PyTorch Geometric's Data, and GraphML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sim.kernel.graphs._arrays import Parts
from sim.kernel.graphs.base import GraphError


def read_data(path: Path) -> Parts:
    """Parts of a `torch_geometric.data.Data` saved with `torch.save`; x may be absent. No other pickled code is run."""
    import torch
    import torch_geometric.data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    try:
        with torch.serialization.safe_globals([DataEdgeAttr, DataTensorAttr, GlobalStorage]):
            held: Any = torch.load(path, weights_only=True)
    except Exception as error:  # pickle and zip readers raise all sorts
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = next((line.strip() for line in lines if "Unpickler" in line), lines[0])
        if "file an issue" in reason:  # torch's own advice, which does not fit a user's file
            reason = "nothing in it that torch can load as data"
        raise GraphError(f"cannot read {path} as a saved PyG Data: {reason}") from error
    if isinstance(held, tuple) and held and isinstance(held[0], (dict, torch_geometric.data.Data)):
        held = held[0]  # what a dataset's processed file holds: (data, slices, ...)
    if isinstance(held, dict):
        held = torch_geometric.data.Data.from_dict(held)
    if not isinstance(held, torch_geometric.data.Data):
        raise GraphError(f"{path} holds a {type(held).__name__}; expected a torch_geometric.data.Data")
    if held.edge_index is None or held.y is None:
        raise GraphError(f"{path}: the Data holds {', '.join(held.keys())}; expected edge_index, y and usually x")
    features = None if held.x is None else (held.x.to_dense() if held.x.layout != torch.strided else held.x).numpy()
    return Parts(features, held.edge_index.numpy(), held.y.reshape(-1).numpy())


def read_graphml(path: Path, label: str) -> Parts:
    """Parts of a GraphML file: the node attribute `label` is the class (absent: unknown), every attribute that is a
    number on all nodes is a feature, sorted by name."""
    import networkx

    try:
        graph = networkx.read_graphml(path)
    except Exception as error:  # XML, encoding and GraphML errors have no common class
        raise GraphError(f"cannot read {path} as GraphML: {error}") from error
    if graph.number_of_nodes() == 0:
        raise GraphError(f"{path} has no nodes")
    rows = [attributes for _, attributes in graph.nodes(data=True)]
    names = sorted({name for row in rows for name in row})
    if label not in names:
        raise GraphError(f"{path}: no node has an attribute {label!r}; found {', '.join(names) or 'none'}")
    classes = [row.get(label) for row in rows]
    if all(value is None or (isinstance(value, int) and not isinstance(value, bool)) for value in classes):
        labels = np.array([-1 if value is None else value for value in classes], dtype=np.int64)
    else:
        labels = np.array(["" if value is None else str(value) for value in classes])
    numeric = [n for n in names if n != label and all(isinstance(row.get(n), (int, float)) for row in rows)]
    features = np.array([[float(row[n]) for n in numeric] for row in rows], dtype=np.float64) if numeric else None
    ties: Any = sparse.csr_array(networkx.to_scipy_sparse_array(graph, weight=None))
    return Parts(features, ties, labels)
