"""The audit of a whole protocol: every mechanism at its parameters, one agent's whole report, and rounds together."""

from __future__ import annotations

import math
from collections.abc import Callable

from agents.privacy.audit.bounds import clopper_pearson
from agents.privacy.audit.epsilon import ALPHA, Effort, World, audit_epsilon
from agents.privacy.audit.events import Observed
from agents.privacy.audit.features import FeatureWorld, audit_features, claim, constant_row
from agents.privacy.audit.others import LabelWorld, audit_labels
from agents.privacy.audit.rows import NO_VIOLATION, NOT_LDP, AuditRow
from agents.privacy.audit.ties import TieWorld, audit_memoized_ties, audit_ties, changes, exempt, local_epsilon
from agents.privacy.labels import LabelMechanism
from agents.protocol import Protocol
from sim.kernel.randomness import Streams

ROUNDS = 3
"""Rounds that a memoized mechanism is watched over."""


class ReportWorld:
    """Whole reports of one user: the observations of several worlds side by side."""

    def __init__(self, label: str, parts: list[World]) -> None:
        self.label, self.parts = label, parts

    def draw(self, count: int) -> Observed:
        return [group for part in self.parts for group in part.draw(count)]


def audit_protocol(
    protocol: Protocol, labels: LabelMechanism, across_rounds: str, moving: bool, streams: Streams,
    effort: Effort | None = None, tell: Callable[[str], None] = lambda stage: None,
) -> list[AuditRow]:  # fmt: skip
    """Every line about the reports of an honest user.

    `protocol` holds the local budgets of one report. `across_rounds` is fresh, split or memoized; `moving` says whether
    true lists may change between rounds, in which case memoized reports are not epsilon-LDP over rounds. `tell` hears
    which part comes next.
    """
    streams = streams.child("audit")
    private = protocol.features.kind != "none" and protocol.dimensions > 0
    rows: list[AuditRow] = []
    if private:
        tell("features")
        rows += audit_features(protocol.features, protocol.dimensions, streams, effort)
    tell("ties")
    rows += audit_ties(protocol, streams, effort)
    tell("labels")
    rows += audit_labels(labels, protocol.classes, streams, effort)
    tell("one whole report")
    rows += audit_whole_report(protocol, labels, private, streams, effort)
    if across_rounds == "memoized":
        tell("rounds")
        if private:
            rows += audit_memoized_features(protocol, streams, effort)
        rows += audit_memoized_ties(protocol, streams, effort, ROUNDS)
        if moving and exempt(protocol.ties) is None:
            rows.append(moving_ties(protocol, streams, effort))
    return rows


def audit_whole_report(
    protocol: Protocol, labels: LabelMechanism, private: bool, streams: Streams, effort: Effort | None = None
) -> list[AuditRow]:
    """One agent's report in two neighbouring worlds: other features, another level of one entry, another class."""
    epsilon = delta = 0.0
    parts: list[list[World]] = [[], []]
    cost = 1.0
    if private:
        mine = claim(protocol.features, protocol.dimensions)
        epsilon, delta = epsilon + mine[0], delta + mine[1]
        cost = max(cost, protocol.features.sampled(protocol.dimensions) / 2)
        for world in (0, 1):
            row = constant_row(world, protocol.dimensions)
            parts[world].append(FeatureWorld(protocol.features, row, "", streams.child(f"whole/features/{world}")))
    if exempt(protocol.ties) is None:
        epsilon, cost = epsilon + local_epsilon(protocol.ties), max(cost, 8.0)
        for world in (0, 1):
            level = world * protocol.ties.levels
            parts[world].append(TieWorld(protocol, level, streams.child(f"whole/ties/{world}")))
    if labels.transition(protocol.classes) is not None and protocol.classes > 1:
        epsilon += labels.spent(protocol.classes)
        for world in (0, 1):
            parts[world].append(LabelWorld(labels, protocol.classes, world, streams.child(f"whole/labels/{world}")))
    if len(parts[0]) < 2:
        return []
    worlds: list[World] = [ReportWorld(f"world {world + 1}", parts[world]) for world in (0, 1)]
    return [audit_epsilon("one whole report", worlds, epsilon, delta, (effort or Effort()).scaled(cost))]


def audit_memoized_features(protocol: Protocol, streams: Streams, effort: Effort | None = None) -> list[AuditRow]:
    """One answer for a row that stays: several reports together must not show more than one of them."""
    epsilon, delta = claim(protocol.features, protocol.dimensions)
    worlds: list[World] = [
        FeatureWorld(
            protocol.features, constant_row(value, protocol.dimensions), f"all {value:g}",
            streams.child(f"memoized {value}"), rounds=ROUNDS,
        )
        for value in (0.0, 1.0)
    ]  # fmt: skip
    effort = (effort or Effort()).scaled(max(ROUNDS, ROUNDS * protocol.features.sampled(protocol.dimensions) / 2))
    name = f"epsilon, {ROUNDS} rounds memoized"
    return [audit_epsilon(f"features: {protocol.features.kind}", worlds, epsilon, delta, effort, name)]


def moving_ties(protocol: Protocol, streams: Streams, effort: Effort | None = None) -> AuditRow:
    """What the moment of change gives away: memoized reports of a list that stays never differ, so a difference between
    two rounds tells the worlds apart for certain. The measured epsilon grows with the draws, without limit."""
    draws = min((effort or Effort()).pilot, 20_000)
    top = protocol.ties.levels
    stays = changes(TieWorld(protocol, top, streams.child("stays"), (top, top)), draws)
    moves = changes(TieWorld(protocol, top, streams.child("moves"), (top, 0)), draws)
    low = clopper_pearson(moves, draws, ALPHA / 2)[0]
    high = clopper_pearson(stays, draws, ALPHA / 2)[1]
    measured = max(0.0, math.log(low / high)) if low > 0 else 0.0
    return AuditRow(
        f"ties: {protocol.ties.kind}", "epsilon, 2 rounds memoized, truth moves", f"entry {top} stays / moves to 0",
        2 * local_epsilon(protocol.ties), measured, draws, math.nan, NOT_LDP if moves else NO_VIOLATION,
        "the moment of change is visible, whatever epsilon is charged",
    )  # fmt: skip


def exit_code(rows: list[AuditRow]) -> int:
    """1 when a line violates its claim, else 0."""
    return int(any(row.violates for row in rows))
