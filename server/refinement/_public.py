"""What public features and training labels say about pairs of users, and graphs made of nothing else.

Users are worked on in an order made from their public features, not from their ids, so relabelling the users relabels
the result and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from server.evidence import Evidence, Structure
from sim.kernel.errors import SettingError
from sim.kernel.randomness import Streams

TILE = 1024
"""Columns of a tile of pairs."""


@dataclass
class PublicView:
    """The kept users as rows 0..m-1, in an order made from their features."""

    users: np.ndarray  # (m,) server ids
    rows: sparse.csr_array  # (m, F) float32: tf-idf rows of unit length
    labels: np.ndarray  # (m,) int64, -1 where unknown
    train: np.ndarray  # (m,) bool
    validation: np.ndarray  # (m,) bool
    folds: np.ndarray  # (m,) int64: fold of a training node, -1 for others
    classes: int
    held_bytes: int = 1 << 30  # keep the tiles in memory up to this size; recompute them beyond it
    _held: list[tuple[int, np.ndarray]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """m: number of users."""
        return len(self.users)

    @cached_property
    def first_round(self) -> np.ndarray:
        """(m, classes) class probabilities from the user's own features; out of fold for training nodes."""
        return class_probabilities(self.rows.astype(np.float64), self, strength=10.0)

    def columns(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first column, (F, width) dense transposed rows) of each tile."""
        for first in range(0, self.size, TILE):
            yield first, np.ascontiguousarray(self.rows[first : first + TILE].toarray().T)

    def tiles(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first column, (m - first, width) uint16 cosine codes) of each tile: see `_feature_kernels`."""
        from server.refinement._feature_kernels import cosine_tile

        if self._held:
            yield from self._held
            return
        keep, made = self.size**2 <= self.held_bytes, []
        for first, wide in self.columns():
            tile = np.empty((self.size - first, wide.shape[1]), dtype=np.uint16)
            cosine_tile(self.rows.indptr, self.rows.indices, self.rows.data, wide, first, tile)
            if keep:
                made.append((first, tile))
            yield first, tile
        self._held = made


def public_view(evidence: Evidence, kept: np.ndarray, folds: int = 5) -> PublicView:
    """The kept users by their public features.

    Raises SettingError when the features are not public: noisy features have another law, which nothing here accounts
    for.
    """
    mechanism = evidence.protocol.features
    if mechanism.kind != "none":
        raise SettingError(
            f"this refinement needs public features; found privacy.features.kind {mechanism.kind!r}, allowed: 'none'"
        )
    users = np.flatnonzero(kept)
    features = evidence.features[users]
    order = np.argsort(
        features @ Streams(0).generator("refinement/public/order").random(features.shape[1]), kind="stable"
    )
    users, features = users[order], features[order]
    train = evidence.train[users] & (evidence.labels[users] >= 0)
    fold = np.full(len(users), -1, dtype=np.int64)
    fold[train] = np.arange(train.sum()) % folds
    return PublicView(
        users,
        tf_idf(features),
        evidence.labels[users],
        train,
        evidence.validation[users],
        fold,
        evidence.protocol.classes,
    )


def tf_idf(features: sparse.csr_array) -> sparse.csr_array:
    """Rows weighted by log((1 + n) / (1 + document frequency)) + 1 and scaled to length 1, (n, F) float32."""
    n = features.shape[0]
    frequency = np.bincount(features.indices[features.data != 0], minlength=features.shape[1])
    weighted = features.astype(np.float64)
    weighted.data *= (np.log((1 + n) / (1 + frequency)) + 1)[weighted.indices]
    owner = np.repeat(np.arange(n), np.diff(weighted.indptr))
    length = np.sqrt(np.bincount(owner, weights=weighted.data**2, minlength=n))
    weighted.data /= np.where(length > 0, length, 1.0)[owner]
    rows = sparse.csr_array(weighted.astype(np.float32))
    rows.sort_indices()
    return rows


