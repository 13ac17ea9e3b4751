"""What an attack is made of: five families of strategies, the `View` they decide from, and the attacker group.

An attack is feature strategy x target strategy x tie strategy x claim strategy (with its channel) x timing. Each is
one component with one verb, and each decides from a `View` alone: the public protocol, the coalition itself, and
what the scenario grants under `knowledge`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator
from scipy import sparse

from agents.protocol import Feedback, Protocol
from sim.kernel.component import FAMILIES, Component, Section
from sim.kernel.randomness import Streams

Knowledge = Literal["protocol", "degrees", "feedback", "labels", "graph"]
Channel = Literal["compliant", "bypass", "camouflage"]


class KnowledgeError(PermissionError):
    """A strategy asked for something that its group was not granted. The message names the grant."""


@dataclass(frozen=True)
class Granted:
    """Honest data that the scenario hands to a coalition; None is everything that was not granted."""

    degrees: np.ndarray | None = None  # (n,) true degree of each honest user
    labels: np.ndarray | None = None  # (N,) class of each user, -1 for those who have none
    graph: sparse.csr_array | None = None  # (N, N) or (n, n) true ties, symmetric


@dataclass(frozen=True)
class Entries:
    """Ties that the coalition is about to ask for or to claim: parallel arrays, one item an entry.

    `rows` are positions within the coalition, `ids` the user on the other end, `fellow` whether that user belongs to
    the coalition, `levels` the trust level that the list will hold (0: asked for, but not claimed), and `earned` the
    level to which earlier good behaviour has lifted the victim's own rating (0: not at all).
    """

    rows: np.ndarray  # (k,) int64
    ids: np.ndarray  # (k,) int64
    fellow: np.ndarray  # (k,) bool
    levels: np.ndarray  # (k,) int8
    earned: np.ndarray  # (k,) int8

    @classmethod
    def of(cls, rows: np.ndarray, ids: np.ndarray, fellow: np.ndarray) -> Entries:
        """Entries without any level yet."""
        none = np.zeros(len(rows), dtype=np.int8)
        return cls(rows.astype(np.int64), ids.astype(np.int64), fellow.astype(bool), none, none)

    def at(self, levels: np.ndarray | int, earned: np.ndarray | int = 0) -> Entries:
        """The same entries with these levels (one for all, or one each)."""
        k = len(self.rows)
        return Entries(
            self.rows,
            self.ids,
            self.fellow,
            np.broadcast_to(np.asarray(levels), k).astype(np.int8),
            np.broadcast_to(np.asarray(earned), k).astype(np.int8),
        )

    def take(self, which: np.ndarray) -> Entries:
        """Some of the entries (an index array or a mask)."""
        return Entries(self.rows[which], self.ids[which], self.fellow[which], self.levels[which], self.earned[which])


@dataclass(frozen=True)
class Past:
    """What the coalition intended in an earlier round."""

    round: int
    lists: sparse.csr_array  # (members, N) int8 intended levels
    asked: tuple[np.ndarray, np.ndarray]  # (member ids, target ids)


@dataclass(frozen=True)
class View:
    """All that a strategy may know when it decides: public facts, its own coalition, and explicit grants.

    `others` are the ids of everybody outside the coalition in a random order of the coalition's own, honest users and
    other coalitions alike. No honest user's features, labels or ties can be reached from here, nor the run's seed:
    `streams` is the coalition's private randomness.
    """

    protocol: Protocol
    round: int
    epoch: int  # perturbation epoch of the round call: 0 throughout when honest noise is memoized
    members: np.ndarray  # (members,) stable ids, ascending
    others: np.ndarray  # (N - members,) stable ids
    streams: Streams
    history: tuple[Past, ...] = ()
    knowledge: frozenset[str] = frozenset({"protocol"})
    _granted: Granted = field(default_factory=Granted, repr=False)
    _feedback: tuple[Mapping[int, Feedback], ...] = field(default=(), repr=False)

    @property
    def size(self) -> int:
        """Number of members of the coalition."""
        return len(self.members)

    @property
    def mean_degree(self) -> float:
        """The published mean degree."""
        return self.protocol.mean_degree

    @property
    def levels(self) -> int:
        """kappa: the largest level that a list entry may hold."""
        return self.protocol.ties.levels

    def random(self, purpose: str, epoch: int = 0) -> np.random.Generator:
        """The coalition's own stream for `purpose`: the same numbers in every round, unless `epoch` changes."""
        return self.streams.generator(purpose, epoch=epoch)

    def degrees(self) -> np.ndarray:
        """(n,) true degrees of honest users 0..n-1. Raises KnowledgeError without the grant `degrees`."""
        return self._open("degrees", self._granted.degrees)

    def labels(self) -> np.ndarray:
        """(N,) classes, -1 where a user has none. Raises KnowledgeError without the grant `labels`."""
        return self._open("labels", self._granted.labels)

    def graph(self) -> sparse.csr_array:
        """The true ties, symmetric. Raises KnowledgeError without the grant `graph`."""
        return self._open("graph", self._granted.graph)

    def feedback(self, ago: int = 0) -> Mapping[int, Feedback]:
        """What each member learnt after a round that is over: the last one, or `ago` rounds before it; empty if there
        was none. Raises KnowledgeError without the grant `feedback`."""
        rounds: tuple[Mapping[int, Feedback], ...] = self._open("feedback", self._feedback)
        return rounds[-1 - ago] if ago < len(rounds) else {}

    def features(self) -> np.ndarray:
        """Always raises KnowledgeError: no grant opens another user's features."""
        raise KnowledgeError("this attack asks for other users' features; no `knowledge` grant opens those")

    def _open(self, grant: str, value: Any) -> Any:
        if grant not in self.knowledge:
            held = ", ".join(sorted(self.knowledge))
            raise KnowledgeError(
                f"this attack asks for {grant!r} but holds only {held}; add {grant!r} to its `knowledge`"
            )
        if value is None:
            raise KnowledgeError(f"{grant!r} is granted, but this run has nothing to give under that name")
        return value


