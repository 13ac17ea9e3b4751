"""Generated graphs of any size: a degree-corrected block model with words that depend on the class."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field, model_validator
from scipy import sparse

from sim.kernel.graphs._clean import clean
from sim.kernel.graphs.base import Graph, GraphSource
from sim.kernel.randomness import Streams


class Synthetic(GraphSource, kind="synthetic"):
    """Degree-corrected block model with class-dependent sparse binary features, in near-linear time.

    Nodes fall into equal classes. The number of ties is exactly round(nodes x mean_degree / 2), and exactly
    the share `homophily` of them (rounded) joins equal classes. End points are drawn in proportion to weights from a
    lognormal law of spread `degree_spread`, so 0 gives nearly equal degrees and 1 gives hubs. Every node holds about
    `words` ones: a share `topicality` of them from its class's own block of columns, the rest from all columns.
    """

    source: ClassVar[str] = "Karrer and Newman 2011, with the number of ties held fixed"

    nodes: int = Field(1000, ge=2)
    mean_degree: float = Field(6.0, gt=0)
    homophily: float = Field(0.8, ge=0, le=1)
    classes: int = Field(5, ge=1)
    dimensions: int = Field(256, ge=1)
    degree_spread: float = Field(0.8, ge=0, le=3)
    words: float = Field(12.0, gt=0)
    topicality: float = Field(0.4, ge=0, le=1)

    @model_validator(mode="after")
    def _fits(self) -> Synthetic:
        if self.nodes < 2 * self.classes:
            raise ValueError(f"{self.nodes} nodes in {self.classes} classes; allowed: at least two nodes a class")
        if self.dimensions < self.classes:
            raise ValueError(f"{self.dimensions} dimensions for {self.classes} classes; allowed: at least one a class")
        if self.words > self.dimensions / 2:
            raise ValueError(f"words {self.words:g} of {self.dimensions} dimensions; allowed: at most half of them")
        inside, across = self._wanted()
        sizes = self._sizes()
        room_inside = int((sizes * (sizes - 1) // 2).sum())
        room_across = self.nodes * (self.nodes - 1) // 2 - room_inside
        for name, wanted, room in (("inside", inside, room_inside), ("across", across, room_across)):
            if wanted > room // 2:
                raise ValueError(
                    f"mean_degree {self.mean_degree:g} with homophily {self.homophily:g} needs {wanted} ties {name} "
                    f"classes; allowed: at most half of the {room} possible ones"
                )
        return self

    def _wanted(self) -> tuple[int, int]:
        """Numbers of ties inside and across classes."""
        ties = max(1, round(self.nodes * self.mean_degree / 2))
        inside = round(ties * self.homophily)
        return inside, ties - inside

    def _sizes(self) -> np.ndarray:
        return np.bincount(np.arange(self.nodes) % self.classes)

    def size_hint(self) -> int | None:
        return self.nodes

    def load(self, streams: Streams) -> Graph:
        labels = streams.generator("graph/labels").permutation(np.arange(self.nodes) % self.classes)
        codes = self._draw_ties(labels, streams.generator("graph/ties"))
        features = self._draw_words(labels, streams.generator("graph/features"))
        return clean("synthetic", features, np.stack([codes // self.nodes, codes % self.nodes]), labels)

    def _draw_ties(self, labels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Distinct pairs u < v, coded u * n + v."""
        weight = np.exp(self.degree_spread * generator.standard_normal(self.nodes))
        by_class = np.argsort(labels, kind="stable")
        inside, across = self._wanted()
        found = [_draw_pairs(inside, True, weight, labels, by_class, generator)]
        found.append(_draw_pairs(across, False, weight, labels, by_class, generator))
        return np.concatenate(found)

    def _draw_words(self, labels: np.ndarray, generator: np.random.Generator) -> sparse.csr_array:
        counts = np.maximum(1, generator.poisson(self.words, self.nodes))
        rows = np.repeat(np.arange(self.nodes), counts)
        topical = generator.random(rows.size) < self.topicality
        edges = np.linspace(0, self.dimensions, self.classes + 1).astype(np.int64)
        start, width = edges[labels[rows]], np.diff(edges)[labels[rows]]
        spot = generator.random(rows.size)
        columns = np.where(topical, start + (spot * width).astype(np.int64), (spot * self.dimensions).astype(np.int64))
        unused = np.setdiff1d(np.arange(self.dimensions), columns)  # the asked-for number of columns must vary
        rows = np.concatenate([rows, generator.integers(self.nodes, size=unused.size)])
        columns = np.concatenate([columns, unused])
        words = sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=(self.nodes, self.dimensions)).tocsr()
        words.data[:] = 1
        return words


def _draw_pairs(
    wanted: int,
    same: bool,
    weight: np.ndarray,
    labels: np.ndarray,
    by_class: np.ndarray,
    generator: np.random.Generator,
) -> np.ndarray:
    """Exactly `wanted` distinct pairs of the same (or of different) classes, ends in proportion to `weight`.

    Draws what is missing until nothing is. A round that finds less than half flattens the weights, so that hubs whose
    partners are used up cannot stall it; flat weights find half, as at most half of the possible pairs are wanted.
    """
    n = weight.size
    codes = np.empty(0, dtype=np.int64)
    while codes.size < wanted:
        missing = wanted - codes.size
        draws = missing + missing // 8 + 16
        if same:
            first, second = _ends_inside(draws, weight, labels, by_class, generator)
        else:
            cumulative = np.cumsum(weight)
            first, second = (_pick(cumulative, generator.random(draws) * cumulative[-1]) for _ in range(2))
        fits = (first != second) if same else (labels[first] != labels[second])
        low, high = np.minimum(first, second)[fits], np.maximum(first, second)[fits]
        drawn = low * n + high
        order = np.unique(drawn, return_index=True)[1]
        fresh = drawn[np.sort(order)]  # in order of drawing, so that cutting the surplus favours nobody
        fresh = fresh[~np.isin(fresh, codes)][:missing]
        codes = np.concatenate([codes, fresh])
        if fresh.size < missing / 2:
            weight = np.sqrt(weight)
    return codes


def _ends_inside(
    draws: int, weight: np.ndarray, labels: np.ndarray, by_class: np.ndarray, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """End points in one class, the class drawn in proportion to the square of its weight."""
    cumulative = np.cumsum(weight[by_class])
    last = np.cumsum(np.bincount(labels)) - 1
    top = cumulative[last]
    bottom = np.concatenate([[0.0], top[:-1]])
    share = np.cumsum((top - bottom) ** 2)
    chosen = _pick(share, generator.random(draws) * share[-1])
    spots = (bottom[chosen] + generator.random(draws) * (top - bottom)[chosen] for _ in range(2))
    first, second = (by_class[np.minimum(_pick(cumulative, spot), last[chosen])] for spot in spots)
    return first, second


def _pick(cumulative: np.ndarray, spot: np.ndarray) -> np.ndarray:
    """Index of the interval of `cumulative` that holds each spot."""
    return np.minimum(np.searchsorted(cumulative, spot, side="right"), cumulative.size - 1)
