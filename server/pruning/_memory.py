"""What a pruning rule remembers between rounds."""

from __future__ import annotations

import numpy as np

from server.pruning.base import Decision, PruningContext

FLAGGED = "flagged"


def settle(flagged: np.ndarray, gamma: float, context: PruningContext, permanent: bool) -> Decision:
    """The decision of a round: as found, or with everybody flagged in an earlier round of the run added."""
    if permanent:
        before = context.held.get(FLAGGED)
        if isinstance(before, np.ndarray):
            flagged = flagged.copy()
            flagged[: len(before)] |= before
        context.held[FLAGGED] = flagged.copy()
    return Decision(flagged, gamma)
