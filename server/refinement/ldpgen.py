"""LDPGen: cluster users by noisy degrees into groups, twice, and draw a random graph with those degrees."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.privacy.ties import TieProtocol
from agents.privacy.ties.group_degrees import GroupDegrees
from server.evidence import Evidence, Structure
from server.refinement._pairs import among, distinct_pairs
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams

GROUPS = "groups"
"""Key under which the groups of the second phase are published, and handed back in `Evidence.extra`."""


class LdpGen(Refinement, kind="ldpgen"):
    """A synthetic graph with the users' noisy degrees into groups of like users (LDPGen). No reported tie is published.

    Phase 1: degrees into random groups; k-means makes k_1 groups of them, which are published. Phase 2: degrees into
    those; k-means again, and the degrees are carried over to the new groups. Then `bter` (blocks of like degree inside
    a group, Chung-Lu for the rest) or `chung-lu` throughout. k_1 comes from the noisy degrees, at most `most_groups`:
    heavy tails ask for thousands, and the second clustering costs n k_1^2 a sweep.
    """

    source: ClassVar[str] = "LDPGen: Qin et al., CCS 2017; BTER: Seshadhri, Kolda & Pinar 2012"
    accepts: ClassVar[tuple[str, ...]] = ("group-degrees",)

    generator: Literal["bter", "chung-lu"] = "bter"
    block_density: float = Field(0.95, gt=0, le=1)
    most_groups: int = Field(256, ge=1)
    first_groups: int = Field(2, ge=1)

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        return GroupDegrees(epsilon=epsilon, first_groups=self.first_groups)

    def broadcast(self, phase: int, evidence: Evidence, streams: Streams) -> dict[str, np.ndarray]:
        if phase != 0:
            return {}
        vectors = clipped(evidence.numbers[0])
        heard = np.isfinite(vectors).all(axis=1)
        groups = np.full(evidence.n, -1, dtype=np.int64)
        if heard.any():
            wanted = number_of_groups(vectors[heard].sum(axis=1), evidence.n, evidence.protocol.ties.spent(1))
            count = min(wanted, self.most_groups, int(heard.sum()))
            groups[heard] = cluster(vectors[heard], count, streams.integer("refinement/ldpgen/first"))
        return {GROUPS: groups}

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        first = evidence.extra.get(GROUPS)
        if first is None:
            first = self.broadcast(0, evidence, streams)[GROUPS]
        vectors = clipped(evidence.numbers[1])
        heard = np.isfinite(vectors).all(axis=1) & (first >= 0)
        count = int(first.max(initial=-1)) + 1
        if not heard.any() or count == 0 or vectors.shape[1] != count:
            return Structure(np.zeros(0, np.int32), np.zeros(0, np.int32), notes=("ldpgen: no second report came in",))
        members = np.flatnonzero(heard)
        second = cluster(vectors[heard], min(count, len(members)), streams.integer("refinement/ldpgen/second"))
        intents = carried_over(vectors[heard], first[heard], second, evidence.n)
        u, v = self.generate(intents, second, streams.generator("refinement/ldpgen/graph"))
        u, v = among(kept, *distinct_pairs(members[u], members[v], evidence.n))
        capped = count == self.most_groups
        notes = (f"ldpgen: the number of groups is capped at most_groups = {count}",) if capped else ()
        return Structure(u, v, summary={"groups": float(count)}, notes=notes)

    def generate(
        self, intents: np.ndarray, groups: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ties (positions, perhaps repeated) from intents (m, k) and groups (m,)."""
        from server.refinement._group_graph import between_groups, inside_group

        left, right = between_groups(intents, groups, rng)
        lefts, rights = [left], [right]
        for group in range(intents.shape[1]):
            nodes = np.flatnonzero(groups == group)
            i, j = inside_group(intents[nodes, group], self.generator, self.block_density, rng)
            lefts.append(nodes[i])
            rights.append(nodes[j])
        return np.concatenate(lefts), np.concatenate(rights)

    def warm_up(self) -> None:
        groups = cluster(np.array([[0.0], [0.1], [5.0], [5.1]]), 2, seed=0)
        self.generate(np.full((4, 2), 2.0), groups, np.random.Generator(np.random.Philox(0)))


def clipped(numbers: np.ndarray) -> np.ndarray:
    """Reported numbers cut to the range -n..2n, so that no report outweighs all others in a clustering."""
    return np.clip(numbers, -len(numbers), 2 * len(numbers))


def number_of_groups(noisy_degrees: np.ndarray, n: int, second_epsilon: float) -> int:
    """k_1 = ceil(mean f(eta/2)), f(t) = t + (t^2 - 2 (1 + sqrt 5) t + 1) / epsilon_2, clipped to 1..n.

    eta is the noisy degree, rounded and clipped to 1..n-1.
    """
    half = np.clip(np.rint(noisy_degrees), 1, max(n - 1, 1)) / 2
    wanted = half + (half**2 - 2 * (1 + math.sqrt(5)) * half + 1) / second_epsilon
    return int(np.clip(math.ceil(wanted.mean()), 1, n))


def cluster(vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    """k-means groups 0..count-1 of the rows of `vectors`, fewer where fewer rows differ."""
    from sklearn.cluster import KMeans

    if count > 1:
        count = min(count, len(np.unique(vectors, axis=0)))  # numbers cut to the same bounds cannot be told apart
    if count <= 1 or vectors.shape[1] == 0:
        return np.zeros(len(vectors), dtype=np.int64)
    return KMeans(count, n_init=1, random_state=seed % 2**32).fit_predict(vectors).astype(np.int64)


def carried_over(vectors: np.ndarray, first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    """Degrees into the groups `second` (m, k_2) from noisy degrees into the groups `first` (m, k_1), cut to 0..n-1.

    delta'_{u,i} = sum_j delta_{u,j} |first_j & second_i| / |first_j|: ties into a group are spread evenly over its
    members.
    """
    overlap = np.zeros((vectors.shape[1], int(second.max(initial=0)) + 1))
    np.add.at(overlap, (first, second), 1.0)
    share = overlap / np.maximum(overlap.sum(axis=1, keepdims=True), 1.0)
    return np.clip(vectors @ share, 0.0, n - 1.0)
