"""What a budget buys, before any report is collected: closed forms and a quick simulation, in words and a small table.

A pure function of public facts. Ties through the bilateral gate: (1 - q)^2 of the true ties and q0^2 of all
other pairs. Best use of levels: the likelihood-ratio rule on the two reported levels. Detection: the
Neyman-Pearson bound of `sim.bounds` for attackers that keep to the protocol and claim the top level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from server.channel import Channel, Trust, level_law
from sim.bounds import PairLaw, neyman_pearson, tie_law
from sim.kernel.randomness import Streams

CANDIDATE_LEVELS = (1, 2, 3, 5, 8)
CANDIDATE_TARGETS = (2, 5, 12, 50)
HOPELESS_EPSILON = 2.0
USEFUL_F1 = 0.5
ENOUGH_POWER = 0.9


@dataclass(frozen=True)
class LevelsRow:
    """What one choice of the number of levels gives at this budget."""

    levels: int
    true_ties: float  # expected true ties that both ends report
    false_ties: float  # expected pairs without a tie that both ends report
    gate_f1: float  # of keeping all of these (the printed rule)
    levels_f1: float  # of keeping the best set of level pairs (likelihood ratio)


@dataclass(frozen=True)
class TargetsRow:
    """What attackers with this many targets each risk and get."""

    targets: int
    auc: float  # the bound on any rule that reads mutual pairs
    power: float  # largest share of attackers found at 1 % false positives
    attack_ties: float  # expected attack ties through the gate, all attackers together


@dataclass(frozen=True)
class Advice:
    """Tables and sentences of one piece of advice."""

    epsilon: float  # local budget of one list entry
    levels: int
    by_levels: tuple[LevelsRow, ...]
    by_targets: tuple[TargetsRow, ...]
    best_levels: int
    words: tuple[str, ...]
    warning: str | None


def warning(epsilon: float, levels: int) -> str | None:
    """A sentence when nothing can work at this local budget (epsilon of one list entry), else None."""
    if epsilon > HOPELESS_EPSILON:
        return None
    noise = 100 * Channel(epsilon, levels).false_positive
    least_bad = "" if levels == 1 else " (one level is the least bad)"
    return (
        f"at a local tie budget of {epsilon:.3g} per list entry, {noise:.0f} % of the users without a tie are "
        f"reported as tied: no rule recovers a useful graph from such lists{least_bad}; budgets of 4 and more can work"
    )


def levels_row(nodes: int, mean_degree: float, epsilon: float, levels: int, trust: Trust) -> LevelsRow:
    """Expected ties and F1 at the gate and with the best use of the levels, in closed form."""
    channel = Channel(epsilon, levels)
    ties = nodes * mean_degree / 2
    others = max(nodes * (nodes - 1) / 2 - ties, 0.0)
    true = ties * tie_law(with_zero(level_law(trust, levels)), channel)
    false = np.full(levels**2, others * channel.flip**2)
    order = np.argsort(-true, kind="stable")
    f1 = 2 * np.cumsum(true[order]) / (np.cumsum((true + false)[order]) + max(ties, 1e-9))
    return LevelsRow(levels, float(true.sum()), float(false.sum()), float(f1[-1]), float(f1.max()))


def with_zero(law: np.ndarray) -> np.ndarray:
    """A law of levels 1..kappa at both ends as one of 0..kappa."""
    return np.pad(law, ((1, 0), (1, 0)))


def victim_answers(levels: int, acceptance: float, vigilance: float, trust: Trust) -> np.ndarray:
    """(kappa + 1,): law of the level at which an honest user answers a stranger's tie."""
    answer = np.zeros(levels + 1)
    answer[1:] = acceptance * (1 - vigilance) * level_law(trust, levels).sum(0)
    answer[1] += acceptance * vigilance
    answer[0] = 1 - acceptance
    return answer


def targets_row(
    nodes: int,
    mean_degree: float,
    channel: Channel,
    trust: Trust,
    targets: int,
    attackers: int,
    answer: np.ndarray,
    streams: Streams,
    draws: int = 2000,
) -> TargetsRow:
    """The detection bound against compliant over-claimers, by a quick simulation.

    Honest degrees are taken as geometric with the published mean: heavier-tailed than Poisson, as real ones are.
    """
    attack = np.zeros((channel.levels + 1, channel.levels + 1))
    attack[-1] = answer
    degree = np.arange(math.ceil(20 * max(mean_degree, 0.5)) + 1)
    counts = (mean_degree / (1 + mean_degree)) ** degree
    noise = np.full(channel.levels**2, (nodes + attackers - 1) * channel.flip**2)
    received = attackers * targets / nodes * tie_law(attack.T, channel)
    tie = tie_law(with_zero(level_law(trust, channel.levels)), channel)
    honest = PairLaw(noise + received, tie, counts / counts.sum())
    exactly = np.zeros(targets + 1)
    exactly[targets] = 1.0
    chance = tie_law(attack, channel)
    rng = streams.generator("advise", ident=targets)
    bound = neyman_pearson(honest, [(1.0, PairLaw(noise, chance, exactly))], rng, (0.01,), draws)
    return TargetsRow(targets, bound.auc, bound.true_positive_rates[0], attackers * targets * float(chance.sum()))


