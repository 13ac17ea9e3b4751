"""Reading graphs from npz files: the layouts that are in use."""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple
from zipfile import BadZipFile, is_zipfile

import numpy as np
from scipy import sparse

from sim.kernel.graphs.base import GraphError


class Parts(NamedTuple):
    """What `clean` takes."""

    features: Any
    ties: Any
    labels: Any


LAYOUTS = (
    "edge_index (2, m) and y (n,), with x (n, d), or x_data, x_indices, x_indptr and x_shape, or x_bits and x_shape, "
    "or no features; edges (m, 2), features and target; adj_data, adj_indices, adj_indptr, adj_shape, the same for "
    "attr, and labels"
)


def read_npz(path: Path, trusted: bool = False) -> Parts:
    """Features, ties and labels of an npz file in one of `LAYOUTS`; unknown keys are ignored.

    Only a `trusted` file may hold pickled objects. Raises GraphError for another layout or an unreadable file.
    """
    if path.is_file() and not is_zipfile(path):
        raise GraphError(f"cannot read {path} as an npz graph: it is no npz file")
    try:
        with np.load(path, allow_pickle=trusted) as held:
            return _parts({key: held[key] for key in held.files}, path)
    except (OSError, ValueError, EOFError, KeyError, UnpicklingError, BadZipFile) as error:
        raise GraphError(f"cannot read {path} as an npz graph: {error}") from error


def _parts(held: dict[str, Any], path: Path) -> Parts:
    if {"edge_index", "y"} <= held.keys():
        return Parts(_features(held), held["edge_index"], held["y"])
    if {"edges", "target"} <= held.keys():
        return Parts(held.get("features"), np.asarray(held["edges"]).T, held["target"])
    if {"adj_indptr", "labels"} <= held.keys():
        return Parts(_matrix(held, "attr") if "attr_indptr" in held else None, _matrix(held, "adj"), held["labels"])
    raise GraphError(f"{path} holds the arrays {', '.join(sorted(held)) or 'none'}; allowed: {LAYOUTS}")


def _features(held: dict[str, Any]) -> Any:
    if "x_bits" in held:
        return sparse.csr_array(np.unpackbits(held["x_bits"], axis=1, count=int(held["x_shape"][1])))
    if "x_indptr" in held:
        return _matrix(held, "x")
    return held.get("x")


def _matrix(held: dict[str, Any], name: str) -> Any:
    parts: Any = (held[f"{name}_data"], held[f"{name}_indices"], held[f"{name}_indptr"])
    rows, columns = (int(size) for size in held[f"{name}_shape"])
    return sparse.csr_array(parts, shape=(rows, columns))
