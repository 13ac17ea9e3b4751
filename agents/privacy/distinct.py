"""Counting the distinct values that agents have held: what memoized noise is charged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


class DistinctNames:
    """How many distinct values each agent has held of one thing, each value named by 64 bits."""

    def __init__(self, agents: int) -> None:
        self.count = np.zeros(agents, dtype=np.int64)
        self._first = np.zeros(agents, dtype=np.uint64)
        self._more: set[tuple[int, int]] = set()

    def add(self, agents: np.ndarray, names: np.ndarray) -> None:
        """Agents (k,) hold the values `names` (k,) uint64 now; each agent at most once a call."""
        new = self.count[agents] == 0
        self._first[agents[new]] = names[new]
        self.count[agents[new]] = 1
        for pair in zip(*(side[names != self._first[agents]].tolist() for side in (agents, names))):
            if pair not in self._more:
                self._more.add(pair)
                self.count[pair[0]] += 1

    def state(self) -> dict[str, Any]:
        """Picklable state."""
        return {"count": self.count, "first": self._first, "more": self._more}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self.count, self._first, self._more = state["count"].copy(), state["first"].copy(), set(state["more"])


class DistinctLevels:
    """How many distinct levels each list entry has held, keeping only the entries that ever changed."""

    def __init__(self, rows: int, columns: int, levels: int) -> None:
        self.reported = np.zeros(rows, dtype=bool)
        self._shape, self._levels = (rows, columns), levels
        self._held: Any = sparse.csr_array((rows, columns), dtype=np.int8)
        self._codes = np.zeros(0, dtype=np.int64)  # sorted (entry, level) pairs of the entries that changed

    def add(self, agents: np.ndarray, lists: sparse.csr_array) -> None:
        """Agents (k,) report with the true lists (k, columns) now; levels above `levels` count as `levels`."""
        lists = sparse.csr_array(
            (np.minimum(lists.data, self._levels), lists.indices, lists.indptr), shape=lists.shape, dtype=np.int8
        )
        known = np.flatnonzero(self.reported[agents])
        before, now = self._held[agents[known]], lists[known]
        position, columns = (before != now).nonzero()
        if len(position):
            entries = agents[known][position] * self._shape[1] + columns
            levels = np.concatenate([np.asarray(held[position, columns]) for held in (before, now)])
            codes = np.tile(entries, 2) * (self._levels + 1) + levels
            self._codes = np.union1d(self._codes, codes)
        order = np.arange(self._shape[0])
        order[agents] = self._shape[0] + np.arange(len(agents))
        self._held = sparse.vstack([self._held, lists], format="csr")[order]
        self.reported[agents] = True

    def repeats(self) -> sparse.csr_array:
        """(rows, columns) int64: the number of distinct levels an entry has held, less one."""
        entries, counts = np.unique(self._codes // (self._levels + 1), return_counts=True)
        rows, columns = np.divmod(entries, self._shape[1])
        return sparse.coo_array((counts - 1, (rows, columns)), shape=self._shape).tocsr()

    def state(self) -> dict[str, Any]:
        """Picklable state."""
        return {"reported": self.reported, "held": self._held, "codes": self._codes}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self.reported, self._held, self._codes = state["reported"].copy(), state["held"], state["codes"]
