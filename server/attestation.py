"""Attestation: which ties both ends report, and how far their levels agree (Veritas, section on Stage II, Eq. 13)."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from scipy import sparse

from server.evidence import Evidence, MutualPairs
from sim.kernel.component import Section

PENALTY = "asymmetry_penalty"
"""Key of `Evidence.extra` under which the pipeline hands the penalty to refinements (an array without dimensions)."""


class Attestation(Section):
    """How ties are attested from both ends."""

    asymmetry_penalty: float = Field(default=1.0, gt=0)
    """lambda of Eq. 13: how fast confidence falls with the difference of the two levels."""


def mutual_pairs(lists: sparse.csr_array) -> MutualPairs:
    """The pairs in which both ends report a level above 0 (the AND set), in time linear in the list entries.

    `lists` is (n, n) int8 with sorted indices, no stored zeros and an empty diagonal. The pairs come as u < v in
    row-major order.
    """
    from server._attestation import intersect

    return MutualPairs(*intersect(lists.indptr, lists.indices, lists.data))


def confidence(pairs: MutualPairs, levels: int, asymmetry_penalty: float = 1.0) -> np.ndarray:
    """Edge confidence c_uv in (0, 1] of each mutual pair (Veritas, Eq. 13; every other pair has confidence 0).

    c = min(x, y) / kappa * exp(-lambda |x - y|), with x and y the two reported levels, kappa = `levels` and lambda =
    `asymmetry_penalty`. The factor that asks both ends for a non-zero level is 1 on mutual pairs.
    """
    x, y = pairs.x.astype(np.float64), pairs.y.astype(np.float64)
    return np.minimum(x, y) / levels * np.exp(-asymmetry_penalty * np.abs(x - y))


def penalty_of(evidence: Evidence) -> float:
    """The asymmetry penalty of this run, or the default when the pipeline set none."""
    return float(evidence.extra.get(PENALTY, Attestation.model_fields["asymmetry_penalty"].default))


def pairs_within(pairs: MutualPairs, users: np.ndarray) -> MutualPairs:
    """The pairs whose two ends are both in the boolean mask `users`."""
    inside = users[pairs.u] & users[pairs.v]
    return MutualPairs(pairs.u[inside], pairs.v[inside], pairs.x[inside], pairs.y[inside])
