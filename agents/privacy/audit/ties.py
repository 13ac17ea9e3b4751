"""The audit of a tie protocol, as a black box: only `encode`, `spent` and the protocol's public facts are used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from agents.privacy.audit.epsilon import Effort, World, audit_epsilon
from agents.privacy.audit.events import Observed
from agents.privacy.audit.moments import Expected, Moments, compare
from agents.privacy.audit.rows import AuditRow, not_audited
from agents.privacy.ties import TieProtocol
from agents.protocol import Protocol, RoundCall
from sim.kernel.randomness import Streams

MOST_PARTICIPANTS = 129
"""Length of the lists that an audit draws. Budgets of one entry do not depend on it, and short lists are quick."""


class TieWorld:
    """Reports of users whose entry about one other user is `level`, the rest of their lists being equal in all worlds.

    Observed, each as a group of its own: the reported level of that entry, how many entries are reported above zero,
    and every number of every phase. With `history` the entry takes these levels in successive rounds, noise memoized.
    With `both_ends` users come in pairs that hold the entry about each other; an observation is the reports of a pair.
    """

    def __init__(
        self, protocol: Protocol, level: int, streams: Streams, history: tuple[int, ...] = (), both_ends: bool = False
    ) -> None:
        self.size = min(protocol.participants, MOST_PARTICIPANTS)
        self.protocol = replace(protocol, participants=self.size)
        self.levels, self.streams, self.both_ends = history or (level,), streams, both_ends
        self.memoized = bool(history)
        kept = len(set(self.levels)) == 1
        self.label = f"entry {level if kept else ' then '.join(map(str, self.levels))}"
        everybody = np.arange(self.size)
        if both_ends:
            self.users = everybody[: self.size // 2 * 2]
            self.targets = self.users ^ 1
        else:
            speaks = protocol.ties.speaks_for(everybody, np.full(self.size, self.size - 1))
            self.users = everybody[speaks & (everybody < self.size - 1)]
            self.targets = np.full(len(self.users), self.size - 1)
        self._lists = {held: self._lists_with(held) for held in set(self.levels)}
        self._batch, self._left = 0, np.zeros((0, 0))

    def draw(self, count: int) -> Observed:
        parts, have = [self._left], len(self._left)
        while have < count:
            parts.append(self._fresh())
            have += len(parts[-1])
        whole = np.vstack([part for part in parts if len(part)])
        self._left = whole[count:]
        return list(np.hsplit(whole[:count], whole.shape[1]))

    def _fresh(self) -> np.ndarray:
        """(observations, groups) of one batch, with streams of its own."""
        streams = self.streams.child(f"batch/{self._batch}")
        self._batch += 1
        columns = np.hstack([self._round(streams, 1 + past, level) for past, level in enumerate(self.levels)])
        return np.hstack([columns[0::2], columns[1::2]]) if self.both_ends else columns

    def _round(self, streams: Streams, round: int, level: int) -> np.ndarray:
        """(users, groups) of all phases of one round."""
        columns, lists = [], self._lists[level]
        for phase in range(self.protocol.ties.phases):
            broadcast = {} if phase == 0 else {"groups": np.arange(self.size) % 2}
            call = RoundCall(round, phase, 0 if self.memoized else round, self.memoized, self.protocol, broadcast)
            made = self.protocol.ties.encode(lists, self.users, streams, call)
            columns.append(made.lists.toarray()[np.arange(len(self.users)), self.targets][:, None].astype(float))
            columns.append(np.diff(made.lists.indptr)[:, None].astype(float))
            columns.append(made.numbers)
        return np.hstack(columns)

    def _lists_with(self, level: int) -> sparse.csr_array:
        """Lists with `level` about the targets and level 1 about one neighbour, who is the same in all worlds."""
        place = np.arange(len(self.users))
        neighbours = (self.users + 2) % self.size
        there = (neighbours != self.targets) & (neighbours != self.users)
        lists: Any = sparse.lil_array((len(self.users), self.size), dtype=np.int8)
        lists[place[there], neighbours[there]] = 1
        lists[place, self.targets] = level
        lists = lists.tocsr()
        lists.eliminate_zeros()
        lists.sort_indices()
        return lists


def local_epsilon(ties: TieProtocol) -> float:
    """What one report is held to, per list entry: the smaller one of the setting and of what the protocol says."""
    return min(ties.epsilon, sum(ties.spent(phase) for phase in range(ties.phases)))


def subject_of(ties: TieProtocol) -> str:
    """How lines name a tie protocol."""
    return f"ties: {ties.kind}"


def exempt(ties: TieProtocol) -> list[AuditRow] | None:
    """Lines of a protocol that has nothing local to audit; None when it has."""
    if ties.form == "none":
        return []
    if ties.curator != "none":
        note = "not local: raw lists go to a trusted curator, who adds the noise"
        return [not_audited(subject_of(ties), note)]
    return None


def audit_ties(protocol: Protocol, streams: Streams, effort: Effort | None = None) -> list[AuditRow]:
    """All lines about one report: the epsilon of one entry, and the reported level against its channel if that is known
    (`flip`: probability of each other symbol). In the unit of an undirected tie, also what both ends give away."""
    ties = protocol.ties
    lines = exempt(ties)
    if lines is not None:
        return lines
    effort = (effort or Effort()).scaled(8)
    levels = sorted({0, 1, ties.levels})
    worlds: list[World] = [TieWorld(protocol, level, streams.child(f"level {level}")) for level in levels]
    rows = [audit_epsilon(subject_of(ties), worlds, local_epsilon(ties), effort=effort)]
    if protocol.unit == "undirected-tie" and ties.two_ended:
        both: list[World] = [
            TieWorld(protocol, level, streams.child(f"both {level}"), both_ends=True) for level in (0, ties.levels)
        ]
        ends = effort.scaled(4)
        rows.append(audit_epsilon(subject_of(ties), both, 2 * local_epsilon(ties), effort=ends, quantity="both ends"))
    if ties.form in ("verification-list", "binary-list", "pair-bits") and hasattr(ties, "flip"):
        rows += audit_channel(protocol, streams, effort.pilot)
    return rows


def audit_channel(protocol: Protocol, streams: Streams, count: int) -> list[AuditRow]:
    """Bias and variance of the debiased level (t - q s)/(p - q), s the sum of all symbols, p = 1 - kappa q."""
    ties: Any = protocol.ties
    symbols, other = np.arange(ties.levels + 1), ties.flip
    keep = 1 - ties.levels * other
    means, squares = [], []
    for level in sorted({0, 1, ties.levels}):
        world = TieWorld(protocol, level, streams.child(f"channel {level}"))
        estimates = (world.draw(count)[0][:, 0] - other * symbols.sum()) / (keep - other)
        mean, square = Moments(), Moments()
        mean.add(estimates)
        square.add((estimates - level) ** 2)
        chances = np.where(symbols == level, keep, other)
        spread = (chances * symbols**2).sum() - (chances * symbols).sum() ** 2
        reach = max(level, ties.levels - level) / (keep - other)
        means.append(Expected(f"level {level}", level, mean, reach))
        squares.append(Expected(f"level {level}", spread / (keep - other) ** 2, square, reach**2))
    subject = subject_of(ties)
    return [compare(subject, "bias", means, False), compare(subject, "variance", squares, True)]


def audit_memoized_ties(
    protocol: Protocol, streams: Streams, effort: Effort | None = None, rounds: int = 3
) -> list[AuditRow]:
    """One answer for an entry that stays: `rounds` reports together must not show more than one of them."""
    ties = protocol.ties
    if exempt(ties) is not None:
        return []
    worlds: list[World] = [
        TieWorld(protocol, level, streams.child(f"memo {level}"), (level,) * rounds) for level in (0, ties.levels)
    ]
    effort = (effort or Effort()).scaled(12)
    name = f"epsilon, {rounds} rounds memoized"
    return [audit_epsilon(subject_of(ties), worlds, local_epsilon(ties), effort=effort, quantity=name)]


def changes(world: TieWorld, count: int) -> int:
    """In how many of `count` histories of two rounds anything reported differs between the rounds."""
    columns = np.hstack(world.draw(count))
    half = columns.shape[1] // 2
    return int((columns[:, :half] != columns[:, half:]).any(axis=1).sum())
