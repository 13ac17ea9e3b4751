"""The ledger: what every user has spent, by kind of data, over the rounds of a run.

A report is charged when it is made, delivered or not. Kinds and rounds compose sequentially (epsilons and deltas add).
Parallel composition is used in one place only: different entries of a list are different data, so in a unit of one
entry or one tie a user's tie budget is that of its most expensive entry, not a sum over entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from agents.privacy.distinct import DistinctLevels, DistinctNames
from agents.privacy.ties.memo import row_epochs
from sim.kernel.errors import InputError

if TYPE_CHECKING:
    from agents.population import Population
    from agents.protocol import Protocol, RoundCall


@dataclass(frozen=True)
class Totals:
    """Budget spent so far, (participants,) float64 each; 0 for injected users, who have no private data."""

    epsilon_features: np.ndarray
    epsilon_ties: np.ndarray  # in the scenario's unit
    epsilon_labels: np.ndarray
    delta: np.ndarray

    @property
    def epsilon(self) -> np.ndarray:
        """Features, ties and labels together."""
        return self.epsilon_features + self.epsilon_ties + self.epsilon_labels


class Ledger:
    """Accounts of all participants. `memoized` noise is charged per distinct value held, other noise per report.

    `unit` is what a tie epsilon is about: `list-entry` (one entry of one list), `undirected-tie` (a tie, which sits in
    the lists of both ends: both ends' reports are charged, to a user who sent none as well), or `whole-list` (all
    entries of a list together).
    """

    def __init__(
        self, protocol: Protocol, participants: int, rounds: int, memoized: bool, label_epsilon: float = 0.0,
        lifetime_epsilon: float | None = None,
    ) -> None:  # fmt: skip
        self.protocol, self.participants, self.memoized = protocol, participants, memoized
        self.label_epsilon = label_epsilon
        self._by_list = memoized and getattr(protocol.ties, "memoizes", "entry") == "list"
        self._by_entry = memoized and not self._by_list and protocol.ties.curator == "none"
        self._features = DistinctNames(participants)
        self._reports = np.zeros(participants, dtype=np.int64)
        self._phases = np.zeros((protocol.ties.phases, participants), dtype=np.int64)
        self._lists = [DistinctNames(participants) for _ in range(protocol.ties.phases)]
        self._entries = DistinctLevels(participants, participants, protocol.ties.levels)
        self._labelled = np.zeros(participants, dtype=bool)
        self._honest = 0  # how many users have something to lose; known from the first report on
        self.affordable = rounds if lifetime_epsilon is None else self._affordable(rounds, lifetime_epsilon)

    @classmethod
    def open(cls, privacy: Any, protocol: Protocol, participants: int, rounds: int) -> Ledger:
        """The ledger of a run with the `privacy` section of its scenario. Raises InputError when a label alone costs
        more than the lifetime budget."""
        return cls(
            protocol, participants, rounds, privacy.across_rounds == "memoized", privacy.labels.spent(protocol.classes),
            privacy.lifetime_epsilon,
        )  # fmt: skip

    # Schedule -------------------------------------------------------------------------------------------------------

    def allowed(self, round: int) -> np.ndarray:
        """(participants,) bool: who reports in a round (1, 2, ...) under the lifetime budget.

        Everybody reports in the first `affordable` rounds and abstains afterwards. That number assumes the worst case
        (every round holds a new value of everything) and nothing that happens in a run, so abstaining tells nothing.
        """
        return np.full(self.participants, round <= self.affordable)

    def _affordable(self, rounds: int, lifetime: float) -> int:
        if self.label_epsilon > lifetime:
            raise InputError(
                f"privacy.lifetime_epsilon: found {lifetime:g}; allowed: at least {self.label_epsilon:g}, "
                "what one reported label costs"
            )
        features = self.protocol.features.spent(self.protocol.dimensions)[0]
        number = getattr(self.protocol.ties, "count_epsilon", 0.0)
        report = sum(self.protocol.ties.spent(phase) for phase in range(self.protocol.ties.phases))
        most = 0
        for r in range(1, rounds + 1):
            entry = (report - number) * (min(r, self.protocol.ties.levels + 1) if self._by_entry else r) + number * r
            cost = self.label_epsilon + r * features + self._ends() * entry
            if cost > lifetime * (1 + 1e-9):
                break
            most = r
        return most

    def _ends(self) -> int:
        """Reported entries that one unit of data is spread over."""
        if self.protocol.unit == "whole-list":
            return self.participants - 1
        return 2 if self.protocol.unit == "undirected-tie" and self.protocol.ties.two_ended else 1

    # Charges --------------------------------------------------------------------------------------------------------

    def charge(self, round: int, call: RoundCall, senders: np.ndarray, population: Population) -> None:
        """Charge the reports that `senders` (k,) make in one phase of a round. Injected users are skipped."""
        self._honest = population.size
        senders = np.asarray(senders)[np.asarray(senders) < population.size]
        if call.phase == 0:
            self._reports[senders] += 1
            if self.memoized:
                self._features.add(senders, population.digests()[senders])
        self._phases[call.phase, senders] += 1
        if not self.memoized or self.protocol.ties.form == "none":
            return
        lists = population.lists[senders]
        if self._by_list or getattr(self.protocol.ties, "count_epsilon", 0.0) > 0:
            asked = [np.asarray(call.broadcast[name], dtype=np.int64).ravel() for name in sorted(call.broadcast)]
            names = row_epochs(lists, call, np.concatenate(asked) if asked else None)
            self._lists[call.phase].add(senders, names)
        if self._by_entry and call.phase == 0:
            self._entries.add(senders, self._spoken(lists, senders))

    def charge_labels(self, senders: np.ndarray) -> None:
        """Charge the labels that `senders` (k,) report, once a run."""
        self._labelled[senders] = True

    def _spoken(self, lists: sparse.csr_array, senders: np.ndarray) -> sparse.csr_array:
        """The entries that these senders report themselves."""
        rows, columns = lists.nonzero()
        ours = self.protocol.ties.speaks_for(senders[rows], columns)
        return sparse.coo_array((lists.data[ours], (rows[ours], columns[ours])), shape=lists.shape).tocsr()

    @property
    def moved(self) -> bool:
        """Whether a memoized truth has changed between reports. The moment of the change is then visible, so the
        reports of several rounds together are not epsilon-LDP, however small each charge is."""
        # Phase 0 asks every round the same, so a second name there is another list; later phases may ask anew.
        names = (self._features, self._lists[0])
        return any(bool((held.count > 1).any()) for held in names) or self._entries.repeats().nnz > 0

    def notes(self) -> list[str]:
        """What a run has to say about its budgets, besides the numbers."""
        if not self.moved:
            return []
        return [
            "a memoized truth has moved, and the moment of the change is visible: over rounds the reports are not "
            "epsilon-LDP, whatever epsilon they are charged (privacy.across_rounds: fresh or split composes)"
        ]

    # Totals ---------------------------------------------------------------------------------------------------------

    def totals(self) -> Totals:
        """What everybody has spent so far."""
        epsilon, delta = self.protocol.features.spent(self.protocol.dimensions)
        times = self._features.count if self.memoized else self._reports
        ties = np.where(np.arange(self.participants) < self._honest, self._tie_totals(), 0.0)
        return Totals(times * epsilon, ties, self._labelled * self.label_epsilon, times * delta)

    def _tie_totals(self) -> np.ndarray:
        ties = self.protocol.ties
        number = getattr(ties, "count_epsilon", 0.0)
        costs = np.array([ties.spent(phase) for phase in range(ties.phases)])
        if self._by_list:
            base = costs @ np.array([held.count for held in self._lists])
        elif self._by_entry:
            base = (self._phases > 0).T @ costs + number * np.maximum(self._lists[0].count - 1, 0)
        else:
            base = costs @ self._phases
        return self._in_unit(base, (costs[0] - number) * self._entries.repeats())

    def _in_unit(self, base: np.ndarray, extra: Any) -> np.ndarray:
        """Spent per unit, from what every entry of a user costs (n,), and what changed entries cost besides (n, n)."""
        if self.protocol.unit == "whole-list":
            return base * (self.participants - 1) + extra.sum(axis=1)
        extra = extra.tocoo()
        rows, columns = extra.coords
        own = base.copy()
        np.maximum.at(own, rows, base[rows] + extra.data)
        if self.protocol.unit == "list-entry":
            return own
        partner = largest_of_others(base)
        if not self.protocol.ties.two_ended:
            total = np.maximum(own, partner)
            np.maximum.at(total, columns, base[rows] + extra.data)
            return total
        total = base + partner
        both = (extra + extra.T).tocoo()
        rows, columns = both.coords
        np.maximum.at(total, rows, base[rows] + base[columns] + both.data)
        return total

    # Life cycle -----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Picklable state, for a checkpoint."""
        return {
            "features": self._features.state(),
            "reports": self._reports.copy(),
            "phases": self._phases.copy(),
            "lists": [held.state() for held in self._lists],
            "entries": self._entries.state(),
            "labelled": self._labelled.copy(),
            "honest": self._honest,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self._features.restore(state["features"])
        self._reports, self._phases = state["reports"].copy(), state["phases"].copy()
        for held, part in zip(self._lists, state["lists"]):
            held.restore(part)
        self._entries.restore(state["entries"])
        self._labelled, self._honest = state["labelled"].copy(), state["honest"]


def largest_of_others(values: np.ndarray) -> np.ndarray:
    """(n,) the largest of the other values, for each; 0 when there is no other."""
    if len(values) < 2:
        return np.zeros_like(values)
    first = int(values.argmax())
    largest = np.full_like(values, values[first])
    largest[first] = np.delete(values, first).max()
    return largest
