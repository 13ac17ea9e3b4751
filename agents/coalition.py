"""A coalition: one attacker group at work. It plans a round as a whole and makes its members' reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from agents.privacy.ties.base import no_lists, no_numbers
from agents.protocol import Feedback, RoundCall
from agents.report import ReportBatch, join
from agents.strategies.base import AttackerGroup, Entries, Granted, Past, View
from agents.strategies.channels import send
from agents.strategies.features import HonestLike, no_features
from sim.kernel.randomness import Streams

__all__ = ["Coalition", "Granted", "Plan"]

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Plan:
    """What a coalition intends in one round. Positions follow `members`; ids are stable ids."""

    group: str
    round: int
    members: np.ndarray  # (members,) ids, ascending
    active: np.ndarray  # (members,) bool: sends a report
    attacking: np.ndarray  # (members,) bool: does so as an attacker; active otherwise means harmless
    asked: Pairs  # (member ids, target ids): ties requested from outsiders in this round
    earned: np.ndarray  # (asked,) int8: level that good behaviour has earned with the target so far, 0 for none
    partners: Pairs  # ties inside the coalition: (id, id), smaller first
    lists: sparse.csr_array  # (members, N) int8: intended levels
    features: sparse.csr_array  # (members, d) float32: reports in the mechanism's output domain
    wants_new_identity: np.ndarray  # (members,) bool

    @property
    def victims(self) -> np.ndarray:
        """Ids of outsiders that somebody asks for a tie, ascending, each once."""
        return np.unique(self.asked[1])


class Coalition:
    """The members of one attacker group, deciding together.

    `members` are their stable ids, `streams` the randomness of the run's that is theirs. Plans are a function of the
    seed, the group's name, and what the coalition has intended and learnt in earlier rounds.
    """

    def __init__(
        self,
        spec: AttackerGroup,
        members: np.ndarray,
        streams: Streams,
        granted: Granted | None = None,
    ) -> None:
        self.spec = spec
        self.members = np.sort(np.asarray(members, dtype=np.int64))
        self.members.setflags(write=False)
        self.plan_in_force: Plan | None = None
        self._streams = streams
        self._secret = streams.child(f"attack/{spec.name}")
        self._granted = granted or Granted()
        self._history: list[Past] = []
        self._feedback: list[dict[int, Feedback]] = []

    def view(self, call: RoundCall) -> View:
        """What the strategies may know when they decide in this round."""
        everybody = self._secret.generator("others").permutation(call.protocol.participants)
        others = everybody[~np.isin(everybody, self.members)]
        others.setflags(write=False)
        knowledge = frozenset(self.spec.knowledge)
        held = self._granted
        return View(
            protocol=call.protocol,
            round=call.round,
            epoch=call.epoch,
            members=self.members,
            others=others,
            streams=self._secret,
            history=tuple(self._history),
            knowledge=knowledge,
            _granted=Granted(
                degrees=held.degrees if "degrees" in knowledge else None,
                labels=held.labels if "labels" in knowledge else None,
                graph=held.graph if "graph" in knowledge else None,
            ),
            _feedback=tuple(self._feedback) if "feedback" in knowledge else (),
        )

    def plan(self, call: RoundCall, feedback: Mapping[int, Feedback] | None = None) -> Plan:
        """Decide the round that `call` opens, once a round. `feedback` is what members learnt after the last round."""
        if self._history:
            own = set(self.members.tolist())
            self._feedback.append({member: learnt for member, learnt in (feedback or {}).items() if member in own})
        view = self.view(call)
        leaving = self._mask(self.spec.timing.leaving(view))
        attacking = self._mask(self.spec.timing.attacking(view)) & ~leaving
        harmless = ~attacking & ~leaving & (self.spec.timing.idle == "harmless")
        entries, partners = self._entries(view, attacking)
        outside = ~entries.fellow
        features = self.spec.features.craft(view)
        if harmless.any():
            features = _choose_rows(attacking, features, HonestLike().craft(view))
        made = Plan(
            group=self.spec.name,
            round=call.round,
            members=self.members,
            active=attacking | harmless,
            attacking=attacking,
            asked=(self.members[entries.rows[outside]], entries.ids[outside]),
            earned=entries.earned[outside],
            partners=partners,
            lists=self._lists(view, entries),
            features=features,
            wants_new_identity=leaving,
        )
        self._history.append(Past(call.round, made.lists, made.asked))
        self.plan_in_force = made
        return made

    def encode(self, plan: Plan, call: RoundCall, only: np.ndarray | None = None) -> ReportBatch:
        """The reports of the active members (of those in `only`, if given) for one phase, senders ascending."""
        wanted = plan.active if only is None else plan.active & np.isin(plan.members, only)
        attackers = self._encode(plan, call, np.flatnonzero(wanted & plan.attacking), attack=True)
        idle = np.flatnonzero(wanted & ~plan.attacking)
        return join([attackers, self._encode(plan, call, idle, attack=False)]) if len(idle) else attackers

    def state(self) -> dict[str, Any]:
        """What a resumed run needs: what the coalition intended and learnt so far."""
        return {"history": list(self._history), "feedback": list(self._feedback), "plan": self.plan_in_force}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the `state` of an equal coalition."""
        self._history, self._feedback = list(state["history"]), list(state["feedback"])
        self.plan_in_force = state["plan"]

    def _encode(self, plan: Plan, call: RoundCall, rows: np.ndarray, attack: bool) -> ReportBatch:
        senders, intended, ties = plan.members[rows], plan.lists[rows], call.protocol.ties
        features = plan.features[rows]
        if call.phase > 0:
            features = no_features(len(rows), features.shape[1])  # they travel in phase 0 only
        if ties.form == "none":
            return ReportBatch(senders, features, no_lists(*intended.shape), no_numbers(len(rows)))
        if attack:
            made = send(self.spec.claims, intended, senders, plan.victims, call, self._streams, self._secret)
        else:
            made = ties.encode(intended, senders, self._streams, call)
        return ReportBatch(senders, features, made.lists, made.numbers)

    def _mask(self, mask: np.ndarray) -> np.ndarray:
        mask = np.array(mask, dtype=bool)
        if mask.shape != self.members.shape:
            raise ValueError(f"timing of {self.spec.name!r}: found shape {mask.shape}; expected {self.members.shape}")
        return mask

    def _entries(self, view: View, attacking: np.ndarray) -> tuple[Entries, Pairs]:
        """The rated entries of those who attack, and the ties inside the coalition."""
        rows, ids = (np.asarray(part, dtype=np.int64) for part in self.spec.targets.choose(view))
        self._check_targets(view, rows, ids)
        i, j = (
            np.asarray(part, dtype=np.int64) for part in self.spec.ties.connect(view, len(rows) / max(view.size, 1))
        )
        together, asking = attacking[i] & attacking[j], attacking[rows]
        i, j, rows, ids = i[together], j[together], rows[asking], ids[asking]
        wanted = Entries.of(
            np.concatenate([rows, i, j]),
            np.concatenate([ids, self.members[j], self.members[i]]),
            np.repeat([False, True], [len(rows), 2 * len(i)]),
        )
        rated = self.spec.claims.rate(view, wanted)
        awake = attacking[rated.rows]
        awake[rated.fellow] &= attacking[np.searchsorted(self.members, rated.ids[rated.fellow])]
        rated = rated.take(awake)
        rated = rated.at(np.clip(rated.levels, 0, view.levels), np.clip(rated.earned, 0, view.levels))
        return rated, self._inside(rated, i, j)

    def _inside(self, rated: Entries, i: np.ndarray, j: np.ndarray) -> Pairs:
        """Ties inside the coalition: those that the tie strategy made, and those that both ends claim."""
        shape = (len(self.members), len(self.members))
        claimed = rated.take(rated.fellow & (rated.levels > 0))
        columns = np.searchsorted(self.members, claimed.ids)
        one_way = sparse.csr_array((np.ones(len(columns)), (claimed.rows, columns)), shape=shape)
        made = sparse.csr_array((np.ones(len(i)), (i, j)), shape=shape)
        first, second = sparse.triu(one_way.multiply(one_way.T) + made, k=1).tocoo().coords
        order = np.lexsort((second, first))
        return self.members[first[order]], self.members[second[order]]

    def _check_targets(self, view: View, rows: np.ndarray, ids: np.ndarray) -> None:
        where = f"targets of {self.spec.name!r}"
        if rows.shape != ids.shape or rows.ndim != 1:
            raise ValueError(f"{where}: found shapes {rows.shape} and {ids.shape}; expected two arrays of one length")
        if len(rows) and (rows.min() < 0 or rows.max() >= view.size):
            raise ValueError(f"{where}: found members {rows.min()} to {rows.max()}; expected 0..{view.size - 1}")
        if not np.isin(ids, view.others).all():
            raise ValueError(f"{where}: found ids that nobody outside the coalition has")
        if len(np.unique(rows * view.protocol.participants + ids)) < len(ids):
            raise ValueError(f"{where}: a member asks the same target twice")

    def _lists(self, view: View, entries: Entries) -> sparse.csr_array:
        claimed = entries.take(entries.levels > 0)
        shape = (view.size, view.protocol.participants)
        lists = sparse.csr_array((claimed.levels, (claimed.rows, claimed.ids)), shape=shape)
        if lists.nnz < len(claimed.rows) or (claimed.ids == self.members[claimed.rows]).any():
            raise ValueError(f"claims of {self.spec.name!r}: an entry is rated twice, or a member rates itself")
        lists.sort_indices()
        return lists


def _choose_rows(first: np.ndarray, yes: sparse.csr_array, no: sparse.csr_array) -> sparse.csr_array:
    """Rows of `yes` where `first`, rows of `no` elsewhere."""
    both = sparse.csr_array(sparse.vstack([yes, no], format="csr"))
    return both[np.where(first, np.arange(len(first)), np.arange(len(first)) + len(first))]
