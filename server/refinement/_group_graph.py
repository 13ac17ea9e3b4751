"""Random graphs from degrees into groups (LDPGen's generators): Chung-Lu throughout, or BTER inside groups."""

from __future__ import annotations

import numpy as np

from server.refinement._expected_degrees import chung_lu


def between_groups(intents: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ties between different groups, in time O(groups n + ties).

    `intents` (m, k): how many ties each node wants into each group, >= 0; `groups` (m,) in 0..k-1. Groups a and b
    expect the mean of the two totals, sum of a's intents towards b and of b's towards a; the number of ties is
    Poisson, and ends are drawn in proportion to the intents. Ties drawn twice are kept twice: callers make them
    distinct.
    """
    nodes, count = intents.shape
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(count + 1))
    running = np.zeros((nodes + 1, count))
    np.cumsum(intents[order], axis=0, out=running[1:])
    totals = running[starts[1:]] - running[starts[:-1]]  # [a, b]: what group a wants into b
    expected = np.triu((totals + totals.T) / 2, 1)
    expected[(totals == 0) | (totals.T == 0)] = 0.0
    numbers = rng.poisson(expected)
    left, right = [], []
    for b in range(count):
        a = np.repeat(np.arange(b), numbers[:b, b])
        left.append(_weighted_nodes(running[:, b], starts, a, order, rng))
        right.append(_weighted_nodes_of(running, starts, b, a, order, rng))
    return np.concatenate(left), np.concatenate(right)


def _weighted_nodes(
    running: np.ndarray, starts: np.ndarray, group: np.ndarray, order: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """One node of each listed group, in proportion to the increments of `running`."""
    low, high = running[starts[group]], running[starts[group + 1]]
    at = np.searchsorted(running, low + (high - low) * rng.random(len(group)), side="right") - 1
    return order[np.clip(at, starts[group], starts[group + 1] - 1)]


def _weighted_nodes_of(
    running: np.ndarray, starts: np.ndarray, b: int, towards: np.ndarray, order: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """One node of group b for each listed group, in proportion to the intents towards that group."""
    nodes = np.empty(len(towards), dtype=np.int64)
    inside = slice(starts[b], starts[b + 1] + 1)
    edges = np.searchsorted(towards, np.arange(b + 1))
    for a in np.flatnonzero(np.diff(edges)):
        column = running[inside, a]
        drawn = rng.random(edges[a + 1] - edges[a])
        at = np.searchsorted(column, column[0] + (column[-1] - column[0]) * drawn, side="right") - 1
        nodes[edges[a] : edges[a + 1]] = order[starts[b] + np.clip(at, 0, len(column) - 2)]
    return nodes


def inside_group(
    degrees: np.ndarray, generator: str, density: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Ties among the m nodes of one group with expected degrees about `degrees`, as positions; may repeat a tie.

    `chung-lu`: min(1, d_i d_j / sum d). `bter`: nodes of like degree form blocks of (least degree + 1) nodes, tied at
    random with probability `density`; what a node still lacks is drawn by Chung-Lu. Nodes of degree under 2 join no
    block.
    """
    if generator == "chung-lu" or len(degrees) < 2:
        return chung_lu(degrees, rng)
    order = np.argsort(degrees, kind="stable")
    lacking = degrees.astype(np.float64).copy()
    left, right = [], []
    at = int(np.searchsorted(degrees[order], 2.0))
    while at < len(order):
        block = order[at : at + int(min(degrees[order[at]], len(order))) + 1]
        at += len(block)
        i, j = np.triu_indices(len(block), 1)
        tied = rng.random(len(i)) < density
        left.append(block[i[tied]])
        right.append(block[j[tied]])
        lacking[block] = np.maximum(lacking[block] - density * (len(block) - 1), 0.0)
    i, j = chung_lu(lacking, rng)
    return np.concatenate([*left, i]), np.concatenate([*right, j])
