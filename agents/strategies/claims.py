"""Which trust levels attackers claim about victims and about each other."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.strategies.base import ClaimStrategy, Entries, Knowledge, View


def pair_uniforms(view: View, purpose: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(k,) numbers in [0, 1), each a function of the coalition's secret, `purpose` and the ordered pair alone, so
    that a pair keeps its number whoever else takes part (finaliser of SplitMix64)."""
    word = first.astype(np.uint64) << np.uint64(32) | second.astype(np.uint64)
    with np.errstate(over="ignore"):
        for key in view.streams.key(purpose):
            word = word + key
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            word ^= word >> np.uint64(31)
    return (word >> np.uint64(11)) * 2.0**-53


def pair_levels(view: View, entries: Entries, lowest: int = 1) -> np.ndarray:
    """(k,) a level of lowest..kappa for each pair, the same seen from both ends and in every round."""
    own = view.members[entries.rows]
    drawn = pair_uniforms(view, "claims/levels", np.minimum(own, entries.ids), np.maximum(own, entries.ids))
    lowest = min(lowest, view.levels)
    return lowest + np.floor(drawn * (view.levels - lowest + 1)).astype(np.int64)


class Maximal(ClaimStrategy, kind="maximal"):
    """The highest level about every target and every tied fellow."""

    source: ClassVar[str] = "Veritas, the attacker of Proposition 2"

    def rate(self, view: View, entries: Entries) -> Entries:
        return entries.at(view.levels)


class LevelMatch(ClaimStrategy, kind="level-match"):
    """The level at which a vigilant victim acknowledges a stranger, so that the two ends agree."""

    source: ClassVar[str] = "evasion of the printed score, ours"
    level: int = Field(1, ge=1)

    def rate(self, view: View, entries: Entries) -> Entries:
        return entries.at(min(self.level, view.levels))


class Minimal(ClaimStrategy, kind="minimal"):
    """One non-zero entry, about the first target; every target is asked for all the same."""

    source: ClassVar[str] = "evasion of the printed score, ours"
    level: int = Field(1, ge=1)

    def rate(self, view: View, entries: Entries) -> Entries:
        outside = np.flatnonzero(~entries.fellow)
        _, first = np.unique(entries.rows[outside], return_index=True)
        levels = np.zeros(len(entries.rows), dtype=np.int64)
        levels[outside[first]] = min(self.level, view.levels)
        return entries.at(levels)


class HonestLike(ClaimStrategy, kind="honest-like"):
    """Levels as two honest users would hold them: even over 1..kappa, shared by both ends, each end off by one at
    times.

    An end moves by one, up or down, with probability `jitter`.
    """

    source: ClassVar[str] = "the correlated trust model of honest users"
    jitter: float = Field(0.2, ge=0, le=1)

    def rate(self, view: View, entries: Entries) -> Entries:
        own = view.members[entries.rows]
        moved = pair_uniforms(view, "claims/jitter", own, entries.ids)
        step = np.where(moved < self.jitter / 2, -1, np.where(moved < self.jitter, 1, 0))
        return entries.at(np.clip(pair_levels(view, entries) + step, 1, view.levels))


