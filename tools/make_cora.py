"""Makes `sim/kernel/data/cora.npz` from the Cora tables inside the PyPI package graphdatascience (Apache-2.0).

    python tools/make_cora.py

Downloads the wheel without installing or importing it (pip must reach a package index), reads the two parquet tables
inside, and writes one compressed npz with:

- `words_per_node` (2708,) and `words`: column numbers of each node's ones, node by node
- `dimensions`: 1433
- `edges` (2, 5278): undirected ties, each once with the smaller end first, sorted
- `labels` (2708,)

Nodes keep the order of the package's table. Same wheel, same bytes.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

PACKAGE = "graphdatascience==2.2"
FOLDER = "graphdatascience/resources/cora/"
TARGET = Path(__file__).resolve().parents[1] / "sim" / "kernel" / "data" / "cora.npz"


def download() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The node and the citation table."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", PACKAGE, "--no-deps", "--quiet", "--dest", folder]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            nodes, citations = (
                pd.read_parquet(io.BytesIO(wheel.read(FOLDER + name)))
                for name in ("cora_nodes.parquet.gzip", "cora_rels.parquet.gzip")
            )
    return nodes, citations


def pack(nodes: pd.DataFrame, citations: pd.DataFrame) -> dict[str, np.ndarray]:
    """The arrays of the npz."""
    features = np.stack(nodes["features"].to_numpy())
    rows, words = np.nonzero(features)
    index = pd.Series(np.arange(len(nodes)), index=nodes["nodeId"])
    ends = np.stack([index[citations[c]].to_numpy() for c in ("sourceNodeId", "targetNodeId")])
    ends = np.sort(ends[:, ends[0] != ends[1]], axis=0)
    return {
        "words_per_node": np.bincount(rows, minlength=len(nodes)).astype(np.uint8),
        "words": words.astype(np.uint16),
        "dimensions": np.array(features.shape[1], dtype=np.int32),
        "edges": np.unique(ends, axis=1).astype(np.uint16),
        "labels": nodes["subject"].to_numpy().astype(np.uint8),
    }


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    arrays = pack(*download())
    np.savez_compressed(TARGET, **arrays)
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes, " + ", ".join(f"{k} {v.shape}" for k, v in arrays.items()))
