"""`graphwarden audit`: does every mechanism keep what the scenario promises, as far as drawn reports can tell?"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass

from agents.privacy.audit import AuditRow, Effort, audit_protocol, exit_code
from agents.privacy.audit.rows import NOT_LDP
from agents.protocol import Protocol
from sim.kernel.randomness import Streams
from sim.premises import load_graph, public_protocol, with_features
from sim.scenario import Scenario

STILL = {
    "timing": ("always",),
    "claims": ("maximal", "level-match", "minimal", "honest-like", "collusive"),
    "targets": ("cyclic", "random", "same-victims", "high-degree", "low-degree", "class", "community", "maximal-gain",
                "random-node", "random-value"),
}  # fmt: skip
"""Kinds by which all ties are asked for before the first report, and at the same level ever after."""


@dataclass(frozen=True)
class Audit:
    """What an audit found: its lines, what they say in a table, and the exit code (1: a claim is violated)."""

    rows: list[AuditRow]
    text: str
    exit_code: int


def audit(scenario: Scenario, effort: Effort | None = None, tell: Callable[[str], None] = lambda stage: None) -> Audit:
    """Draw reports of honest users at the scenario's parameters and compare them with its claims.

    Only mechanisms run: no round is played and nothing is trained. Same scenario and seed, same lines.
    """
    tell("graph")
    streams = Streams(scenario.seed)
    graph = with_features(scenario, load_graph(scenario, streams))
    participants = graph.nodes + sum(group.size(graph.nodes) for group in scenario.population.attackers)
    protocol = public_protocol(scenario, graph, participants)
    rows = audit_protocol(
        protocol,
        scenario.privacy.labels,
        scenario.privacy.across_rounds,
        truth_may_move(scenario),
        streams,
        effort,
        tell,
    )
    return Audit(rows, table(rows, headline(scenario, protocol)), exit_code(rows))


def truth_may_move(scenario: Scenario) -> bool:
    """Whether some honest user's list may change after its first report: an attacker asks for a tie in a later round,
    or earns a higher level with time. Kinds that are not known to keep still, a user's own included, may do so."""
    if scenario.rounds == 1:
        return False
    groups = scenario.population.attackers
    return any(getattr(group, part).kind not in kinds for group in groups for part, kinds in STILL.items())


def headline(scenario: Scenario, protocol: Protocol) -> str:
    """What the claims are about."""
    parts = [f"unit {protocol.unit}", f"{scenario.rounds} rounds, noise {scenario.privacy.across_rounds}"]
    if protocol.features.kind != "none":
        epsilon, delta = protocol.features.spent(protocol.dimensions)
        sampled = f"{protocol.features.sampled(protocol.dimensions)} of {protocol.dimensions} coordinates"
        parts.append(f"features epsilon {epsilon:.4g}{f', delta {delta:.2g}' if delta else ''} on {sampled}")
    if protocol.ties.form != "none":
        parts.append(f"ties epsilon {protocol.ties.epsilon:.4g} per list entry of one report")
    return f"{scenario.name}: " + "; ".join(parts)


def table(rows: list[AuditRow], title: str) -> str:
    """The lines as text, with what they can and cannot show."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, pad_edge=False)
    for name, justify in (
        ("claim about", "left"), ("quantity", "left"), ("worst case", "left"), ("claimed", "right"),
        ("measured", "right"), ("draws", "right"), ("would notice", "right"), ("verdict", "left"),
    ):  # fmt: skip
        grid.add_column(name, justify=justify, no_wrap=name != "quantity")  # type: ignore[arg-type]
    for row in rows:
        style = "bold red" if row.violates else None
        grid.add_row(
            row.subject, row.quantity, row.case, number(row.claimed), number(row.measured),
            f"{row.draws:,}" if row.draws else "", noticed(row), row.verdict, style=style,
        )  # fmt: skip
    sink = io.StringIO()
    console = Console(file=sink, width=170, highlight=False)
    console.print(title, style="bold")
    console.print(grid)
    for note in sorted({f"{row.subject}: {row.note}" for row in rows if row.note}):
        console.print(f"note: {note}", soft_wrap=True)
    console.print(closing(rows), soft_wrap=True)
    return sink.getvalue()


def number(value: float) -> str:
    """Four digits, or nothing where there is no number."""
    return "" if math.isnan(value) else f"{value:.4g}"


def noticed(row: AuditRow) -> str:
    """The smallest excess that the line would have found with probability 0.99."""
    if math.isnan(row.visible) or row.draws == 0:
        return ""
    if row.quantity.startswith("bias"):
        return f"+-{row.visible:.2g}"
    if row.visible > 9:
        return "nothing" if math.isinf(row.visible) else f"x {1 + row.visible:.1g}"
    return f"+{100 * row.visible:.0f} %"


def closing(rows: list[AuditRow]) -> str:
    """One sentence on the whole."""
    broken = sum(row.violates for row in rows)
    if broken:
        return f"{broken} of {len(rows)} lines violate their claim (chance of a false alarm: 1e-6 a line)"
    ending = (
        "; over rounds the reports are not epsilon-LDP, since truths move"
        if NOT_LDP in {r.verdict for r in rows}
        else ""
    )
    return f"no violation found in {len(rows)} lines, which is not a proof that there is none{ending}"
