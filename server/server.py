"""The server as a Mesa agent: takes in reports phase by phase, runs the pipeline, and answers with private feedback."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import mesa
import numpy as np
from scipy import sparse

from agents.privacy.ties.base import no_lists
from agents.report import ReportBatch
from server.evidence import Evidence
from server.intake import Shelf
from server.pipeline import Outcome, Pipeline, Progress
from sim.kernel.randomness import digest64


class ServerAgent(mesa.Agent):
    """A thin shell around `Pipeline`. Works in server-side ids throughout; `labels` is -1 where it knows none."""

    def __init__(
        self, model: Any, pipeline: Pipeline, labels: np.ndarray, train: np.ndarray, validation: np.ndarray
    ) -> None:
        super().__init__(model)
        self.pipeline = pipeline
        self.labels, self.train, self.validation = labels, train, validation
        self.shelves = [Shelf() for _ in range(pipeline.protocol.ties.phases)]
        self.rejected: Counter[str] = Counter()
        self.seconds_intake = 0.0
        self._round: list[ReportBatch] = []
        self._published: dict[str, np.ndarray] = {}

    def open_round(self) -> None:
        """Forget the reports of the round before (not the shelves)."""
        self._round, self._published, self.rejected, self.seconds_intake = [], {}, Counter(), 0.0

    def receive(self, batch: ReportBatch) -> dict[str, np.ndarray]:
        """Take in one phase's reports; returns what the server publishes before the next phase (server ids)."""
        start = time.perf_counter()
        phase = len(self._round)
        accepted, reasons = self.pipeline.settings.intake.check(batch, self.pipeline.protocol)
        self.rejected.update(reasons)
        kept = batch if accepted.all() else batch.take(accepted)
        keep_last = self.pipeline.settings.memory == "last"
        question = [np.zeros(0), *(np.ravel(self._published[name]) for name in sorted(self._published))]
        asked = digest64(np.concatenate(question))
        self._round.append(self.shelves[phase].merge(kept, keep_last, asked))
        self.seconds_intake += time.perf_counter() - start
        if phase + 1 == self.pipeline.protocol.ties.phases:
            return {}
        published = self.pipeline.settings.refinement.broadcast(phase, self.evidence(), self.pipeline.streams)
        self._published.update(published)
        return published

    def evidence(self) -> Evidence:
        """The reports of this round so far as matrices over all registered users."""
        n, dimensions = self.pipeline.protocol.participants, self.pipeline.protocol.dimensions
        first = self._round[0]
        reported = np.zeros(n, dtype=bool)
        reported[first.senders] = True
        features = self.pipeline.protocol.features.rectify(spread(first.features, first.senders, n))
        listed = [batch for batch in self._round if batch.lists.nnz]
        lists: Any = spread(listed[-1].lists, listed[-1].senders, n) if listed else no_lists(n, n)
        numbers = []
        for batch in self._round:
            rows = np.full((n, batch.numbers.shape[1]), np.nan)
            rows[batch.senders] = batch.numbers
            numbers.append(rows)
        assert features.shape == (n, dimensions)
        return Evidence(
            self.pipeline.protocol,
            reported,
            features,
            lists,
            numbers,
            self.labels,
            self.train,
            self.validation,
            dict(self._published),
        )

    def conclude(self, evidence: Evidence, round: int, epoch: int, progress: Progress | None) -> Outcome:
        """Run the pipeline on this round's evidence."""
        return self.pipeline.run(evidence, round, epoch, progress=progress)


def spread(rows: sparse.csr_array, senders: np.ndarray, n: int) -> sparse.csr_array:
    """Rows of ascending `senders` as the rows of an n-row matrix; the others are empty."""
    counts = np.zeros(n, dtype=np.int64)
    counts[senders] = np.diff(rows.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((rows.data, rows.indices, indptr), shape=(n, rows.shape[1]))
