"""The audits of labels and of degree noise."""

from __future__ import annotations

import numpy as np

from agents.privacy.audit.epsilon import Effort, World, audit_epsilon
from agents.privacy.audit.events import Observed
from agents.privacy.audit.moments import Expected, Moments, compare
from agents.privacy.audit.rows import AuditRow
from agents.privacy.labels import LabelMechanism
from agents.privacy.noise import DegreeNoise
from sim.kernel.randomness import Streams


class LabelWorld:
    """Reports of users whose true class is `label`. Observed: the reported class."""

    def __init__(self, mechanism: LabelMechanism, classes: int, truth: int, streams: Streams) -> None:
        self.mechanism, self.classes, self.truth, self.streams = mechanism, classes, truth, streams
        self.label, self._next = f"class {truth}", 0

    def draw(self, count: int) -> Observed:
        senders = self._next + np.arange(count)
        self._next += count
        truth = np.full(count, self.truth)
        reported = self.mechanism.perturb(truth, senders, np.ones(count), self.streams, self.classes)
        return [reported[:, None].astype(float)]


def audit_labels(
    mechanism: LabelMechanism, classes: int, streams: Streams, effort: Effort | None = None
) -> list[AuditRow]:
    """Epsilon between classes, and every class's share of kept labels against the transition matrix. Nothing for public
    labels."""
    matrix = mechanism.transition(classes)
    if matrix is None:
        return []
    effort, subject = effort or Effort(), f"labels: {mechanism.kind}"
    spent = mechanism.spent(classes)
    epsilon = min(spent, getattr(mechanism, "epsilon", spent))
    truths = range(min(classes, 3))
    worlds: list[World] = [LabelWorld(mechanism, classes, c, streams.child(f"label {c}")) for c in truths]
    kept = []
    for truth in truths:
        shares = Moments()
        shares.add(LabelWorld(mechanism, classes, truth, streams.child(f"kept {truth}")).draw(effort.pilot)[0] == truth)
        kept.append(Expected(f"class {truth}", float(matrix[truth, truth]), shares, 1.0))
    return [
        audit_epsilon(subject, worlds, epsilon, effort=effort),
        compare(subject, "bias of the kept share", kept, False),
    ]


class DegreeWorld:
    """Noisy numbers about a degree vector. Observed: every number."""

    def __init__(self, noise: DegreeNoise, truth: np.ndarray, streams: Streams) -> None:
        self.noise, self.truth, self.streams = noise, truth, streams
        self.label, self._next = "degrees " + " ".join(f"{value:g}" for value in truth), 0

    def draw(self, count: int) -> Observed:
        senders = self._next + np.arange(count)
        self._next += count
        drawn = self.noise.draw(len(self.truth), senders, 1, self.streams, "audit/degrees")
        return list(np.hsplit(self.truth + drawn, len(self.truth)))


def audit_degrees(
    noise: DegreeNoise, streams: Streams, columns: int = 1, effort: Effort | None = None
) -> list[AuditRow]:
    """Epsilon of a degree vector that moves by `sensitivity` in one number, and the bias and variance of the noise."""
    effort, subject = effort or Effort(), f"degrees: {noise.kind}"
    truth = np.full(columns, 5.0)
    moved = truth + noise.sensitivity * (np.arange(columns) == 0)
    worlds: list[World] = [
        DegreeWorld(noise, held, streams.child(f"degrees {k}")) for k, held in enumerate((truth, moved))
    ]
    drawn = DegreeWorld(noise, truth, streams.child("moments")).draw(effort.pilot)[0][:, 0] - truth[0]
    mean, square = Moments(), Moments()
    mean.add(drawn)
    square.add(drawn**2)
    return [
        audit_epsilon(subject, worlds, min(noise.epsilon, noise.spent()), effort=effort),
        compare(subject, "bias", [Expected("noise", 0.0, mean)], False),
        compare(subject, "variance", [Expected("noise", noise.variance(), square)], True),
    ]
