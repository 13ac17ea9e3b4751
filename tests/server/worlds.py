"""Small simulated worlds for tests of the defences: plain numpy, independent of the package's own samplers.

A world is an undirected honest graph with true levels at both ends, plus injected users of one attack. Lists go through
randomised response over every entry; bypassing users send their lists as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from agents.privacy.features.none import PublicFeatures
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Protocol
from server.evidence import Evidence


@dataclass
class World:
    """True lists as (giver, receiver) -> level, and who bypasses the noise."""

    honest: int
    ties: np.ndarray  # (m, 2) honest ties u < v
    labels: np.ndarray  # (honest,)
    levels: int
    truth: sparse.csr_array  # (n, n) true levels, attackers last
    verbatim: np.ndarray  # (n,) bool
    victims: np.ndarray = field(default_factory=lambda: np.zeros(0, int))

    @property
    def n(self) -> int:
        return self.truth.shape[0]

    @property
    def attackers(self) -> np.ndarray:
        return np.arange(self.n) >= self.honest


def pair_levels(count: int, levels: int, trust: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Levels at both ends of `count` honest ties."""
    if trust == "maximal":
        return np.full(count, levels), np.full(count, levels)
    if trust == "independent":
        return rng.integers(1, levels + 1, count), rng.integers(1, levels + 1, count)
    common = rng.integers(1, levels + 1, count)
    jitter = (rng.random((2, count)) < 0.2) * rng.choice([-1, 1], (2, count))
    a, b = np.clip(common + jitter, 1, levels)
    return a, b


def block_graph(n: int, degree: float, rng: np.random.Generator, classes: int = 4, homophily: float = 0.8) -> tuple:
    """(ties, labels) of a block model with heavy-tailed degrees."""
    labels = rng.integers(0, classes, n)
    weight = rng.pareto(2.5, n) + 1
    wanted, ties = int(n * degree / 2), set()
    while len(ties) < wanted:
        u, v = rng.choice(n, 2, p=weight / weight.sum())
        if u != v and (labels[u] == labels[v]) == (rng.random() < homophily):
            ties.add((min(u, v), max(u, v)))
    return np.array(sorted(ties)), labels


def make_world(
    ties: np.ndarray,
    labels: np.ndarray,
    levels: int,
    trust: str,
    rng: np.random.Generator,
    attack: str = "none",
    attackers: int = 0,
    targets: int = 12,
    answer: str = "1",
) -> World:
    """Attack codes as in the protocol notes: 1 maximal, 2 maximal bypassing, 3 one entry bypassing, 4 level-matching, 5 the
    same bypassing, 6 clique, 6b clique bypassing, 7 framing, 8 camouflage at maximal level, 8u at uniform levels."""
    honest = len(labels)
    n = honest + attackers
    a, b = pair_levels(len(ties), levels, trust, rng)
    giver, receiver = [*ties[:, 0], *ties[:, 1]], [*ties[:, 1], *ties[:, 0]]
    level = [*a, *b]
    verbatim = np.zeros(n, bool)
    victims = [rng.choice(honest, targets, replace=False) for _ in range(attackers)]
    epsilon_free: dict[tuple[int, int], int] = {}
    for i, mine in enumerate(victims):
        fake = honest + i
        kind = attack if attack != "9" else ("1", "2", "3", "4", "5", "6", "6b", "7", "8", "8u")[i % 10]
        verbatim[fake] = kind in ("2", "3", "5", "6b", "8")
        claim = {"3": 1, "4": 1, "5": 1}.get(kind, levels)
        for position, victim in enumerate(mine):
            told = 1 if answer == "1" else int(rng.integers(0, 2))
            if kind == "7":
                given, told = told, int(rng.integers(min(3, levels), levels + 1))
            else:
                given = claim if kind != "3" or position == 0 else 0
            for g, r, value in ((fake, victim, given), (victim, fake, told)):
                if value:
                    epsilon_free[g, r] = value
        if kind in ("6", "6b"):
            for other in range(honest, n):
                if other != fake:
                    epsilon_free[fake, other] = levels
    for (g, r), value in epsilon_free.items():
        giver.append(g)
        receiver.append(r)
        level.append(value)
    truth = sparse.csr_array((np.array(level, np.int8), (giver, receiver)), shape=(n, n))
    truth.sort_indices()
    hit = np.unique(np.concatenate(victims)) if attackers else np.zeros(0, int)
    return World(honest, ties, labels, levels, truth, verbatim, hit)


