"""Label propagation: a baseline that reads the graph and the known labels, and neither features nor weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def spread(normalised: Any, known: np.ndarray, restart: float) -> Iterator[np.ndarray]:
    """Class scores (n, classes) after 1, 2, ... steps of F <- (1 - restart) S F + restart Y (Zhou et al. 2004).

    `normalised` is S = D^-1/2 A D^-1/2 (sparse, float32); `known` is Y, zero rows where nothing is known. Nodes that no
    known label reaches get the mean of the known rows, so that they are predicted as the most frequent class.
    """
    scores = known.copy()
    prior = known.sum(axis=0) / max(1, int(np.any(known != 0, axis=1).sum()))
    while True:
        scores = (1 - restart) * (normalised @ scores) + restart * known
        unreached = ~np.any(scores != 0, axis=1)
        yield np.where(unreached[:, None], prior, scores)
