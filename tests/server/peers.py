"""Evidence for tests of the refinements that a world of verification lists does not serve."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from agents.privacy.features.none import PublicFeatures
from agents.privacy.ties import TieProtocol
from agents.protocol import Protocol
from server.evidence import Evidence


def evidence_of(
    lists: sparse.csr_array,
    ties: TieProtocol,
    numbers: list[np.ndarray] | None = None,
    features: sparse.csr_array | None = None,
    labels: np.ndarray | None = None,
    train: np.ndarray | None = None,
    validation: np.ndarray | None = None,
    reported: np.ndarray | None = None,
    extra: dict[str, np.ndarray] | None = None,
) -> Evidence:
    """The server's view of some lists of one protocol; public features, labels known on train and validation nodes."""
    n = lists.shape[0]
    nobody = np.zeros(n, bool)
    train = nobody if train is None else train
    validation = nobody if validation is None else validation
    classes = 1 if labels is None else int(labels.max()) + 1
    features = sparse.csr_array((n, 1), dtype=np.float32) if features is None else features
    protocol = Protocol(n, features.shape[1], classes, PublicFeatures(), ties, "undirected-tie", 1, 4.0)
    known = np.full(n, -1) if labels is None else np.where(train | validation, labels, -1)
    return Evidence(
        protocol,
        np.ones(n, bool) if reported is None else reported,
        features,
        sparse.csr_array(lists, dtype=np.int8),
        numbers or [],
        known,
        train,
        validation,
        extra or {},
    )