class Strategy(Component):
    """Base of the five families. `needs` lists the knowledge without which a kind cannot decide."""

    needs: ClassVar[tuple[Knowledge, ...]] = ()


class FeatureStrategy(Strategy, family="attack.features", home="agents.strategies.features"):
    """What the members report as their features."""

    default_kind: ClassVar[str] = "extreme"

    @abstractmethod
    def craft(self, view: View) -> sparse.csr_array:
        """(members, d) float32 reports in the mechanism's output domain, sorted indices."""


class TargetStrategy(Strategy, family="attack.targets", home="agents.strategies.targets"):
    """Whom outside the coalition the members ask for ties."""

    default_kind: ClassVar[str] = "cyclic"

    def links(self, view: View) -> int:
        """How many targets a member may have at most."""
        return getattr(self, "per_attacker", 1)

    @abstractmethod
    def choose(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """(positions within the coalition, target ids): parallel arrays, one item a tie asked for; no pair twice.
        Must not depend on the round: a victim answers an attacker once."""


class TieStrategy(Strategy, family="attack.ties", home="agents.strategies.ties"):
    """Which members are tied to each other."""

    default_kind: ClassVar[str] = "degree-preserving"

    @abstractmethod
    def connect(self, view: View, targets_per_member: float) -> tuple[np.ndarray, np.ndarray]:
        """(i, j) with i < j: positions within the coalition, each pair once."""


class ClaimStrategy(Strategy, family="attack.claims", home="agents.strategies.claims"):
    """Which trust levels the members claim, and the channel by which the claims leave.

    `channel` is `compliant` (randomized response runs on the claims), `bypass` (claims are sent verbatim), or
    `camouflage` (verbatim, plus exactly as many spurious entries as randomized response would be expected to make,
    aimed first at the other members' victims, at the highest level or, with `spurious: uniform`, at levels drawn
    evenly).
    """

    default_kind: ClassVar[str] = "maximal"

    channel: Channel = "compliant"
    """Whether claims go through the randomization, around it, or around it with made-up noise."""
    spurious: Literal["maximal", "uniform"] = "maximal"
    """Levels of the made-up entries of `camouflage`."""

    @abstractmethod
    def rate(self, view: View, entries: Entries) -> Entries:
        """The claims: `entries` with their levels. An entry left out is neither asked for nor claimed; one of level 0
        is asked for and not claimed; an entry added is claimed."""


class TimingStrategy(Strategy, family="attack.timing", home="agents.strategies.timing"):
    """When the members attack. While idle they are `silent`, or `harmless`: an ordinary report without any tie."""

    default_kind: ClassVar[str] = "always"

    idle: Literal["silent", "harmless"] = "silent"
    """What a member does while it does not attack."""

    @abstractmethod
    def attacking(self, view: View) -> np.ndarray:
        """(members,) bool: who attacks in this round."""

    def leaving(self, view: View) -> np.ndarray:
        """(members,) bool: who abandons its identity and wants a new one."""
        return np.zeros(view.size, dtype=bool)


def _default(family: str, kind: str, **fields: Any) -> Any:
    return FAMILIES[family].resolve(kind)(**fields)


def _by_default(family: str, kind: str, **fields: Any) -> Callable[[], Any]:
    return partial(_default, family, kind, **fields)


class AttackerGroup(Section):
    """One coalition: how many injected users it has, and what they do. The defaults are Devil's Hand.

    Size: `share` of the number of honest users (the injection rate r*), or `count`; a share of 0.01 if neither is
    given. `labels: random` makes the server believe that the members have labels (drawn evenly).
    """

    name: str = Field("attackers", min_length=1)
    """Names the group in `groups.csv` and `agents.parquet`."""
    share: float | None = Field(None, ge=0, le=1)
    """Members, as a share of the number of honest users; 0.01 if `count` is not given either."""
    count: int | None = Field(None, ge=0)
    """Members, as a number."""
    features: FeatureStrategy = Field(default_factory=_by_default("attack.features", "extreme"))
    """What the members report as their features."""
    targets: TargetStrategy = Field(default_factory=_by_default("attack.targets", "cyclic", per_attacker=12))
    """Whom they ask for ties."""
    ties: TieStrategy = Field(default_factory=_by_default("attack.ties", "degree-preserving"))
    """Which members are tied to each other."""
    claims: ClaimStrategy = Field(default_factory=_by_default("attack.claims", "maximal"))
    """Which levels they claim, and by which channel."""
    timing: TimingStrategy = Field(default_factory=_by_default("attack.timing", "always"))
    """When they attack."""
    knowledge: list[Knowledge] = ["protocol"]
    """What they may know beyond the public protocol."""
    labels: Literal["none", "random"] = "none"
    """Whether the server takes them for labelled users."""

    @model_validator(mode="before")
    @classmethod
    def _fill_size(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("share") is None and data.get("count") is None:
            return {**data, "share": 0.01}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.share is not None and self.count is not None:
            raise ValueError(f"found both share: {self.share} and count: {self.count}; allowed: one of the two")
        if "protocol" not in self.knowledge:
            raise ValueError(
                "knowledge lacks 'protocol'; allowed: 'protocol' and, if wanted, more (without the protocol no "
                "report can be made)"
            )
        for name in ("features", "targets", "ties", "claims", "timing"):
            part: Strategy = getattr(self, name)
            missing = [grant for grant in part.needs if grant not in self.knowledge]
            if missing:
                raise ValueError(
                    f"{name} kind {part.kind!r} needs the grant {', '.join(map(repr, missing))}; add it to "
                    f"`knowledge` (allowed: {', '.join(get_args(Knowledge))})"
                )
        return self

    def size(self, honest: int) -> int:
        """Number of members among `honest` honest users."""
        return self.count if self.count is not None else round((self.share or 0.0) * honest)
