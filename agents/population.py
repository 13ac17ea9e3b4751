"""The honest users' private data in arrays, one row each, and the kernel that makes all their reports at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.ties.base import no_lists
from agents.protocol import RoundCall
from agents.report import ReportBatch
from agents.trust import CorrelatedTrust, Trust
from sim.kernel.component import Section
from sim.kernel.randomness import Streams, digest64

MEMOIZED = 0
"""The perturbation epoch of noise that is drawn once and kept."""


class HonestUsers(Section):
    """How honest users rate, answer strangers, and show up."""

    trust: Trust = CorrelatedTrust()
    """How users rate their real ties, and strangers that took them in."""
    vigilance: float = Field(0.9, ge=0, le=1)
    """Probability of recognising a stranger after accepting its tie; it is then rated 1."""
    acceptance: float = Field(0.5, ge=0, le=1)
    """Probability of accepting a tie that a stranger asks for; refused ones are rated 0."""
    availability: float = Field(1.0, ge=0, le=1)
    """Probability of being reachable in a round."""


@dataclass
class Population:
    """Rows 0..n-1 belong to the honest users with those stable ids; only `HonestUser` reads them, each its own.

    Lists have a column per participant, injected users last. A tie that an attacker asks for is answered once and then
    held, like every other entry.
    """

    settings: HonestUsers
    features: sparse.csr_array  # (n, d) float32 in [0, 1]
    lists: sparse.csr_array  # (n, N) int8 levels
    streams: Streams
    levels: int
    answered: dict[tuple[int, int], int] = field(default_factory=dict)  # (victim, asker) -> level, 0 = refused
    _digests: np.ndarray | None = None

    @classmethod
    def found(
        cls,
        settings: HonestUsers,
        features: sparse.csr_array,
        ties: sparse.csr_array,
        participants: int,
        levels: int,
        streams: Streams,
    ) -> Population:
        """Rate every tie of an (n, n) symmetric adjacency by the trust model; lists get a column per participant."""
        upper = sparse.triu(ties, k=1, format="csr").tocoo()
        u, v = upper.coords
        rated = settings.trust.levels(len(u), levels, streams.generator("trust"))
        rows, columns = np.concatenate([u, v]), np.concatenate([v, u])
        values = np.concatenate([rated[:, 0], rated[:, 1]])
        lists = sparse.csr_array((values, (rows, columns)), shape=(ties.shape[0], participants))
        lists.sort_indices()
        return cls(settings, features, lists, streams, levels)

    @property
    def size(self) -> int:
        """Number of honest users n."""
        return self.features.shape[0]

    def available(self, round: int) -> np.ndarray:
        """(n,) bool: who can be reached in a round."""
        if self.settings.availability == 1.0:
            return np.ones(self.size, dtype=bool)
        return self.streams.generator("availability", epoch=round).random(self.size) < self.settings.availability

    def answer(self, victim: int, asker: int, earned: int = 0) -> int:
        """The level that `victim` holds about a stranger who asks for a tie: decided once per pair.

        0 with probability 1 - acceptance; 1 if it accepts and recognises a stranger (probability vigilance); else a
        level from the trust model, as for a real tie. Good behaviour towards somebody who accepted lifts it to
        `earned`.
        """
        generator = self.streams.generator("answer", ident=victim, block=asker)
        accept, recognise = generator.random(2)
        rated = int(self.settings.trust.levels(1, self.levels, generator)[0, 1])
        if accept >= self.settings.acceptance:
            return 0
        return max(1 if recognise < self.settings.vigilance else rated, min(earned, self.levels))

    def hold(self, answers: list[tuple[int, int, int]]) -> None:
        """Write answers (victim, asker, level) into the victims' lists."""
        changes = [(v, a, level - self.answered.get((v, a), 0)) for v, a, level in answers]
        self.answered.update({(v, a): level for v, a, level in answers})
        changes = [change for change in changes if change[2]]
        if not changes:
            return
        victims, askers, moves = (np.array(column) for column in zip(*changes))
        moved = sparse.csr_array((moves.astype(np.int8), (victims, askers)), shape=self.lists.shape)
        held: Any = self.lists + moved
        self.lists = held
        self.lists.eliminate_zeros()
        self.lists.sort_indices()

    def epochs(self, senders: np.ndarray, call: RoundCall) -> np.ndarray:
        """What names the feature noise of each sender: the round, or a digest of its row when noise is memoized."""
        if not call.memoized:
            return np.full(len(senders), call.epoch, dtype=np.uint64)
        return self.digests()[senders]

    def digests(self) -> np.ndarray:
        """(n,) uint64: a digest of each user's feature row."""
        if self._digests is None:
            f = self.features
            cuts = list(zip(f.indptr[:-1], f.indptr[1:]))
            rows = (
                np.concatenate([f.indices[a:b].astype(np.float64), f.data[a:b].astype(np.float64)]) for a, b in cuts
            )
            self._digests = np.array([digest64(row) for row in rows], dtype=np.uint64)
        return self._digests

    def reports(self, senders: np.ndarray, call: RoundCall) -> ReportBatch:
        """The reports of `senders` (ascending ids) for one phase. Features travel in phase 0 only."""
        protocol = call.protocol
        features: Any
        if call.phase == 0:
            features = protocol.features.perturb(
                self.features[senders], senders, self.epochs(senders, call), self.streams
            )
        else:
            features = sparse.csr_array((len(senders), self.features.shape[1]), dtype=np.float32)
        if protocol.ties.form == "none":
            ties, numbers = no_lists(len(senders), self.lists.shape[1]), np.zeros((len(senders), 0))
        else:
            made = protocol.ties.encode(self.lists[senders], senders, self.streams, call)
            ties, numbers = made.lists, made.numbers
        return ReportBatch(senders, features, ties, numbers)
