"""Reports as bits: what a reported one says about a tie, for every protocol whose lists can be read as bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.privacy.ties import TieProtocol
from agents.privacy.ties.base import power
from server.channel import CERTAIN
from server.evidence import Evidence

BIT_FORMS = ("pair-bits", "binary-list", "verification-list", "degree-and-bits")
"""Report forms whose lists are read as bits."""


@dataclass(frozen=True)
class BitChannel:
    """P(1 | tie) and P(1 | no tie)."""

    hit: float
    false_alarm: float

    def debiased(self, rate: np.ndarray) -> np.ndarray:
        """Share of ties behind a share of ones, (rate - q0) / (p - q0) with p = P(1 | tie) and q0 = P(1 | no tie).

        Not clipped: an observed rate may lie outside what the channel can produce on average.
        """
        return (rate - self.false_alarm) / (self.hit - self.false_alarm)

    def twice(self) -> BitChannel:
        """The conjunction of two independent bits about one tie."""
        return BitChannel(self.hit**2, self.false_alarm**2)

    def either(self) -> BitChannel:
        """The disjunction of two independent bits about one tie."""
        return BitChannel(1 - (1 - self.hit) ** 2, 1 - (1 - self.false_alarm) ** 2)


def entry_channel(ties: TieProtocol) -> BitChannel:
    """The channel of one list entry, read as 1 wherever its level is above 0.

    A level of 1..kappa under (kappa+1)-ary randomised response is reported as 0 with probability q, and a 0 above 0
    with probability kappa q, q = 1 / (e^epsilon + kappa); a bit is flipped either way with probability
    1 / (1 + e^epsilon).
    """
    protocol: Any = ties
    least = 1 / power(CERTAIN)
    return BitChannel(1.0 - max(protocol.flip, least), max(protocol.false_positive, least))


def pair_channel(ties: TieProtocol) -> BitChannel:
    """The channel of a pair's one bit: the entry itself where one end speaks, both ends' conjunction where two do."""
    channel = entry_channel(ties)
    return channel.twice() if ties.two_ended else channel


def share_of_ones(evidence: Evidence, kept: np.ndarray) -> float:
    """Noisy ones among the pairs of kept users about which the server has bits; NaN when there is no such pair."""
    if evidence.protocol.ties.two_ended:
        u, v = evidence.pairs.u, evidence.pairs.v
    else:
        u, v = np.repeat(np.arange(evidence.n), np.diff(evidence.lists.indptr)), evidence.lists.indices
    pairs = observed_pairs(evidence, kept)
    ones = float((kept[u] & kept[v]).sum())
    # Where users are silent, `pairs` is an expectation, which the ones may exceed.
    return min(ones / pairs, 1.0) if pairs else float("nan")


def observed_pairs(evidence: Evidence, kept: np.ndarray) -> float:
    """Pairs of kept users about which the server has bits: those whose ends both reported, and in protocols where one
    end speaks, half of those with one silent end (which half is hidden by the permutation of ids)."""
    speaking, silent = int((kept & evidence.reported).sum()), int((kept & ~evidence.reported).sum())
    both = speaking * (speaking - 1) / 2
    return both if evidence.protocol.ties.two_ended else both + speaking * silent / 2


def estimated_ties(ones: int, pairs: float, channel: BitChannel) -> float:
    """Number of ties behind `ones` noisy ones among `pairs` bits, (ones - q0 M) / (p - q0), not below 0.

    Post-processing of the reports, so it costs no budget. Standard deviation about sqrt(M q0 (1 - q0)) / (p - q0).
    """
    return max(0.0, (ones - channel.false_alarm * pairs) / (channel.hit - channel.false_alarm))
