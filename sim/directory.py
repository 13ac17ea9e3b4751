"""The public directory: server-side ids are a random permutation of the stable ones, so index order tells nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from agents.report import ReportBatch
from sim.kernel.randomness import Streams


@dataclass(frozen=True)
class Directory:
    """`public[i]` is the server-side id of stable id i, and `stable[p]` the way back."""

    public: np.ndarray
    stable: np.ndarray

    @classmethod
    def draw(cls, participants: int, streams: Streams) -> Directory:
        """A random permutation of all participants."""
        public = streams.generator("directory").permutation(participants)
        return cls(public, np.argsort(public))

    def translate(self, batch: ReportBatch) -> ReportBatch:
        """The same reports in server-side ids, in ascending order of sender."""
        lists = sparse.csr_array(
            (batch.lists.data, self.public[batch.lists.indices].astype(np.int32), batch.lists.indptr),
            shape=batch.lists.shape,
            copy=True,
        )
        lists.has_sorted_indices = False
        senders = self.public[batch.senders]
        order = np.argsort(senders)
        moved = ReportBatch(senders, batch.features, lists, batch.numbers).take(order)
        moved.lists.sort_indices()
        return moved

    def publish(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Arrays indexed by server-side id, re-indexed by stable id (others pass through)."""
        n = len(self.public)
        return {k: v[self.public] if v.ndim and len(v) == n else v for k, v in arrays.items()}
