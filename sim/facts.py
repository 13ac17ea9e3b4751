"""What the engine itself knows about a round: traffic and time."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from agents.report import ReportBatch
from server.pipeline import Outcome


@dataclass
class RoundFacts:
    """What the engine itself knows about a round: traffic and time."""

    round: int
    online: int = 0
    abstained: int = 0
    sent: int = 0
    delivered: int = 0
    late: int = 0
    lost: int = 0
    bytes: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    sim_seconds: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    started: float = 0.0

    def clock(self, name: str, start: float) -> None:
        """Add the time since `start` to a stage."""
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def traffic(self, batch: ReportBatch, delivered: int, lost: int) -> None:
        """Count one phase's reports."""
        sent = len(batch.senders)
        self.sent += sent
        self.delivered += delivered
        self.lost += lost
        self.late += sent - delivered - lost
        self.bytes += int(batch.sizes().sum())

    def finish(self, started: float, outcome: Outcome, intake: float, rejected: Counter[str]) -> None:
        """Take over the server's clocks."""
        self.started, self.rejected = started, rejected
        self.seconds["intake"] = intake
        self.seconds.update(outcome.seconds)