def advise(
    nodes: int,
    mean_degree: float,
    epsilon: float,
    levels: int,
    targets: int = 12,
    share: float = 0.01,
    acceptance: float = 0.5,
    vigilance: float = 0.9,
    trust: Trust = "correlated",
    candidates: Sequence[int] = CANDIDATE_LEVELS,
    seed: int = 0,
) -> Advice:
    """What verification lists of `levels` levels give among `nodes` users at local budget `epsilon` per entry.

    `targets` per attacker and `share` (attackers over honest users) describe the attack to expect. Raises ValueError
    for fewer than 2 nodes, a budget that is not positive, fewer than 1 level, or more targets than nodes.
    """
    if nodes < 2 or epsilon <= 0 or levels < 1:
        found = f"found nodes {nodes}, epsilon {epsilon}, levels {levels}"
        raise ValueError(f"{found}; allowed: nodes >= 2, epsilon > 0, levels >= 1")
    if targets > nodes:
        raise ValueError(f"found {targets} targets per attacker; allowed: at most the {nodes} nodes")
    rows = tuple(levels_row(nodes, mean_degree, epsilon, k, trust) for k in sorted({*candidates, levels}))
    best = max(rows, key=lambda row: (round(row.levels_f1, 3), -row.levels))
    channel, attackers = Channel(epsilon, levels), round(share * nodes)
    answer = victim_answers(levels, acceptance, vigilance, trust)
    aimed = [t for t in sorted({*CANDIDATE_TARGETS, targets}) if 1 <= t <= nodes and attackers]
    attacks = tuple(targets_row(nodes, mean_degree, channel, trust, t, attackers, answer, Streams(seed)) for t in aimed)
    words = (*structure_words(rows, levels, best, nodes * mean_degree / 2), *attack_words(attacks, levels, attackers))
    return Advice(epsilon, levels, rows, attacks, best.levels, words, warning(epsilon, levels))


def plural(levels: int) -> str:
    """`1 level`, `5 levels`."""
    return f"{levels} level{'s' if levels > 1 else ''}"


def structure_words(rows: tuple[LevelsRow, ...], levels: int, best: LevelsRow, ties: float) -> list[str]:
    """Sentences on the ties."""
    own = next(row for row in rows if row.levels == levels)
    words = [
        f"with {plural(levels)}, both ends report about {own.true_ties:,.0f} of the {ties:,.0f} true ties, and "
        f"{own.false_ties:,.0f} pairs without one",
        f"keeping all of them gives F1 {own.gate_f1:.2f}, choosing by the two levels {own.levels_f1:.2f}; degrees, "
        "shared neighbours and labels can add to that",
    ]
    if best.levels != levels and best.levels_f1 > own.levels_f1 + 0.005:
        words.append(f"{plural(best.levels)} would give F1 {best.levels_f1:.2f} for the same budget")
        two = next((row for row in rows if row.levels == 2), None)
        if best.levels == 1 and levels > 2 and two is not None:
            words.append(f"one level cannot show who over-claims; 2 levels can, at F1 {two.levels_f1:.2f}")
    if best.levels_f1 < USEFUL_F1:
        words.append("no number of levels gives a useful graph at this budget")
    return words


def attack_words(rows: tuple[TargetsRow, ...], levels: int, attackers: int) -> list[str]:
    """Sentences on detection."""
    if not rows:
        return []
    if levels == 1:
        return ["with one level nobody over-claims: what is left is the row test, against users who skip the noise"]
    found = [row for row in rows if row.power >= ENOUGH_POWER]
    goal = f"{100 * ENOUGH_POWER:.0f} % of the compliant over-claimers at 1 % false positives"
    if not found:
        return [f"no rule on mutual pairs finds {goal}, at any number of targets tried"]
    words = [f"a rule can find {goal} from {found[0].targets} targets each on"]
    hidden = [row for row in rows if row.targets < found[0].targets]
    if hidden:
        ties = f"{hidden[-1].attack_ties:,.0f} ties of {attackers} attackers"
        words.append(f"with {hidden[-1].targets} targets each they stay hidden; that is {ties}")
    return words


def show(advice: Advice) -> None:
    """Print the advice: two small tables, then the sentences."""
    import sys

    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    ties = Table("levels", "true ties", "false ties", "F1, all", "F1, by levels", box=None, pad_edge=False)
    for row in advice.by_levels:
        counts = f"{row.true_ties:,.0f}", f"{row.false_ties:,.0f}"
        mark = " *" if row.levels == advice.levels else ""
        ties.add_row(f"{row.levels}{mark}", *counts, f"{row.gate_f1:.3f}", f"{row.levels_f1:.3f}")
    console.print(f"ties that both ends report, at local epsilon {advice.epsilon:.3g} (* as asked)", style="bold")
    console.print(ties)
    if advice.by_targets:
        attacks = Table("targets each", "AUC", "found at 1 % FPR", "attack ties", box=None, pad_edge=False)
        for attack in advice.by_targets:
            found, placed = f"{100 * attack.power:.0f} %", f"{attack.attack_ties:,.0f}"
            attacks.add_row(str(attack.targets), f"{attack.auc:.3f}", found, placed)
        console.print(f"compliant over-claimers with {plural(advice.levels)}: what no rule can beat", style="bold")
        console.print(attacks)
    for sentence in advice.words:
        console.print(f"- {sentence}")
    if advice.warning:
        console.print(f"warning: {advice.warning}", style="yellow")