def noisy_lists(world: World, epsilon: float, rng: np.random.Generator) -> sparse.csr_array:
    """Randomised response over all entries of every row that does not bypass it, row by row."""
    n, symbols = world.n, world.levels + 1
    replaced = symbols / (math.exp(epsilon) + world.levels)
    indices, data, indptr = [], [], [0]
    for v in range(n):
        row = np.zeros(n, np.int8)
        span = slice(*world.truth.indptr[v : v + 2])
        row[world.truth.indices[span]] = world.truth.data[span]
        if not world.verbatim[v]:
            count = rng.binomial(n, replaced)
            row[rng.choice(n, count, replace=False)] = rng.integers(0, symbols, count)
        row[v] = 0
        held = np.flatnonzero(row)
        indices.append(held)
        data.append(row[held])
        indptr.append(indptr[-1] + len(held))
    return sparse.csr_array((np.concatenate(data), np.concatenate(indices).astype(np.int32), indptr), shape=(n, n))


def camouflage(world: World, lists: sparse.csr_array, epsilon: float, rng: np.random.Generator) -> sparse.csr_array:
    """Attack 8: the right number of spurious entries in each verbatim row, all at the top level, at other fakes' victims."""
    rows = lists.tolil()
    rate = world.levels / (math.exp(epsilon) + world.levels)
    for fake in np.flatnonzero(world.attackers & world.verbatim):
        aim = rng.permutation(world.victims)[: rng.binomial(world.n, rate)]
        for victim in aim:
            if not rows[fake, victim]:
                rows[fake, victim] = world.levels
    out = sparse.csr_array(rows.tocsr())
    out.sort_indices()
    return out


def evidence(
    lists: sparse.csr_array,
    epsilon: float,
    levels: int,
    labels: np.ndarray | None = None,
    train: np.ndarray | None = None,
    reported: np.ndarray | None = None,
    mean_degree: float = 4.0,
) -> Evidence:
    """The server's view of some lists; node features are absent."""
    n = lists.shape[0]
    known = np.full(n, -1)
    if labels is not None:
        known[: len(labels)] = labels
    train = np.zeros(n, bool) if train is None else np.r_[train, np.zeros(n - len(train), bool)]
    protocol = Protocol(
        participants=n,
        dimensions=1,
        classes=int(known.max(initial=0)) + 1,
        features=PublicFeatures(),
        ties=VerificationList(epsilon=epsilon, levels=levels),
        unit="list-entry",
        rounds=1,
        mean_degree=mean_degree,
    )
    return Evidence(
        protocol=protocol,
        reported=np.ones(n, bool) if reported is None else reported,
        features=sparse.csr_array((n, 1), dtype=np.float32),
        lists=lists,
        numbers=[],
        labels=np.where(train, known, -1),
        train=train,
        validation=np.zeros(n, bool),
    )


def relabelled(given: Evidence, order: np.ndarray) -> Evidence:
    """The same evidence with user order[i] renamed i."""
    lists = sparse.csr_array(given.lists[order][:, order])
    lists.sort_indices()
    return Evidence(
        given.protocol,
        given.reported[order],
        sparse.csr_array(given.features[order]),
        lists,
        given.numbers,
        given.labels[order],
        given.train[order],
        given.validation[order],
        given.extra,
    )


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve, ties half."""
    ranks = np.unique(score, return_inverse=True)[1].ravel()
    counts = np.bincount(ranks)
    middle = np.cumsum(counts) - (counts - 1) / 2
    hit = middle[ranks][positive].sum() - positive.sum() * (positive.sum() + 1) / 2
    return float(hit / (positive.sum() * (~positive).sum()))
