"""One round of the server, top to bottom. Built from settings and public facts; nothing leads to agents or truth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from agents.protocol import Protocol
from server.attestation import PENALTY
from server.evidence import Evidence, Structure, Suspicion
from server.pruning import Decision
from server.pruning.base import PruningContext
from server.refinement.none import empty
from server.settings import NetworkTraining
from server.stages import ServerSettings
from sim.kernel.errors import RunError
from sim.kernel.randomness import Streams

Progress = Callable[[str], None]
STAGES = ("attestation", "suspicion", "refinement", "denoising", "training")


class NobodyLeft(RunError):
    """Pruning left no training user."""


@dataclass
class Clock:
    """Seconds spent in each stage."""

    seconds: dict[str, float] = field(default_factory=dict)
    progress: Progress | None = None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time inside the `with` block to a stage."""
        if self.progress is not None:
            self.progress(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


@dataclass(frozen=True)
class Learned:
    """What training on one structure gave: the structure, the features it was trained on, the model's predictions."""

    structure: Structure
    features: Any  # (n, d) ndarray or csr: what the model saw
    result: Any  # server.training.TrainResult, or None without training

    @property
    def predictions(self) -> np.ndarray | None:
        """(n,) predicted classes, or None without training."""
        return None if self.result is None else self.result.predictions


@dataclass(frozen=True)
class Outcome:
    """Everything the server decided in one round."""

    suspicion: Suspicion
    decision: Decision
    learned: Learned
    seconds: dict[str, float]
    notes: tuple[str, ...]


def adjacency(structure: Structure, n: int) -> sparse.csr_array:
    """(n, n) symmetric float32 weights of a structure."""
    weight = np.ones(len(structure.u), dtype=np.float32) if structure.weight is None else structure.weight
    rows, columns = np.concatenate([structure.u, structure.v]), np.concatenate([structure.v, structure.u])
    matrix = sparse.csr_array((np.concatenate([weight, weight]).astype(np.float32), (rows, columns)), shape=(n, n))
    matrix.sort_indices()
    return matrix


class Pipeline:
    """Attestation -> suspicion -> pruning -> refinement -> denoising -> training."""

    def __init__(self, settings: ServerSettings, protocol: Protocol, streams: Streams) -> None:
        self.settings = settings
        self.protocol = protocol
        self.streams = streams
        self.transition: np.ndarray | None = None  # label-noise matrix, when labels are private
        self.held: dict[str, object] = {}  # the pruning rule's memory
        self.warm: Any = None  # the last model's weights

    def variant(self, **changes: Any) -> Pipeline:
        """A fresh pipeline with some stages replaced, sharing nothing but public facts and streams."""
        twin = Pipeline(self.settings.model_copy(update=changes), self.protocol, self.streams)
        twin.transition = self.transition
        return twin

    def warm_up(self) -> None:
        """Compile kernels and load torch before any stage's clock starts."""
        self.settings.refinement.warm_up()
        self.settings.suspicion.warm_up()
        if isinstance(self.settings.training, NetworkTraining):
            import server.training  # noqa: F401

    def run(
        self,
        evidence: Evidence,
        round: int,
        epoch: int,
        flagged: np.ndarray | None = None,
        progress: Progress | None = None,
    ) -> Outcome:
        """One round. With `flagged`, those users are pruned and the suspicion and pruning stages are left out."""
        clock, notes = Clock(progress=progress), list[str]()
        settings = self.settings
        evidence.extra[PENALTY] = np.array(settings.attestation.asymmetry_penalty)
        evidence.extra["epoch"] = np.array(epoch)
        form = self.protocol.ties.form
        with clock.stage("attestation"):
            if form in ("verification-list", "binary-list"):
                _ = evidence.pairs
        with clock.stage("suspicion"):
            suspicion = self._suspicion(evidence, form, flagged is not None, notes)

        tried: dict[bytes, Learned] = {}

        def learn(gone: np.ndarray) -> Learned:
            key = gone.tobytes()
            if key not in tried:
                tried[key] = self._learn(evidence, gone, round, clock, notes)
            return tried[key]

        def validation_accuracy(gone: np.ndarray) -> float:
            try:
                result = learn(gone).result
            except NobodyLeft:
                return float("nan")
            return float("nan") if result is None else float(result.validation_accuracy)

        if flagged is not None:
            decision = Decision(flagged, float("nan"))
        else:
            context = PruningContext(evidence, settings.suspicion, self.streams, validation_accuracy, self.held, epoch)
            decision = settings.pruning.decide(suspicion, context)
        learned = learn(decision.flagged)
        if learned.result is not None and getattr(settings.training, "warm_start", False):
            self.warm = learned.result.state
        return Outcome(suspicion, decision, learned, clock.seconds, tuple(dict.fromkeys(notes)))

    def train_on(self, evidence: Evidence, structure: Structure, round: int, gone: np.ndarray | None = None) -> Learned:
        """Denoise and train on a given structure, this round's seed and fresh weights: for anchors."""
        nobody = np.zeros(evidence.n, dtype=bool)
        gone = nobody if gone is None else gone
        return self._finish(evidence, structure, gone, round, Clock(), [], warm=None)

    def _suspicion(self, evidence: Evidence, form: str, skip: bool, notes: list[str]) -> Suspicion:
        scorer = self.settings.suspicion
        unknown = Suspicion(np.full(evidence.n, np.nan))
        if skip:
            return unknown
        if scorer.needs and scorer.needs != form:
            notes.append(
                f"suspicion {scorer.kind!r} needs {scorer.needs} reports, these are {form}: the stage is skipped"
            )
            return unknown
        return scorer.score(evidence, self.streams)

    def _learn(self, evidence: Evidence, gone: np.ndarray, round: int, clock: Clock, notes: list[str]) -> Learned:
        refinement, form = self.settings.refinement, self.protocol.ties.form
        with clock.stage("refinement"):
            if form not in refinement.accepts:
                structure = empty()
                notes.append(f"refinement {refinement.kind!r} cannot use {form} reports: no structure is published")
            else:
                structure = refinement.refine(evidence, ~gone, self.streams)
        notes.extend(structure.notes)
        return self._finish(evidence, structure, gone, round, clock, notes, self.warm)

    def _finish(
        self,
        evidence: Evidence,
        structure: Structure,
        gone: np.ndarray,
        round: int,
        clock: Clock,
        notes: list[str],
        warm: Any,
    ) -> Learned:
        settings = self.settings
        matrix = adjacency(structure, evidence.n)
        features: Any = evidence.features
        private = self.protocol.features.kind != "none"
        with clock.stage("denoising"):
            if not private and settings.denoising.kind != "none":
                notes.append("features are public: denoising is skipped")
            elif settings.denoising.kind != "none":
                features = settings.denoising.denoise(features, matrix, self.bound(features))
        if not isinstance(settings.training, NetworkTraining):
            return Learned(structure, features, None)
        from server.training import TrainingError, train

        if evidence.train.any() and not (evidence.train & ~gone).any():
            raise NobodyLeft(
                f"round {round}, training: all {int(evidence.train.sum())} training users are pruned; server.pruning "
                "must leave at least one"
            )
        try:
            with clock.stage("training"):
                result = train(
                    settings.training,
                    features,
                    matrix,
                    evidence.labels,
                    evidence.train & ~gone,
                    evidence.validation,
                    seed=self.streams.integer("training", round),
                    classes=self.protocol.classes,
                    standardise=private,
                    transition=self.transition,
                    warm=warm,
                )
        except TrainingError as error:
            raise RunError(f"round {round}, training: {error}") from error
        return Learned(structure, features, result)

    def bound(self, features: sparse.csr_array) -> float:
        """B: the largest magnitude a rectified feature can have (for unbounded mechanisms: that it does have)."""
        ends = np.array(self.protocol.features.output_range(self.protocol.dimensions))
        if not np.isfinite(ends).all():
            return float(np.abs(features.data).max(initial=0.0))
        probe = sparse.csr_array((ends.astype(np.float32), [0, 0], [0, 1, 2]), shape=(2, self.protocol.dimensions))
        return float(np.abs(self.protocol.features.rectify(probe).data).max(initial=0.0))


def restrict(evidence: Evidence, members: np.ndarray) -> Evidence:
    """The evidence of some users only (ascending ids), as if nobody else had taken part."""
    inside = [numbers[members] for numbers in evidence.numbers]
    n = evidence.n
    return replace(
        evidence,
        protocol=replace(evidence.protocol, participants=len(members)),
        reported=evidence.reported[members],
        features=evidence.features[members],
        lists=sparse.csr_array(evidence.lists[members][:, members]),
        numbers=inside,
        labels=evidence.labels[members],
        train=evidence.train[members],
        validation=evidence.validation[members],
        extra={k: v[members] if v.ndim and len(v) == n else v for k, v in evidence.extra.items()},
    )
