"""Intake: reject what no honest run of the protocol could send, count why, keep the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agents.protocol import Protocol
from agents.report import ReportBatch
from sim.kernel.component import Section

_TOLERANCE = 1e-5  # relative: values travel as float32


class Intake(Section):
    """Which checks the server makes on the form of a report. Each can be switched off, to show what it stops."""

    count: bool = True  # at most m non-zero features
    range: bool = True  # feature values inside the mechanism's output range
    levels: bool = True  # list entries about others, with levels 1..kappa; finite numbers

    def check(self, batch: ReportBatch, protocol: Protocol) -> tuple[np.ndarray, dict[str, int]]:
        """(accepted (k,) bool, {reason: reports rejected for it first}) for a batch in server ids."""
        low, high = protocol.features.output_range(protocol.dimensions)
        slack = _TOLERANCE * max(abs(low), abs(high), 1.0) if np.isfinite([low, high]).all() else 0.0
        values, entries = batch.features, batch.lists
        inside = (values.data >= low - slack) & (values.data <= high + slack)
        broken = {
            "too many features": self.count & (np.diff(values.indptr) > protocol.features.sampled(protocol.dimensions)),
            "feature out of range": self.range & _any_in_row(values.indptr, ~(inside & np.isfinite(values.data))),
            "malformed list": self.levels
            & (
                _any_in_row(entries.indptr, (entries.data < 1) | (entries.data > protocol.ties.levels))
                | _any_in_row(entries.indptr, entries.indices == np.repeat(batch.senders, np.diff(entries.indptr)))
                | ~np.isfinite(batch.numbers).all(axis=1)
            ),
        }
        accepted = np.ones(len(batch.senders), dtype=bool)
        reasons: dict[str, int] = {}
        for reason, bad in broken.items():
            reasons[reason] = int((accepted & bad).sum())
            accepted &= ~bad
        return accepted, reasons


def _any_in_row(indptr: np.ndarray, bad: np.ndarray) -> np.ndarray:
    counts = np.concatenate([[0], np.cumsum(bad)])
    return counts[indptr[1:]] > counts[indptr[:-1]]


@dataclass
class Shelf:
    """The server's copy of the last accepted report of every user, for one phase (`server.memory: last`).

    `asked` is a digest of what the phase asked about (groups that the server had published, say): a report that answers
    another question cannot stand in.
    """

    held: ReportBatch | None = None
    asked: int = 0

    def merge(self, fresh: ReportBatch, keep_last: bool, asked: int = 0) -> ReportBatch:
        """The reports to work with: the fresh ones, and the last known of the users who sent nothing this time."""
        if asked != self.asked:
            self.held, self.asked = None, asked
        if keep_last and self.held is not None:
            from agents.report import join

            silent = ~np.isin(self.held.senders, fresh.senders)
            fresh = join([fresh, self.held.take(silent)])
        self.held = fresh
        return fresh
