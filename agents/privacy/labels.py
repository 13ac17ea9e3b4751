"""How training and validation users report their labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from pydantic import Field

from sim.kernel.component import Component
from sim.kernel.randomness import Streams


class LabelMechanism(Component, family="privacy.labels", home="agents.privacy.labels"):
    """How a user reports its class, once a run. Only users of the training and validation split have one to report."""

    @abstractmethod
    def perturb(
        self, labels: np.ndarray, senders: np.ndarray, epochs: np.ndarray, streams: Streams, classes: int
    ) -> np.ndarray:
        """Reported classes (k,) int64 of `senders` (k,), whose true classes `labels` (k,) are in 0..classes-1; a
        negative label (nothing to report) stays. Entry r is a pure function of (its label, senders[r], epochs[r],
        streams.seed). Raises ValueError for a label that is not below `classes`."""

    @abstractmethod
    def transition(self, classes: int) -> np.ndarray | None:
        """(classes, classes) float64: row i holds the probabilities of every report when the true class is i, for a
        forward-corrected loss (Patrini et al., CVPR 2017). None when labels are reported as they are."""

    @abstractmethod
    def spent(self, classes: int) -> float:
        """Epsilon of one reported label, computed from the transition matrix; 0 for public labels."""


class PublicLabels(LabelMechanism, kind="none"):
    """Labels reach the server raw: no epsilon covers them, nor what is learned from them."""

    def perturb(
        self, labels: np.ndarray, senders: np.ndarray, epochs: np.ndarray, streams: Streams, classes: int
    ) -> np.ndarray:
        return checked(labels, classes).copy()

    def transition(self, classes: int) -> np.ndarray | None:
        return None

    def spent(self, classes: int) -> float:
        return 0.0


class RandomizedResponseLabels(LabelMechanism, kind="randomized-response"):
    """The true class with probability e^epsilon / (e^epsilon + classes - 1), else any other one, each alike.

    Written in its replacement form: with probability classes / (e^epsilon + classes - 1) the label is replaced by a
    uniform class, so what is replaced, and by what, does not depend on the truth. Discrete; probabilities are off by at
    most 2^-53.
    """

    source: ClassVar[str] = "Kairouz et al., JMLR 2016 (k-ary randomised response); LPGNN, section 4.2"

    epsilon: float = Field(gt=0)

    def _replaced(self, classes: int) -> float:
        """Probability that the label is replaced: classes * q with q = 1 / (e^epsilon + classes - 1)."""
        shrunk = math.exp(-min(self.epsilon, 700.0))
        return classes * shrunk / (1 + (classes - 1) * shrunk)

    def perturb(
        self, labels: np.ndarray, senders: np.ndarray, epochs: np.ndarray, streams: Streams, classes: int
    ) -> np.ndarray:
        from agents.privacy._noise_kernels import replaced_symbols

        senders, epochs = np.asarray(senders, np.uint64), np.asarray(epochs, np.uint64)
        replaced, symbols = replaced_symbols(
            senders, epochs, streams.key("privacy.labels"), self._replaced(classes), classes
        )
        labels = checked(labels, classes)
        return np.where((labels >= 0) & replaced, symbols, labels)

    def transition(self, classes: int) -> np.ndarray | None:
        other = self._replaced(classes) / classes
        matrix = np.full((classes, classes), other)
        np.fill_diagonal(matrix, 1 - (classes - 1) * other)
        return matrix

    def spent(self, classes: int) -> float:
        matrix = self.transition(classes)
        assert matrix is not None
        return float(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())


def checked(labels: np.ndarray, classes: int) -> np.ndarray:
    """Labels as int64; ValueError when one is not below `classes`."""
    labels = np.asarray(labels, dtype=np.int64)
    if labels.size and labels.max() >= classes:
        raise ValueError(f"found label {labels.max()}; allowed: 0..{classes - 1}")
    return labels
