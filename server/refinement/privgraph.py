"""PrivGraph: private communities first, then a random graph with private degrees inside and counts between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.ties import TieProtocol
from agents.privacy.ties.trusted_curator import TrustedCurator
from server.evidence import Evidence, Structure
from server.refinement._norm_sub import norm_sub
from server.refinement._pairs import among, curator_noise, distinct_pairs, random_cells, reported_pairs
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams


class PrivGraph(Refinement, kind="privgraph"):
    """A synthetic graph from private communities, degrees and counts (PrivGraph). A trusted curator holds raw lists.

    Epsilon is spent in thirds. (1) Random groups of `group_size` users, noisy counts between groups, Louvain on the
    groups. (2) Each user picks a community by the exponential mechanism. (3) Noisy counts between communities, noisy
    degrees inside them, from which ties are drawn. `preset: released-code` scores a community by the number of ties
    into it alone (the paper: by modularity) and attaches every tie between communities to the last community, as the
    code does.
    """

    source: ClassVar[str] = "PrivGraph: Yuan et al., USENIX Security 2023"
    accepts: ClassVar[tuple[str, ...]] = ("raw-list",)
    curator: ClassVar[str] = "trusted"

    preset: Literal["paper", "released-code"] = "paper"
    group_size: int = Field(20, ge=1)
    resolution: float = Field(1.0, gt=0)
    ends: int = Field(2, ge=1, le=2)

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        return TrustedCurator(epsilon=epsilon)

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        u, v = reported_pairs(evidence.lists, self.ends)
        rng = curator_noise("refinement/privgraph", u, v, evidence, streams)
        third = evidence.protocol.ties.epsilon / 3
        ties = symmetric(u, v, evidence.n)
        coarse = self.coarse_communities(ties, third, rng)
        communities = self.adjusted(ties, coarse, third, rng)
        left, right = self.synthetic(ties, communities, third, rng)
        published_u, published_v = among(kept, left, right)
        summary = {"communities": float(communities.max(initial=-1) + 1), "published_ties": float(len(left))}
        notes: tuple[str, ...] = ()
        if self.preset == "released-code":
            notes = (
                "privgraph, released code: communities are scored by tie counts, not by modularity, and one end of "
                "every tie between communities lies in the last community",
            )
        return Structure(published_u, published_v, summary=summary, notes=notes)

    def coarse_communities(self, ties: sparse.csr_array, epsilon: float, rng: np.random.Generator) -> Coarse:
        """Stage 1: noisy counts between random groups, Louvain on the groups; every user gets its group's community.

        A tie changes one count between groups by 1, or a group's own count (both ends, so twice the ties) by 2.
        """
        n = ties.shape[0]
        groups = rng.permutation(np.arange(n) // self.group_size)
        count = int(groups.max(initial=-1)) + 1
        weights = block_counts(ties, groups, count)
        upper = np.triu_indices(count, 1)
        noisy = np.zeros((count, count), dtype=np.int64)
        noisy[upper] = norm_sub(weights[upper] + rng.laplace(0.0, 1.0 / epsilon, len(upper[0])))
        noisy += noisy.T
        noisy[np.diag_indices(count)] = norm_sub(np.diag(weights) + rng.laplace(0.0, 2.0 / epsilon, count))
        part = louvain(noisy, self.resolution, int(rng.integers(2**31)))
        return Coarse(part[groups], noisy.sum(axis=1)[groups] / np.bincount(groups)[groups])

    def adjusted(self, ties: sparse.csr_array, coarse: Coarse, epsilon: float, rng: np.random.Generator) -> np.ndarray:
        """Stage 2: one pass in random order in which every user moves by the exponential mechanism.

        Paper: score e(v, c) - d_v vol(c) / (2m), modularity gain times the number of ties m up to a constant, with vol
        and 2m from the published noisy counts, so that one tie of v changes a score by at most 1. Released code: e(v,
        c). A tie concerns two users, so each user spends half: P(c) is proportional to exp(epsilon score / 4).
        """
        communities = coarse.communities.copy()
        count = int(communities.max(initial=-1)) + 1
        volumes = np.bincount(communities, weights=coarse.volumes, minlength=count)
        mass = max(float(coarse.volumes.sum()), 1e-12)
        sensitivity = max(1.0, self.resolution) if self.preset == "paper" else 1.0
        for node in rng.permutation(len(communities)):
            near = communities[ties.indices[ties.indptr[node] : ties.indptr[node + 1]]]
            score = np.bincount(near, minlength=count).astype(np.float64)
            volumes[communities[node]] -= coarse.volumes[node]
            if self.preset == "paper":
                score -= self.resolution * len(near) * np.clip(volumes / mass, 0.0, 1.0)
            chosen = exponential_mechanism(score, epsilon / (4 * sensitivity), rng)
            communities[node] = chosen
            volumes[chosen] += coarse.volumes[node]
        return np.unique(communities, return_inverse=True)[1]

    def synthetic(
        self, ties: sparse.csr_array, communities: np.ndarray, epsilon: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Stage 3: degrees inside communities and counts between them (disjoint ties, so epsilon for each), then ties.

        A tie inside changes two degrees by 1, a tie between changes one count by 1.
        """
        count = int(communities.max(initial=-1)) + 1
        between = block_counts(ties, communities, count)
        upper = np.triu_indices(count, 1)
        counts = norm_sub(between[upper] + rng.laplace(0.0, 1.0 / epsilon, len(upper[0])))
        members = [np.flatnonzero(communities == c) for c in range(count)]
        inside = same_community_degrees(ties, communities) + rng.laplace(0.0, 2.0 / epsilon, ties.shape[0])
        left, right = [], []
        for nodes in members:
            degrees = np.minimum(norm_sub(inside[nodes]), len(nodes) - 1).astype(np.float64)
            i, j = chung_lu_ties(degrees, rng)
            left.append(nodes[i])
            right.append(nodes[j])
        for a, b, wanted in zip(*(side[counts > 0] for side in (*upper, counts))):
            if self.preset == "released-code":
                i, j = rng.choice(members[-1], wanted), rng.choice(members[b], wanted)
            else:
                size = len(members[b])
                cells = random_cells(
                    len(members[a]) * size, np.zeros(0, np.int64), min(int(wanted), len(members[a]) * size), rng
                )
                i, j = members[a][cells // size], members[b][cells % size]
            left.append(i)
            right.append(j)
        return distinct_pairs(np.concatenate(left), np.concatenate(right), ties.shape[0])

    def warm_up(self) -> None:
        louvain(np.ones((2, 2)), self.resolution, seed=0)
        chung_lu_ties(np.ones(4), np.random.Generator(np.random.Philox(0)))


@dataclass(frozen=True)
class Coarse:
    """What stage 1 publishes about every user: its community, and its group's mean noisy degree."""

    communities: np.ndarray  # (n,) int64 in 0..communities-1
    volumes: np.ndarray  # (n,) float64, >= 0


def symmetric(u: np.ndarray, v: np.ndarray, n: int) -> sparse.csr_array:
    """(n, n) csr with a one in both directions of each pair."""
    rows, columns = np.concatenate([u, v]), np.concatenate([v, u])
    return sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=(n, n))


