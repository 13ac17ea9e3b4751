"""Randomised response as it is: every reported tie is published."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from agents.privacy.ties import TieProtocol
from agents.protocol import Protocol
from server.bits import BIT_FORMS, BitChannel, entry_channel, estimated_ties, observed_pairs
from server.density import dense_note, size_warning
from server.estimates import PairEstimate
from server.evidence import Evidence, Structure
from server.refinement._pairs import among, reported_pairs, triangle_cells
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams


class RandomizedResponse(Refinement, kind="randomized-response"):
    """Publishes every reported tie, noise and all; the graph is dense unless epsilon is large.

    `debiased` gives each published tie the weight P(tie | reported), with the density of the true graph estimated
    without bias from the bits, so that noisy neighbourhoods weigh about as much as true ones. (The unbiased matrix
    (bit - q) / (p - q) itself is negative wherever nothing was reported: no graph to train on.) `ends`: where both ends
    report, a tie needs `both` or `either`.
    """

    source: ClassVar[str] = "Warner's randomised response; EdgeRand, SymRR"
    accepts: ClassVar[tuple[str, ...]] = BIT_FORMS
    weighted: ClassVar[bool] = True

    variant: Literal["raw", "debiased"] = "raw"
    ends: Literal["both", "either"] = "both"

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        from agents.privacy.ties.pair_bits import PairBits

        return PairBits(epsilon=epsilon)

    def warning(self, protocol: Protocol) -> str | None:
        if protocol.ties.form not in BIT_FORMS:
            return None
        return size_warning(protocol, protocol.participants, self._channel(protocol.ties))

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        u, v = self._reported(evidence, kept)
        tie_if_reported, _ = self._posterior(evidence, kept, len(u))
        weight = np.full(len(u), tie_if_reported, dtype=np.float32) if self.variant == "debiased" else None
        notes = dense_note("randomized-response", int(kept.sum()), float(len(u)))
        return Structure(u, v, weight, probability=np.full(len(u), tie_if_reported), notes=notes)

    def pair_estimate(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> PairEstimate:
        """Two probabilities: of a tie that was reported, and of one that was not."""
        members = np.flatnonzero(kept)
        place = np.cumsum(kept) - 1
        u, v = self._reported(evidence, kept)
        codes = np.zeros(len(members) * (len(members) - 1) // 2, dtype=np.uint8)
        codes[triangle_cells(place[u], place[v], len(members))] = 1
        reported, unreported = self._posterior(evidence, kept, len(u))
        return PairEstimate(members, codes, np.array([unreported, reported]))

    def _reported(self, evidence: Evidence, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = evidence.protocol.ties.two_ended and self.ends == "both"
        return among(kept, *reported_pairs(evidence.lists, ends=2 if both else 1))

    def _channel(self, ties: TieProtocol) -> BitChannel:
        """The channel of a published pair."""
        channel = entry_channel(ties)
        if not ties.two_ended:
            return channel
        return channel.twice() if self.ends == "both" else channel.either()

    def _posterior(self, evidence: Evidence, kept: np.ndarray, ones: int) -> tuple[float, float]:
        """(P(tie | reported), P(tie | not reported)) for exchangeable pairs."""
        channel = self._channel(evidence.protocol.ties)
        pairs = max(observed_pairs(evidence, kept), 1.0)
        density = min(max(estimated_ties(ones, pairs, channel), 0.5) / pairs, 1.0)
        seen = density * channel.hit + (1 - density) * channel.false_alarm
        missed = density * (1 - channel.hit) + (1 - density) * (1 - channel.false_alarm)
        return density * channel.hit / seen, density * (1 - channel.hit) / missed
