"""What the server holds after intake, and what its stages say about it. Server-side ids 0..n-1 throughout."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from agents.protocol import Protocol


@dataclass(frozen=True)
class Evidence:
    """The reports of one round, as rows of matrices; a user that sent nothing has an empty row and `reported` False.

    `lists[v, u]` is v's reported level about u (0..levels). `labels` is -1 where the server knows none; it knows those
    of `train` and `validation` nodes only.
    """

    protocol: Protocol
    reported: np.ndarray  # (n,) bool
    features: sparse.csr_array  # (n, d) float32, rectified: unbiased for (feature - neutral)
    lists: sparse.csr_array  # (n, n) int8, sorted indices, no stored zeros, empty diagonal
    numbers: list[np.ndarray]  # per phase: (n, c) float64, rows of silent users NaN
    labels: np.ndarray  # (n,) int64, -1 unknown
    train: np.ndarray  # (n,) bool
    validation: np.ndarray  # (n,) bool
    extra: dict[str, np.ndarray] = field(default_factory=dict)  # e.g. lists of earlier phases, published groups

    @property
    def n(self) -> int:
        """Number of registered users."""
        return self.lists.shape[0]

    @cached_property
    def pairs(self) -> MutualPairs:
        """The pairs in which both ends report a level above 0 (the AND set), found once."""
        from server.attestation import mutual_pairs

        return mutual_pairs(self.lists)


@dataclass(frozen=True)
class MutualPairs:
    """AND pairs u < v in row-major order: `x` = u's level about v, `y` = v's level about u."""

    u: np.ndarray  # (m,) int32
    v: np.ndarray  # (m,) int32
    x: np.ndarray  # (m,) int8, 1..levels
    y: np.ndarray  # (m,) int8, 1..levels


@dataclass(frozen=True)
class Suspicion:
    """A score per user (higher: more suspicious; NaN: nothing is known) and, where the score has a null, p-values."""

    score: np.ndarray  # (n,) float64
    p_value: np.ndarray | None = None  # (n,)
    details: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Structure:
    """The published graph: undirected pairs u < v, each once, with an optional weight in (0, inf).

    `u, v, weight` is what the GNN uses. `hard` (boolean over those pairs, default all) marks the method's hard edge
    set, which the structure columns count. `probability` is the estimated tie probability of each listed pair where the
    method has one. `summary` holds scalars the method predicts about itself, e.g. {"expected_f1": 0.87}; `notes` are
    sentences for the user.
    """

    u: np.ndarray
    v: np.ndarray
    weight: np.ndarray | None = None
    hard: np.ndarray | None = None
    probability: np.ndarray | None = None
    summary: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
