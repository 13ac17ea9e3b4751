"""Small simulated worlds for tests of the defences: plain numpy, independent of the package's own samplers.

A world is an undirected honest graph with true levels at both ends, plus injected users of one attack. Lists go through
randomised response over every entry; bypassing users send their lists as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    victims: np.ndarray  # honest ids that an attacker aimed at

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
    wanted = int(n * degree / 2)
    ties: set[tuple[int, int]] = set()
    while len(ties) < wanted:
        u, v = rng.choice(n, 2, p=weight / weight.sum())
        if u != v and (labels[u] == labels[v]) == (rng.random() < homophily):
            ties.add((min(u, v), max(u, v)))
    return np.array(sorted(ties)), labels


BYPASSING = ("2", "3", "5", "6b", "8", "8u")
MIXED = ("1", "2", "3", "4", "5", "6", "6b", "7", "8", "8u")


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
    """Honest users, then injected ones of one attack: 1 maximal, 2 the same bypassing, 3 one entry bypassing, 4 level-
    matching, 5 the same bypassing, 6 clique, 6b the same bypassing, 7 framing, 8 camouflage at the top level, 8u at
    even levels, 9 all of these in turn. Victims answer with level 1, or (`answer` mix) with 0 or 1 at random.
    """
    honest = len(labels)
    n = honest + attackers
    a, b = pair_levels(len(ties), levels, trust, rng)
    entries = {(u, v): level for (u, v), level in zip(ties.tolist(), a.tolist())}
    entries.update({(v, u): level for (u, v), level in zip(ties.tolist(), b.tolist())})
    verbatim, victims = np.zeros(n, bool), np.zeros(0, int)
    for i in range(attackers):
        fake, kind = honest + i, MIXED[i % len(MIXED)] if attack == "9" else attack
        mine = rng.choice(honest, targets, replace=False)
        victims = np.union1d(victims, mine)
        verbatim[fake] = kind in BYPASSING
        for place, victim in enumerate(mine.tolist()):
            told = 1 if answer == "1" else int(rng.integers(0, 2))
            claim = 1 if kind in ("3", "4", "5") else levels
            if kind == "7":  # the victim's trust was won, the fake answers low
                claim, told = told, int(rng.integers(min(3, levels), levels + 1))
            entries[fake, victim] = 0 if kind == "3" and place else claim
            entries[victim, fake] = told
        if kind in ("6", "6b"):
            entries.update({(fake, other): levels for other in range(honest, n) if other != fake})
    held = {pair: level for pair, level in entries.items() if level}
    places = np.array(list(held)).T
    truth = sparse.csr_array((np.array(list(held.values()), np.int8), (places[0], places[1])), shape=(n, n))
    truth.sort_indices()
    return World(honest, ties, labels, levels, truth, verbatim, victims)


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


def camouflage(
    world: World, lists: sparse.csr_array, epsilon: float, rng: np.random.Generator, level: int = 0
) -> sparse.csr_array:
    """Attack 8: the right number of spurious entries in each verbatim row, aimed at other fakes' victims; all at the
    top level, or at `level` 1 evenly over 1..levels."""
    rate = world.levels / (math.exp(epsilon) + world.levels)
    rows, columns, values = [], [], []
    for fake in np.flatnonzero(world.attackers & world.verbatim):
        free = np.setdiff1d(world.victims, lists.indices[lists.indptr[fake] : lists.indptr[fake + 1]])
        aim = rng.permutation(free)[: rng.binomial(world.n, rate)]
        rows += [fake] * len(aim)
        columns += aim.tolist()
        values += (rng.integers(1, world.levels + 1, len(aim)) if level else np.full(len(aim), world.levels)).tolist()
    out = sparse.csr_array(lists + sparse.csr_array((np.array(values, np.int8), (rows, columns)), shape=lists.shape))
    out.sort_indices()
    return out


def attacked_lists(world: World, attack: str, epsilon: float, rng: np.random.Generator) -> sparse.csr_array:
    """The noisy lists of a world, camouflage included where the attack has it."""
    lists = noisy_lists(world, epsilon, rng)
    if attack in ("8", "8u"):
        lists = camouflage(world, lists, epsilon, rng, level=int(attack == "8u"))
    return lists


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


def as_lists(rows: list[list[int]]) -> sparse.csr_array:
    """Lists from a small dense matrix."""
    return sparse.csr_array(np.array(rows, dtype=np.int8))


def published(structure: object) -> set[tuple[int, int]]:
    """The hard edge set of a structure."""
    u, v, hard = structure.u, structure.v, structure.hard  # type: ignore[attr-defined]
    keep = np.ones(len(u), bool) if hard is None else hard
    return set(zip(u[keep].tolist(), v[keep].tolist()))


def f1(structure: object, ties: np.ndarray) -> float:
    """F1 of the hard edge set against the true ties (m, 2)."""
    found, true = published(structure), set(map(tuple, ties.tolist()))
    return 2 * len(found & true) / (len(found) + len(true))


FOUR = as_lists([[0, 3, 1, 0], [2, 0, 0, 1], [1, 0, 0, 2], [0, 3, 0, 0]])
"""Mutual: {0,1} at 3/2, {0,2} at 1/1, {1,3} at 1/3. One-sided: 2 about 3."""
