"""The graph of a run, its split, and the interface of where graphs come from."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field, model_validator
from scipy import sparse

from sim.kernel.component import Component, Section
from sim.kernel.errors import InputError
from sim.kernel.randomness import Streams


class GraphError(InputError):
    """A graph cannot be found or read: what, where it was looked for, and how to get it."""


@dataclass(frozen=True)
class Graph:
    """An undirected attributed graph whose node index is the honest user's stable id.

    Sources make it with `clean`, which establishes what is stated here.
    """

    name: str
    features: sparse.csr_array  # (n, d) float32 in [0, 1]; d is 0 for a structure-only set
    ties: sparse.csr_array  # (n, n) int8, symmetric, 0/1, empty diagonal, sorted indices
    labels: np.ndarray  # (n,) int64 in 0..classes-1, or -1 where the source states no label

    @property
    def nodes(self) -> int:
        """Number of nodes n."""
        return self.ties.shape[0]

    @property
    def dimensions(self) -> int:
        """Number of feature columns d."""
        return self.features.shape[1]

    @cached_property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.labels.max(initial=-1)) + 1

    @property
    def edges(self) -> int:
        """Number of undirected ties."""
        return self.ties.nnz // 2

    @property
    def mean_degree(self) -> float:
        """Average number of ties of a node."""
        return self.ties.nnz / self.nodes

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of ties of every node, (n,) int64."""
        return np.diff(self.ties.indptr).astype(np.int64)

    @cached_property
    def homophily(self) -> float:
        """Share of the ties between labelled nodes that join equal labels; NaN when there is none."""
        near = np.repeat(self.labels, self.degrees)
        far = self.labels[self.ties.indices]
        known = (near >= 0) & (far >= 0)
        return float(np.mean(near[known] == far[known])) if known.any() else float("nan")

    def __repr__(self) -> str:
        return (
            f"Graph({self.name}: {self.nodes} nodes, {self.edges} ties, {self.dimensions} dimensions, "
            f"{self.classes} classes)"
        )


class Split(Section):
    """Shares of the labelled nodes used for training, validation and test, drawn uniformly at random."""

    train: float = Field(0.5, ge=0, le=1)
    validation: float = Field(0.25, ge=0, le=1)
    test: float = Field(0.25, ge=0, le=1)

    @model_validator(mode="after")
    def _sum_is_at_most_one(self) -> Split:
        total = self.train + self.validation + self.test
        if total > 1 + 1e-9:
            raise ValueError(
                f"train {self.train:g} + validation {self.validation:g} + test {self.test:g} sum to {total:g}; "
                "allowed: a sum of at most 1"
            )
        return self

    def draw(self, labels: np.ndarray, streams: Streams) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Boolean masks (n,) of the train, validation and test nodes. Nodes without a label (-1) are in none."""
        labelled = np.flatnonzero(np.asarray(labels) >= 0)
        order = streams.generator("split").permutation(labelled)
        ends = np.rint(np.cumsum([self.train, self.validation, self.test]) * labelled.size).astype(int)
        masks = tuple(np.zeros(len(labels), dtype=bool) for _ in range(3))
        for mask, part in zip(masks, np.split(order, np.minimum(ends, labelled.size))):
            mask[part] = True
        return masks[0], masks[1], masks[2]


@dataclass(frozen=True)
class Facts:
    """Published size of a data set, printed by `graphwarden list graphs` without loading it."""

    nodes: int
    edges: int
    dimensions: int
    classes: int
    homophily: float
    note: str = ""

    @property
    def mean_degree(self) -> float:
        """Average number of ties of a node."""
        return 2 * self.edges / self.nodes


def near(folder: str, name: str) -> str:
    """The absolute path of `name` below `folder`, or below the working folder if it exists only there."""
    beside = Path(folder, Path(name).expanduser()).resolve()
    here = Path(name).expanduser().resolve()
    return str(here if here.exists() and not beside.exists() else beside)


class GraphSource(Component, family="graph", home="sim.kernel.graphs", tag="source"):
    """Where the graph of a run comes from."""

    facts: ClassVar[Facts | None] = None

    split: Split = Split()
    root: str | None = None  # folder with data sets; else GRAPHWARDEN_DATA, else the user's cache

    @abstractmethod
    def load(self, streams: Streams) -> Graph:
        """The cleaned graph. Raises GraphError when it cannot be found or read."""

    def size_hint(self) -> int | None:
        """Number of nodes if known without loading."""
        return self.facts.nodes if self.facts else None

    def beside(self, folder: str) -> GraphSource:
        """The same source with relative names resolved: from `folder`, where the scenario lies, if they are there, else
        from the working folder."""
        return self if self.root is None else self.model_copy(update={"root": near(folder, self.root)})

    def missing(self) -> str | None:
        """What this machine lacks to load the graph, as one message, or None. Reads no data."""
        return None
