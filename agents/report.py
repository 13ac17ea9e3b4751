"""What an agent sends: one `Report`, or many at once as the rows of a `ReportBatch`. Stable ids, already perturbed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Report:
    """One agent's message of one phase. Absent list entries are level 0; absent features are not sampled."""

    sender: int
    feature_indices: np.ndarray  # (k,) int32, ascending
    feature_values: np.ndarray  # (k,) float32, in the mechanism's output range
    tie_indices: np.ndarray  # (t,) int32, ascending ids
    tie_levels: np.ndarray  # (t,) int8, 1..levels
    numbers: np.ndarray  # (c,) float64: what else the phase asks for (a noisy degree, a degree vector)


@dataclass(frozen=True)
class ReportBatch:
    """Reports of many agents. Row r of each array belongs to `senders[r]`."""

    senders: np.ndarray  # (k,) int64 stable ids
    features: sparse.csr_array  # (k, d) float32, mechanism outputs; only sampled coordinates are stored
    lists: sparse.csr_array  # (k, n) int8 levels, sorted indices, no stored zeros
    numbers: np.ndarray  # (k, c) float64

    def row(self, position: int) -> Report:
        """The report at one position."""
        f, t = self.features, self.lists
        fs, ts = slice(*f.indptr[position : position + 2]), slice(*t.indptr[position : position + 2])
        return Report(
            int(self.senders[position]), f.indices[fs], f.data[fs], t.indices[ts], t.data[ts], self.numbers[position]
        )

    def take(self, positions: np.ndarray) -> ReportBatch:
        """The reports at several positions (an index array or a boolean mask)."""
        return ReportBatch(
            self.senders[positions], self.features[positions], self.lists[positions], self.numbers[positions]
        )

    def sizes(self) -> np.ndarray:
        """Bytes per report on the wire: 4 + 4 per feature, 4 + 1 per list entry, 8 per number, 8 for the sender."""
        return 8 + 8 * np.diff(self.features.indptr) + 5 * np.diff(self.lists.indptr) + 8 * self.numbers.shape[1]


def join(batches: list[ReportBatch]) -> ReportBatch:
    """One batch from several with the same widths, in ascending order of sender."""
    if len(batches) == 1:
        return batches[0]
    whole = ReportBatch(
        np.concatenate([b.senders for b in batches]),
        sparse.csr_array(sparse.vstack([b.features for b in batches], format="csr")),
        sparse.csr_array(sparse.vstack([b.lists for b in batches], format="csr")),
        np.concatenate([b.numbers for b in batches]),
    )
    return whole.take(np.argsort(whole.senders, kind="stable"))
