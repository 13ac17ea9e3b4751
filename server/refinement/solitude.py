"""Solitude: learn the graph together with a classifier, near what was reported and sparse."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.ties import TieProtocol
from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.binary_response import flip_probability
from server.density import dense_note
from server.evidence import Evidence, Structure
from server.refinement._pairs import named_pairs
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams


class Solitude(Refinement, kind="solitude"):
    """A graph estimated jointly with a classifier from randomised neighbour lists (Solitude).

    Minimises CE(f(X, A), train) + fidelity |A - A~|_F + sparsity |A|_1 over f and A in turn, where A~ holds the share
    of a pair's two ends that report it, and A is kept from step to step and changed on reported pairs only. f is a
    linear surrogate of the GNN: logits X theta + b, averaged once over a node and its neighbours. Then `publish`:
    `top` ties, as many as the reports without their noise count, or those above `threshold` (one half). Every epoch
    costs one pass over the reported pairs: at small epsilon that is about half of all pairs.

    `preset: released-code` publishes every reported pair: the released estimator restarts A from A~ in every step and
    takes the loss at A~, so it changes no tie.
    """

    source: ClassVar[str] = "Solitude: Lin, Li & Wang, IEEE TIFS 2022"
    accepts: ClassVar[tuple[str, ...]] = ("binary-list",)

    preset: Literal["paper", "released-code"] = "paper"
    publish: Literal["top", "threshold"] = "top"
    fidelity: float = Field(1e-4, ge=0)
    sparsity: float = Field(1e-2, ge=0)
    epochs: int = Field(60, ge=1)
    classifier_rate: float = Field(0.05, gt=0)
    adjacency_rate: float = Field(0.02, gt=0)
    weight_decay: float = Field(1e-3, ge=0)

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        return BinaryList(epsilon=epsilon)

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        u, v, ends = named_pairs(evidence.lists)
        inside = kept[u] & kept[v]
        u, v, reported = u[inside], v[inside], (ends[inside] / 2).astype(np.float32)
        if self.preset == "released-code":
            note = "solitude, released code: the denoiser changes no tie, so the randomised graph is published as it is"
            return Structure(
                u, v, summary={"ties_changed": 0.0}, notes=(note, *dense_note("solitude", evidence.n, len(u)))
            )
        tie, pull = self.estimate(evidence, u, v, reported, kept)
        if self.publish == "threshold":
            chosen = np.flatnonzero(tie > 0.5)
        else:
            wanted = min(debiased_ties(evidence, kept), len(u))
            # Equal ties (many end at 1) are told apart by how much the loss still wants to raise them.
            chosen = np.sort(np.lexsort((pull, -tie))[:wanted])
        changed = len(u) - len(chosen)
        notes = (
            () if changed else ("solitude: the denoiser changed no tie: the randomised graph is published as it is",)
        )
        return Structure(u[chosen], v[chosen], summary={"ties_changed": float(changed)}, notes=notes)

    def estimate(
        self, evidence: Evidence, u: np.ndarray, v: np.ndarray, reported: np.ndarray, kept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(A on the listed pairs in [0, 1], the running mean of the objective's slope by each), float32."""
        from server.refinement._solitude_kernels import gather, step

        features, labelled = unit_scale(evidence.features), evidence.train & kept & (evidence.labels >= 0)
        n, classes = evidence.n, evidence.protocol.classes
        target = np.zeros((n, classes))
        target[np.flatnonzero(labelled), evidence.labels[labelled]] = 1.0
        weights = Adam(np.zeros((features.shape[1] + 1, classes)), self.classifier_rate)
        tie = reported.copy()
        first, second, distance = np.zeros_like(tie), np.zeros_like(tie), 0.0
        for turn in range(1, self.epochs + 1):
            logits = features @ weights.value[:-1] + weights.value[-1]
            degree = gather(u, v, tie, np.ones((n, 1)))
            mean = gather(u, v, tie, logits) / degree
            error = (softmax(mean) - target) * labelled[:, None] / max(labelled.sum(), 1) / degree
            by_logits = gather(u, v, tie, error)
            slope = np.vstack([features.T @ by_logits, by_logits.sum(axis=0)])
            distance = np.sqrt(
                step(
                    u, v, reported, tie, first, second, logits, mean, error, labelled,
                    self.fidelity, distance, self.adjacency_rate * self.sparsity, self.adjacency_rate, turn,
                )
            )  # fmt: skip
            weights.step(slope + self.weight_decay * weights.value)
        return tie, first

    def warm_up(self) -> None:
        from server.refinement import _solitude_kernels

        _solitude_kernels.warm_up()


class Adam:
    """Adam with its usual constants (Kingma & Ba 2015) on one array."""

    def __init__(self, value: np.ndarray, rate: float) -> None:
        self.value, self.rate, self.turn = value, rate, 0
        self.first, self.second = np.zeros_like(value), np.zeros_like(value)

    def step(self, slope: np.ndarray) -> None:
        """Move `value` against `slope`."""
        self.turn += 1
        self.first = 0.9 * self.first + 0.1 * slope
        self.second = 0.999 * self.second + 0.001 * slope**2
        mean, square = self.first / (1 - 0.9**self.turn), self.second / (1 - 0.999**self.turn)
        self.value = self.value - self.rate * mean / (np.sqrt(square) + 1e-8)


def unit_scale(features: sparse.csr_array) -> sparse.csr_array:
    """The features divided by the root mean square length of a row, float64."""
    length = np.sqrt((features.data.astype(np.float64) ** 2).sum() / max(features.shape[0], 1))
    return sparse.csr_array(features.astype(np.float64) / (length if length > 0 else 1.0))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Row-wise probabilities."""
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def debiased_ties(evidence: Evidence, kept: np.ndarray) -> int:
    """Unbiased number of ties among kept users from their randomised lists: (ones - cells q) / (1 - 2q) / 2, at least
    0."""
    flip = flip_probability(evidence.protocol.ties.epsilon)
    heard = kept & evidence.reported
    rows = np.repeat(np.arange(evidence.n), np.diff(evidence.lists.indptr))
    ones = int((heard[rows] & kept[evidence.lists.indices]).sum())
    cells = int(heard.sum()) * (int(kept.sum()) - 1)
    share = (ones / cells - flip) / (1 - 2 * flip) if cells > 0 else 0.0
    return round(float(max(share, 0.0) * kept.sum() * (kept.sum() - 1) / 2))
