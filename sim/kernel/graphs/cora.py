"""Cora, which ships inside the package."""

from __future__ import annotations

from importlib.resources import files
from typing import ClassVar

import numpy as np
from scipy import sparse

from sim.kernel.graphs._clean import clean
from sim.kernel.graphs.base import Facts, Graph, GraphSource
from sim.kernel.randomness import Streams


class Cora(GraphSource, kind="cora"):
    """Citations between machine learning papers with binary word features; ships with the package."""

    source: ClassVar[str] = "McCallum et al. 2000; from graphdatascience (Apache-2.0), see NOTICE"
    facts: ClassVar[Facts | None] = Facts(
        2708, 5278, 1433, 7, 0.810, "ships with the package; one of the columns is constant and dropped"
    )

    def load(self, streams: Streams) -> Graph:
        with files("sim.kernel").joinpath("data/cora.npz").open("rb") as file, np.load(file) as held:
            indptr = np.concatenate([[0], np.cumsum(held["words_per_node"], dtype=np.int64)])
            words = sparse.csr_array(
                (np.ones(held["words"].size, dtype=np.float32), held["words"].astype(np.int32), indptr),
                shape=(indptr.size - 1, int(held["dimensions"])),
            )
            return clean("cora", words, held["edges"], held["labels"])
