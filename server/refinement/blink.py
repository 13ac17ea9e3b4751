"""Blink: a prior from noisy degrees, Bayes' rule on noisy bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.ties import TieProtocol
from agents.privacy.ties.blink_reports import BitEvidence, BlinkReports
from agents.protocol import Protocol
from server.bits import entry_channel
from server.density import dense_note
from server.estimates import PairEstimate
from server.evidence import Evidence, Structure
from server.refinement._calibration import sigmoid
from server.refinement._pairs import contains, triangle_cells, triangle_pairs
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams, digest64

GRID = 16
"""Degrees are rounded to 1/16 of a tie, so that users share the parameters of their degree."""
SWEEPS, TOLERANCE = 200, 1e-9


class Blink(Refinement, kind="blink"):
    """Posterior probability of every tie, from a beta model fitted to noisy degrees and the noisy bits (Blink).

    `hard` publishes the pairs whose posterior is above 1/2, `soft` every pair with its posterior as weight (a dense
    graph), `hybrid` the floor(sum of posteriors) most probable pairs with theirs. `evidence` is what users are asked
    for with `privacy.ties.kind: auto`: `two-list` is the original, both lists hold a bit about a tie; `single-bit` is
    one bit a pair, weighed as one. Where reports hold no degree (verification lists), it is estimated from the bits.
    """

    source: ClassVar[str] = "Blink: Zhu, Tan & Xiao, CCS 2023, sections 4-5"
    accepts: ClassVar[tuple[str, ...]] = ("degree-and-bits", "verification-list", "binary-list", "pair-bits")
    weighted: ClassVar[bool] = True

    variant: Literal["hard", "soft", "hybrid"] = "hard"
    evidence: BitEvidence = "two-list"
    delta: float = Field(0.1, gt=0, lt=1)

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        return BlinkReports(epsilon=epsilon, delta=self.delta, evidence=self.evidence)

    def warning(self, protocol: Protocol) -> str | None:
        if self.variant != "soft":
            return None
        pairs = protocol.participants * (protocol.participants - 1) / 2
        return "; ".join(dense_note("blink soft", protocol.participants, pairs)) or None

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        posterior = Posterior.of(evidence, kept)
        if self.variant == "soft":
            u, v = triangle_pairs(np.arange(posterior.pairs), posterior.n)
            weight = positive(posterior.dense())
            notes = dense_note("blink soft", posterior.n, float(posterior.pairs))
            return posterior.structure(u, v, weight, hard=weight > 0.5, notes=notes)
        if self.variant == "hard":
            u, v = posterior.above(0.0)
            return posterior.structure(u, v)
        u, v, score = posterior.best(int(posterior.expected), streams)
        return posterior.structure(u, v, positive(sigmoid(score).astype(np.float32)))

    def pair_estimate(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> PairEstimate:
        """The posterior of all pairs of kept users."""
        posterior = Posterior.of(evidence, kept)
        return PairEstimate(posterior.members, None, posterior.dense())

    def warm_up(self) -> None:
        from server.refinement._blink_kernels import beta_model, expected_pairs

        one = np.ones(2)
        beta_model(one, one, 1, 1.0)
        expected_pairs(one, one, one)


@dataclass(frozen=True)
class Posterior:
    """Log-odds of all pairs of `members`: beta_i + beta_j + silence_i + silence_j, and `gain` where a one was reported.

    Positions 0..m-1 stand for the members. `u`, `v` list the reported pairs in row-major order.
    """

    members: np.ndarray  # (m,) ascending server ids
    beta: np.ndarray  # (m,)
    silence: np.ndarray  # (m,) log likelihood ratio of a zero from this user; shared out where one end speaks
    u: np.ndarray
    v: np.ndarray
    gain: np.ndarray  # what the reported ones add to the log-odds

    @classmethod
    def of(cls, evidence: Evidence, kept: np.ndarray) -> Posterior:
        """The posterior behind some reports."""
        members = np.flatnonzero(kept)
        inside: sparse.csr_array = evidence.lists[members][:, members]
        inside = sparse.csr_array((np.ones(inside.nnz, np.int8), inside.indices, inside.indptr), shape=inside.shape)
        ties, channel = evidence.protocol.ties, entry_channel(evidence.protocol.ties)
        either = sparse.triu(inside + inside.T, k=1, format="csr")
        either.sort_indices()
        rows = np.repeat(np.arange(len(members), dtype=np.int32), np.diff(either.indptr))
        one = np.log(channel.hit) - np.log(channel.false_alarm)
        zero = np.log1p(-channel.hit) - np.log1p(-channel.false_alarm)
        told = either.data if ties.two_ended else np.minimum(either.data, 1)
        silence = np.where(evidence.reported[members], zero, 0.0) if ties.two_ended else np.full(len(members), zero / 2)
        beta = beta_parameters(noisy_degrees(evidence, members, inside))
        return cls(members, beta, silence, rows, either.indices.astype(np.int32), told * (one - zero))

    @property
    def n(self) -> int:
        """Number of members."""
        return len(self.members)

    @property
    def pairs(self) -> int:
        """n (n - 1) / 2."""
        return self.n * (self.n - 1) // 2

    @property
    def base(self) -> np.ndarray:
        """(m,) what a user adds to the log-odds of a pair that nobody reported."""
        return self.beta + self.silence

    @property
    def scores(self) -> np.ndarray:
        """Log-odds of the reported pairs."""
        return self.base[self.u] + self.base[self.v] + self.gain

    @property
    def expected(self) -> float:
        """Sum of all posteriors: the expected number of ties."""
        from server.refinement._blink_kernels import expected_pairs

        groups, counts = np.unique(np.stack([self.beta, self.silence]), axis=1, return_counts=True)
        unreported = expected_pairs(groups[0], counts.astype(np.float64), groups[1])
        quiet = sigmoid(self.base[self.u] + self.base[self.v])
        return float(unreported - quiet.sum() + sigmoid(self.scores).sum())

    def above(self, cut: float) -> tuple[np.ndarray, ...]:
        """Pairs whose log-odds exceed `cut`, without a pass over all pairs: the reported ones, and those of such high
        degrees that they need no report."""
        u, v, score = self._candidates(cut)
        good = score > cut
        return row_major(u[good], v[good])

    def best(self, count: int, streams: Streams) -> tuple[np.ndarray, ...]:
        """The `count` pairs of highest log-odds, and those; equal ones are drawn, keyed by reports and not by ids."""
        count = min(count, self.pairs)
        if count == 0:
            return self.u[:0], self.v[:0], self.gain[:0]
        scores = self.scores
        lowest = -np.inf if count > len(scores) else float(np.partition(scores, -count)[-count])
        u, v, score = self._candidates(lowest)
        cut = np.partition(score, -count)[-count]
        sure, tied = np.flatnonzero(score > cut), np.flatnonzero(score == cut)
        rest = tied[np.argsort(self._marks(u[tied], v[tied], streams), kind="stable")][: count - len(sure)]
        chosen = np.concatenate([sure, rest])
        return row_major(u[chosen], v[chosen], score[chosen])

    def dense(self) -> np.ndarray:
        """(n(n-1)/2,) float32 posteriors in row-major order of the upper triangle."""
        out, base = np.empty(self.pairs, dtype=np.float32), self.base
        start = 0
        for i in range(self.n - 1):
            end = start + self.n - 1 - i
            out[start:end] = sigmoid(base[i] + base[i + 1 :])
            start = end
        out[triangle_cells(self.u, self.v, self.n)] = sigmoid(self.scores)
        return out

    def structure(
        self,
        u: np.ndarray,
        v: np.ndarray,
        weight: np.ndarray | None = None,
        hard: np.ndarray | None = None,
        notes: tuple[str, ...] = (),
    ) -> Structure:
        """Pairs of positions as a published structure; weights, where there are any, are the posteriors."""
        ends = self.members[u].astype(np.int32), self.members[v].astype(np.int32)
        probability = sigmoid(self._log_odds(u, v)) if weight is None else weight
        return Structure(*ends, weight, hard, probability, {"expected_ties": self.expected}, notes)

    def _log_odds(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Log-odds of listed pairs."""
        out = self.base[u] + self.base[v]
        reported = triangle_cells(self.u, self.v, self.n)
        cells = triangle_cells(u, v, self.n)
        known = contains(reported, cells)
        out[known] += self.gain[np.searchsorted(reported, cells[known])]
        return out

    def _candidates(self, cut: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All pairs that may reach `cut`, with their log-odds: reported ones and unreported ones of high degree."""
        u, v = pairs_above(self.base, cut - 1e-9)
        fresh = ~contains(triangle_cells(self.u, self.v, self.n), triangle_cells(u, v, self.n))
        u, v = u[fresh], v[fresh]
        score, scores = self.base[u] + self.base[v], self.scores
        near = scores >= cut
        ends = np.concatenate([self.u[near], u]), np.concatenate([self.v[near], v])
        return *ends, np.concatenate([scores[near], score])

    def _marks(self, u: np.ndarray, v: np.ndarray, streams: Streams) -> np.ndarray:
        """A random word per pair that is the same whatever the users are called."""
        from server._canonical import fingerprints

        told = sparse.csr_array((np.ones(len(self.u), np.int8), (self.u, self.v)), shape=(self.n, self.n))
        told = sparse.csr_array(told + told.T)
        colours = self.beta.view(np.uint64) ^ streams.key("refinement/ties")[0]
        words = fingerprints(told.indptr, told.indices, told.data, colours, 2)
        order = np.argsort(words, kind="stable")
        rng = np.random.Generator(np.random.Philox(digest64(words[order])))
        draws = np.empty(self.n)
        draws[order] = rng.random(self.n)
        return (draws[u] + draws[v]) % 1.0


def noisy_degrees(evidence: Evidence, members: np.ndarray, inside: sparse.csr_array) -> np.ndarray:
    """(m,) degrees as reported, or estimated without bias from the members' own bits; the median for silent users."""
    ties, channel = evidence.protocol.ties, entry_channel(evidence.protocol.ties)
    if evidence.numbers and evidence.numbers[0].shape[1] and ties.form == "degree-and-bits":
        degrees = evidence.numbers[0][members, 0].astype(np.float64)
    else:
        ones = inside if ties.two_ended else (inside + inside.T) > 0
        rate = np.asarray(ones.sum(axis=1)).ravel() / max(len(members) - 1, 1)
        degrees = channel.debiased(rate) * (len(members) - 1)
        degrees[~evidence.reported[members]] = np.nan
    known = ~np.isnan(degrees)
    return np.where(known, degrees, np.median(degrees[known]) if known.any() else 1.0)


def beta_parameters(degrees: np.ndarray) -> np.ndarray:
    """(m,) beta-model parameters for noisy degrees, clipped to 1..m-2 and rounded to 1/16."""
    from server.refinement._blink_kernels import beta_model

    m = len(degrees)
    if m < 3:
        return np.zeros(m)
    rounded = np.clip(np.rint(degrees * GRID) / GRID, 1.0, m - 2.0)
    values, group, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    return beta_model(values, counts.astype(np.float64), SWEEPS, TOLERANCE)[group]


def positive(weight: np.ndarray) -> np.ndarray:
    """Weights as a structure may hold them: where a posterior is below what float32 can tell from 0, the least one."""
    return np.maximum(weight, np.finfo(np.float32).tiny)


def row_major(u: np.ndarray, v: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
    """Pairs, and what goes with them, in row-major order."""
    order = np.lexsort((v, u))
    return tuple(array[order] for array in (u, v, *others))


def pairs_above(base: np.ndarray, cut: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs u < v with base_u + base_v > cut, in time O(n log n + output)."""
    order = np.argsort(-base, kind="stable")
    descending = base[order]
    ends = np.searchsorted(-descending, descending - cut, side="left")
    sizes = np.maximum(ends - np.arange(len(base)) - 1, 0)
    first = np.repeat(np.arange(len(base)), sizes)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    a, b = order[first], order[second]
    return np.minimum(a, b).astype(np.int32), np.maximum(a, b).astype(np.int32)