def class_probabilities(design: sparse.csr_array | np.ndarray, view: PublicView, strength: float) -> np.ndarray:
    """(m, classes) from multinomial logistic regression on the rows of `design`, inverse penalty `strength`.

    A training node is judged by the model of the other folds, so that its own label does not speak about itself;
    everybody else by the model of all training nodes.
    """
    out = np.full((view.size, view.classes), 1.0 / view.classes)
    train = np.flatnonzero(view.train)
    if len(train):
        _predict(design, view, train, ~view.train, strength, out)
    for fold in range(int(view.folds.max(initial=-1)) + 1):
        held_out = view.folds == fold
        others = train[view.folds[train] != fold]
        if len(others):
            _predict(design, view, others, held_out, strength, out)
    return out


def _predict(
    design: sparse.csr_array | np.ndarray,
    view: PublicView,
    learn: np.ndarray,
    judge: np.ndarray,
    strength: float,
    out: np.ndarray,
) -> None:
    from sklearn.linear_model import LogisticRegression

    if not judge.any():
        return
    seen = np.unique(view.labels[learn])
    out[judge] = 0.0
    if len(seen) == 1:
        out[judge, seen[0]] = 1.0
        return
    # The default tolerance of 1e-4 takes twice as long and moves no published number in its third digit.
    model = LogisticRegression(C=strength, max_iter=500, tol=1e-3).fit(design[learn], view.labels[learn])
    out[np.ix_(np.flatnonzero(judge), model.classes_)] = model.predict_proba(design[judge])


def second_round(view: PublicView, first: np.ndarray, weights: sparse.csr_array) -> np.ndarray:
    """Class probabilities (m, classes) that also look at neighbours, from those of the first round and weights W.

    `weights` is a symmetric (m, m) csr with an empty diagonal. H = one-hot label of training nodes, else `first`. A
    row's features: log(Z + .01), log(U + .01), U, W H, and W (W Z) without the way back, with Z = `first` and U = the
    mean of H under W; standardised; logistic regression with inverse penalty 0.1, again out of fold for training nodes.
    """
    known = first.copy()
    known[view.train] = 0.0
    known[view.train, view.labels[view.train]] = 1.0
    gathered, mass = weights @ known, weights.sum(axis=1)
    mean = np.where(mass[:, None] > 0, gathered / np.maximum(mass, 1e-12)[:, None], known.mean(axis=0))
    back = weights.copy()
    back.data = back.data**2
    two_steps = weights @ (weights @ first) - back.sum(axis=1)[:, None] * first
    design = np.hstack([np.log(first + 0.01), np.log(mean + 0.01), mean, gathered, two_steps])
    spread = design.std(axis=0)
    design = (design - design.mean(axis=0)) / np.where(spread > 1e-12, spread, 1.0)
    return class_probabilities(design, view, strength=0.1)


def symmetric(i: np.ndarray, j: np.ndarray, weight: np.ndarray, size: int) -> sparse.csr_array:
    """(size, size) csr with sorted indices from pairs, each in both directions."""
    matrix = sparse.csr_array(
        (np.concatenate([weight, weight]), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(size, size)
    )
    matrix.sort_indices()
    return matrix


def published(
    view: PublicView, i: np.ndarray, j: np.ndarray, **columns: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray | None]]:
    """Pairs of rows as (u, v) server ids, u < v, row-major, with further columns in the same order."""
    a, b = view.users[i], view.users[j]
    u, v = np.minimum(a, b).astype(np.int32), np.maximum(a, b).astype(np.int32)
    order = np.lexsort((v, u))
    return u[order], v[order], {name: None if x is None else x[order] for name, x in columns.items()}


def knn_graph(view: PublicView, neighbours: int = 10) -> Structure:
    """Each user tied to the `neighbours` users with the most similar features (positive tf-idf cosine), either way."""
    from server.refinement._feature_kernels import nearest

    best = np.zeros((view.size, neighbours), dtype=np.float32)
    who = np.full((view.size, neighbours), -1, dtype=np.int32)
    for first, wide in view.columns():
        nearest(view.rows.indptr, view.rows.indices, view.rows.data, wide, first, best, who)
    i, place = np.nonzero(who >= 0)
    j = who[i, place]
    low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j).astype(np.int64)
    codes = np.unique(low * view.size + high)
    u, v, _ = published(view, codes // view.size, codes % view.size)
    return Structure(u, v)