class Framing(ClaimStrategy, kind="framing"):
    """Win the victims' trust first, then rate them low, so that the victims look like over-claimers.

    For `camouflage_rounds` rounds a member rates each victim generously, and by the last of them it has earned a
    level of 3..kappa in return; from then on it rates the victim `low`. With 0 rounds the camouflage took place
    before the run. Fellows rate each other highest throughout.
    """

    source: ClassVar[str] = "slander of honest users, as in reputation systems; ours"
    camouflage_rounds: int = Field(1, ge=0)
    low: int = Field(1, ge=0)

    def rate(self, view: View, entries: Entries) -> Entries:
        goal = pair_levels(view, entries, lowest=3)
        phase = min(view.round, self.camouflage_rounds)
        earned = -(-goal * phase // self.camouflage_rounds) if self.camouflage_rounds else goal
        friendly = view.round <= self.camouflage_rounds
        towards_victims = earned if friendly else np.full(len(goal), min(self.low, view.levels))
        levels = np.where(entries.fellow, view.levels, towards_victims)
        return entries.at(levels, np.where(entries.fellow, 0, earned))


class Collusive(ClaimStrategy, kind="collusive"):
    """The highest level about every member of the coalition, tied or not, so that agreement inside hides what is
    claimed outside.

    `level` is what victims are rated; the highest when omitted.
    """

    source: ClassVar[str] = "dilution by mutual praise, as in reputation systems; ours"
    level: int | None = Field(None, ge=0)

    def rate(self, view: View, entries: Entries) -> Entries:
        outside = entries.take(~entries.fellow)
        rows, columns = np.nonzero(~np.eye(view.size, dtype=bool))
        claimed = view.levels if self.level is None else min(self.level, view.levels)
        return Entries.of(
            np.concatenate([outside.rows, rows]),
            np.concatenate([outside.ids, view.members[columns]]),
            np.repeat([False, True], [len(outside.rows), len(rows)]),
        ).at(np.repeat([claimed, view.levels], [len(outside.rows), len(rows)]))


class Adaptive(ClaimStrategy, kind="adaptive"):
    """Learns from the coalition's pooled feedback which level to claim, and about how many of its targets.

    An epsilon-greedy bandit over at most nine arms: levels 1, the middle and kappa, times a quarter, a half and all of
    a member's targets. In the first round the members spread evenly over the arms; later each takes the arm with the
    best mean reward so far (an untried one first), or with probability `explore` any arm. A member's reward for a round
    is the number of targets with which a tie was published, or -`penalty` if it is flagged. It never asks for more than
    the target strategy gives.
    """

    needs: ClassVar[tuple[Knowledge, ...]] = ("feedback",)
    source: ClassVar[str] = "epsilon-greedy bandit, Sutton and Barto; ours"
    explore: float = Field(0.2, ge=0, le=1)
    penalty: float = Field(1.0, ge=0)

    def arms(self, levels: int) -> list[tuple[int, float]]:
        """(level, share of the targets) of each arm."""
        return [(level, share) for level in sorted({1, (levels + 1) // 2, levels}) for share in (0.25, 0.5, 1.0)]

    def rate(self, view: View, entries: Entries) -> Entries:
        chosen = [self.arms(view.levels)[arm] for arm in self.choose(view)]
        level, share = (np.array(part) for part in zip(*chosen)) if chosen else (np.zeros(0), np.zeros(0))
        outside = np.flatnonzero(~entries.fellow)
        targets = np.bincount(entries.rows[outside], minlength=view.size)
        order = outside[np.argsort(entries.rows[outside], kind="stable")]
        place = np.zeros(len(entries.rows), dtype=np.int64)  # of a target among its member's targets
        place[order] = np.arange(len(order)) - np.repeat(np.cumsum(targets) - targets, targets)
        kept = entries.take(entries.fellow | (place < np.ceil(share * targets)[entries.rows]))
        return kept.at(level[kept.rows])

    def choose(self, view: View) -> np.ndarray:
        """(members,) the arm of each member in this round, after going through all that was learnt before."""
        arms = len(self.arms(view.levels))
        tried, gained = np.zeros(arms), np.zeros(arms)
        for index, past in enumerate(view.history):
            chosen = self._pick(view, past.round, tried, gained)
            learnt = view.feedback(len(view.history) - 1 - index)
            askers, targets = past.asked
            for arm, member in zip(chosen, view.members.tolist()):
                mine = targets[askers == member]
                if member in learnt and len(mine):
                    tried[arm] += 1
                    published = np.isin(learnt[member].confirmed, mine).sum()
                    gained[arm] += -self.penalty if learnt[member].flagged else published
        return self._pick(view, view.round, tried, gained)

    def _pick(self, view: View, round: int, tried: np.ndarray, gained: np.ndarray) -> np.ndarray:
        random, arms = view.random("claims/bandit", epoch=round), len(tried)
        if not tried.any():
            return random.permutation(view.size) % arms
        mean = np.where(tried > 0, gained / np.maximum(tried, 1), np.inf)
        exploring = random.random(view.size) < self.explore
        return np.where(exploring, random.integers(0, arms, view.size), np.argmax(mean))