def block_counts(ties: sparse.csr_array, blocks: np.ndarray, count: int) -> np.ndarray:
    """(count, count) int64: ties between blocks; the diagonal holds twice the ties inside a block."""
    rows = np.repeat(blocks, np.diff(ties.indptr))
    return np.bincount(rows * count + blocks[ties.indices], minlength=count * count).reshape(count, count)


def same_community_degrees(ties: sparse.csr_array, communities: np.ndarray) -> np.ndarray:
    """(n,) number of a user's ties that stay inside its community."""
    rows = np.repeat(np.arange(ties.shape[0]), np.diff(ties.indptr))
    return np.bincount(rows[communities[rows] == communities[ties.indices]], minlength=ties.shape[0])


def louvain(weights: np.ndarray, resolution: float, seed: int) -> np.ndarray:
    """Communities 0.. of the nodes of a weighted graph; a diagonal entry is twice the weight of a loop."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(weights)))
    rows, columns = np.nonzero(np.triu(weights))
    values = np.where(rows == columns, weights[rows, columns] / 2, weights[rows, columns])
    graph.add_weighted_edges_from(zip(rows.tolist(), columns.tolist(), values.tolist()))
    part = np.zeros(len(weights), dtype=np.int64)
    if graph.size() == 0:  # no count survived: every group is its own community
        return np.arange(len(weights))
    found = nx.community.louvain_communities(graph, weight="weight", resolution=resolution, seed=seed)
    for label, community in enumerate(sorted(found, key=min)):
        part[list(community)] = label
    return part


def exponential_mechanism(score: np.ndarray, rate: float, rng: np.random.Generator) -> int:
    """An index drawn with probability proportional to exp(rate * score)."""
    weight = np.exp(rate * (score - score.max()))
    return int(np.searchsorted(np.cumsum(weight), rng.random() * weight.sum(), side="right").clip(0, len(score) - 1))


def chung_lu_ties(degrees: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of positions, each independently with probability min(1, d_i d_j / sum d); none when all degrees are 0."""
    from server.refinement._expected_degrees import chung_lu

    return chung_lu(degrees, rng)
