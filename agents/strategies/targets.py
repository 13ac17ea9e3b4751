"""Whom attackers ask for ties. A choice is made once: a victim answers an attacker once."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.strategies.base import Knowledge, TargetStrategy, View
from sim.kernel.errors import SettingError

Pairs = tuple[np.ndarray, np.ndarray]


def deal(victims: np.ndarray, members: int) -> Pairs:
    """Victim i goes to member i mod members: each victim gets exactly one member."""
    return np.arange(len(victims)) % max(members, 1), victims


def draw_each(random: np.random.Generator, pool: np.ndarray, members: int, each: int) -> Pairs:
    """Each member draws `each` distinct ids from the pool (all of it where it is smaller)."""
    each = min(each, len(pool))
    drawn = [random.choice(pool, size=each, replace=False) for _ in range(members)]
    return np.repeat(np.arange(members), each), np.concatenate([np.empty(0, dtype=np.int64), *drawn])


def noisy_degree(view: View) -> int:
    """floor of the expected number of non-zero entries in an honest report: the degree that does not stand out."""
    ties, n = view.protocol.ties, view.protocol.participants
    return int(view.mean_degree + (n - 1 - view.mean_degree) * ties.false_positive)


class PerAttacker(TargetStrategy):
    """Kinds that give each member `per_attacker` targets."""

    per_attacker: int = Field(12, ge=1)
    """Victims that a member asks."""


class Cyclic(PerAttacker, kind="cyclic"):
    """Members x per_attacker victims at random, dealt in turn, so that each victim is asked by exactly one member.

    With fewer users than that, every user becomes a victim and members get fewer each.
    """

    source: ClassVar[str] = "Devil's Hand (He et al. 2026), cyclic matching"

    def choose(self, view: View) -> Pairs:
        victims = view.random("targets").permutation(view.others)[: view.size * self.per_attacker]
        return deal(victims, view.size)


class Random(PerAttacker, kind="random"):
    """Each member draws its victims at random, without regard to the other members."""

    source: ClassVar[str] = "black-box baseline"

    def choose(self, view: View) -> Pairs:
        return draw_each(view.random("targets"), view.others, view.size, self.per_attacker)


class SameVictims(PerAttacker, kind="same-victims"):
    """All members ask the same per_attacker victims, chosen at random."""

    source: ClassVar[str] = "concentrated attack, ours"

    def choose(self, view: View) -> Pairs:
        victims = view.random("targets").permutation(view.others)[: self.per_attacker]
        return np.repeat(np.arange(view.size), len(victims)), np.tile(victims, view.size)


class ByDegree(PerAttacker):
    """Kinds that sort honest users by their true degree and deal out the first members x per_attacker of them."""

    needs: ClassVar[tuple[Knowledge, ...]] = ("degrees",)

    def choose(self, view: View) -> Pairs:
        degrees = view.degrees()
        shuffled = view.random("targets").permutation(len(degrees))  # decides between users of equal degree
        order = shuffled[np.argsort(self._rank(degrees)[shuffled], kind="stable")]
        return deal(order[: view.size * self.per_attacker], view.size)

    @abstractmethod
    def _rank(self, degrees: np.ndarray) -> np.ndarray:
        """Sort key: smallest first."""


class HighDegree(ByDegree, kind="high-degree"):
    """The honest users of highest degree, dealt in turn: hubs spread an error furthest."""

    source: ClassVar[str] = "centrality-based target selection, ours"

    def _rank(self, degrees: np.ndarray) -> np.ndarray:
        return -degrees


class LowDegree(ByDegree, kind="low-degree"):
    """The honest users of lowest degree, dealt in turn: few true neighbours outvote a fake."""

    source: ClassVar[str] = "centrality-based target selection, ours"

    def _rank(self, degrees: np.ndarray) -> np.ndarray:
        return degrees


class ByClass(PerAttacker, kind="class"):
    """Victims of class `label` only; each member draws its own."""

    needs: ClassVar[tuple[Knowledge, ...]] = ("labels",)
    source: ClassVar[str] = "targeted poisoning, ours"
    label: int = Field(0, ge=0)

    def choose(self, view: View) -> Pairs:
        labels = view.labels()
        outside = view.others[view.others < len(labels)]
        pool = outside[labels[outside] == self.label]
        if not len(pool):
            raise SettingError(f"class targets: nobody outside the coalition has label {self.label}")
        return draw_each(view.random("targets"), pool, view.size, self.per_attacker)


class Community(PerAttacker, kind="community"):
    """Victims of one densely knit community; each member draws its own.

    The community is found from a random user by a sweep over personalised PageRank: of the users ordered by rank over
    degree, the prefix of least conductance among those with at least per_attacker users and at most half of all ties.
    """

    needs: ClassVar[tuple[Knowledge, ...]] = ("graph",)
    source: ClassVar[str] = "sweep cut of Andersen, Chung and Lang 2006"
    teleport: float = Field(0.15, gt=0, lt=1)

    def choose(self, view: View) -> Pairs:
        random = view.random("targets")
        pool = self.around(view.graph(), int(random.integers(2**31)))
        return draw_each(random, pool[~np.isin(pool, view.members)], view.size, self.per_attacker)

    def around(self, graph: sparse.csr_array, pick: int) -> np.ndarray:
        """Ids of the community around the pick-th user that has ties. Raises SettingError for a graph without ties."""
        adjacency = sparse.csr_array(graph.astype(float))
        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        tied = np.flatnonzero(degree)
        if not len(tied):
            raise SettingError("community targets: the granted graph has no ties")
        start = np.zeros(len(degree))
        start[tied[pick % len(tied)]] = 1.0
        rank, transition = start, sparse.csr_array(adjacency.T.multiply(1 / np.maximum(degree, 1)))
        for _ in range(40):
            rank = self.teleport * start + (1 - self.teleport) * (transition @ rank)
        reached = tied[rank[tied] > 0]
        order = reached[np.argsort(-rank[reached] / degree[reached], kind="stable")]
        volume = np.cumsum(degree[order])
        lower = sparse.tril(adjacency[order][:, order], k=-1)
        boundary = volume - np.cumsum(2 * np.asarray(lower.sum(axis=1)).ravel())
        large_enough = np.arange(1, len(order) + 1) >= min(self.per_attacker, len(order))
        allowed = large_enough & (volume <= degree.sum() / 2)
        if not allowed.any():
            return order[: self.per_attacker]
        return order[: np.argmin(np.where(allowed, boundary / volume, np.inf)) + 1]


class TargetSet(TargetStrategy):
    """Kinds of data poisoning against LDP graph statistics: `target_share` of all outsiders are to be promoted."""

    target_share: float = Field(0.05, gt=0, le=1)
    """Share of all outsiders that are to be promoted."""

    def victims(self, view: View) -> np.ndarray:
        """The target set, at least one user."""
        wanted = max(1, round(self.target_share * len(view.others)))
        return view.random("targets/set").permutation(view.others)[:wanted]


class MaximalGain(TargetSet, kind="maximal-gain"):
    """Each member fills the degree of an ordinary noisy report with the target set, then with random users.

    Published without local noise: combine it with `channel: bypass`.
    """

    source: ClassVar[str] = "He X. et al., ICDE 2025, MGA"

    def links(self, view: View) -> int:
        return max(1, noisy_degree(view))

    def choose(self, view: View) -> Pairs:
        victims, random, links = self.victims(view), view.random("targets"), self.links(view)
        rows, ids = draw_each(random, victims, view.size, links)
        rest = np.setdiff1d(view.others, victims)
        more_rows, more_ids = draw_each(random, rest, view.size, max(0, links - len(victims)))
        return np.concatenate([rows, more_rows]), np.concatenate([ids, more_ids])


class RandomNode(TargetSet, kind="random-node"):
    """Each member asks one random user of the target set and follows the protocol otherwise."""

    source: ClassVar[str] = "He X. et al., ICDE 2025, RNA"

    def choose(self, view: View) -> Pairs:
        return draw_each(view.random("targets"), self.victims(view), view.size, 1)


class RandomValue(TargetStrategy, kind="random-value"):
    """Each member asks as many random users as an ordinary noisy report would name.

    The published attack also sends an arbitrary degree; here a protocol that asks for one gets the number of partners.
    """

    source: ClassVar[str] = "He X. et al., ICDE 2025, RVA"

    def links(self, view: View) -> int:
        return max(1, noisy_degree(view))

    def choose(self, view: View) -> Pairs:
        return draw_each(view.random("targets"), view.others, view.size, self.links(view))
