"""A lower bound on the epsilon of anything that can be drawn in several worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Protocol as Interface

import numpy as np

from agents.privacy.audit.bounds import epsilon_lower_bound, error_per_root_draw
from agents.privacy.audit.events import Event, Observed, best_event
from agents.privacy.audit.rows import NO_VIOLATION, VIOLATES, AuditRow

ALPHA = 1e-6
"""Probability that a line accuses an honest mechanism, all events that it tests together."""


class World(Interface):
    """Reports under one input. Every call of `draw` gives `count` new independent observations."""

    label: str

    def draw(self, count: int) -> Observed: ...


PAIRS = 2
"""Pairs of worlds that are tested with fresh draws."""

MARGIN = 1.6
"""Draws beyond what the pilot says are needed, since the pilot's ratio is itself uncertain."""


@dataclass(frozen=True)
class Effort:
    """How much an audit may draw per world: for choosing events, and at most for testing them."""

    pilot: int = 300_000
    most: int = 4_000_000
    chunk: int = 100_000

    def scaled(self, cost: float) -> Effort:
        """The same work for draws that cost `cost` times as much."""
        return Effort(max(1_000, int(self.pilot / cost)), max(5_000, int(self.most / cost)), self.chunk)


def audit_epsilon(
    subject: str, worlds: list[World], epsilon: float, delta: float = 0.0, effort: Effort | None = None,
    quantity: str = "epsilon",
) -> AuditRow:  # fmt: skip
    """Compare every ordered pair of worlds, each by its best event, and report the worst pair.

    A pilot sample chooses the `PAIRS` most telling pairs and their events; fresh draws bound them at ALPHA over
    `PAIRS`. How many is what the most telling pair needs (see `plan`), at most `effort.most`.
    """
    effort = effort or Effort()
    alpha = ALPHA / PAIRS
    pilots = [world.draw(effort.pilot) for world in worlds]
    found = [
        best_event((i, j), pilots[i], pilots[j], epsilon, delta, alpha) for i, j in permutations(range(len(worlds)), 2)
    ]
    events = sorted(found, key=lambda event: -event.power)[:PAIRS]
    del pilots
    draws = int(min(effort.most, max(effort.pilot, MARGIN * min(event.draws for event in events))))
    hits = count_hits(worlds, events, draws, effort.chunk)
    bounds = [epsilon_lower_bound(a, b, draws, alpha, delta) for a, b in hits]
    worst = int(np.argmax(bounds))
    i, j = events[worst].pair
    return AuditRow(
        subject, quantity, f"{worlds[i].label} / {worlds[j].label}", epsilon, bounds[worst], draws,
        min(smallest_excess(a, b, draws, epsilon, delta, alpha) for a, b in hits),
        VIOLATES if bounds[worst] > epsilon else NO_VIOLATION,
    )  # fmt: skip


def count_hits(worlds: list[World], events: list[Event], draws: int, chunk: int) -> list[tuple[int, int]]:
    """For each event its hits in `draws` fresh reports of its first and of its second world."""
    found = np.zeros((len(events), 2), dtype=np.int64)
    for position, world in enumerate(worlds):
        sides = [(row, side) for row, event in enumerate(events) for side in (0, 1) if event.pair[side] == position]
        left = draws if sides else 0
        while left > 0:
            observed = world.draw(min(chunk, left))
            left -= len(observed[0])
            for row, side in sides:
                found[row, side] += events[row].hits(observed)
    return [(int(a), int(b)) for a, b in found]


def smallest_excess(hits_first: int, hits_second: int, draws: int, epsilon: float, delta: float, alpha: float) -> float:
    """The smallest f such that a twin with 1 + f times this event's log-ratio would be found with probability POWER."""
    first, second = (hits_first + 0.5) / (draws + 1), (hits_second + 0.5) / (draws + 1)
    if first <= 2 * delta or first <= second:
        return math.inf
    ratio = min(epsilon, math.log((first - delta) / second))
    return max(0.0, (epsilon + error_per_root_draw(first, second, alpha, delta) / math.sqrt(draws)) / ratio - 1)
