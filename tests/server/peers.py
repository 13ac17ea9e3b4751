"""Evidence for tests of the refinements that a world of verification lists does not serve."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from agents.privacy.features.none import PublicFeatures
from agents.privacy.ties import TieProtocol
from agents.privacy.ties.pair_bits import PairBits
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


def world(n=150, epsilon=2.0, seed=0, classes=3):
    """Evidence about a homophilous graph with telling features, the true adjacency, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    truth = np.triu(rng.random((n, n)) < np.where(labels[:, None] == labels, 0.06, 0.004), 1)
    bits = np.triu(truth ^ (rng.random((n, n)) < 1 / (1 + np.exp(epsilon))), 1)
    words = rng.random((n, 40)) < np.where(np.arange(40) % classes == labels[:, None], 0.3, 0.08)
    words[:, 0] |= ~words.any(axis=1)
    part = rng.permutation(n)
    train, validation = np.isin(np.arange(n), part[: n // 2]), np.isin(np.arange(n), part[n // 2 : 3 * n // 4])
    given = evidence_of(
        sparse.csr_array(bits.astype(np.int8)),
        PairBits(epsilon=epsilon),
        features=sparse.csr_array(words.astype(np.float32)),
        labels=labels,
        train=train,
        validation=validation,
    )
    return given, truth | truth.T, labels


def everyone(given):
    return np.ones(given.n, bool)
