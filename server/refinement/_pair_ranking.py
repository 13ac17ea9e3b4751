"""The pairs that score highest, out of all, without keeping a score for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from server.refinement._feature_kernels import AGREEMENTS, COSINES, collect
from server.refinement._prior_fit import Bits, Commons, sigmoid
from server.refinement._public import PublicView
from sim.kernel.errors import SettingError


@dataclass(frozen=True)
class Score:
    """Log-odds of a pair: by_cosine[code] + by_agreement[code] + products c g, and with common neighbours
    l (extra[0] + extra[1] l + extra[2] c + extra[3] log(g + .05))."""

    by_cosine: np.ndarray  # (65536,)
    by_agreement: np.ndarray  # (4096,)
    products: float = 0.0
    extra: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    @classmethod
    def of_prior(cls, theta: np.ndarray) -> Score:
        """The fitted prior (6 coefficients, or 10 with common neighbours) at a pair's own scores."""
        c = np.arange(COSINES) / (COSINES - 1)
        g = np.arange(AGREEMENTS) / (AGREEMENTS - 1)
        extra = (theta[6], theta[7] / 4, 5 * theta[8], theta[9]) if len(theta) > 6 else (0.0, 0.0, 0.0, 0.0)
        return cls(
            theta[0] + 5 * theta[1] * c + 4 * theta[2] * np.sqrt(c),
            2 * theta[3] * g + theta[4] * np.log(g + 0.05),
            float(5 * theta[5]),
            (float(extra[0]), float(extra[1]), float(extra[2]), float(extra[3])),
        )

    @classmethod
    def of_similarity(cls, kappa: float) -> Score:
        """Logarithm of exp(kappa c) (g + .05)^1.5, the public weight."""
        c = np.arange(COSINES) / (COSINES - 1)
        g = np.arange(AGREEMENTS) / (AGREEMENTS - 1)
        return cls(kappa * c, 1.5 * np.log(g + 0.05))


@dataclass(frozen=True)
class Ranked:
    """Pairs of rows i < j with their log-odds before and after the noisy bit."""

    i: np.ndarray
    j: np.ndarray
    prior: np.ndarray
    posterior: np.ndarray

    def take(self, chosen: np.ndarray) -> Ranked:
        """Some of the pairs."""
        return Ranked(self.i[chosen], self.j[chosen], self.prior[chosen], self.posterior[chosen])


Rank = Literal["prior", "posterior", "sum"]


def rank_value(rank: Rank, prior: np.ndarray, posterior: np.ndarray) -> np.ndarray:
    """What pairs are ranked by: one of the two log-odds, or the sum of the two probabilities."""
    if rank == "sum":
        return sigmoid(prior) + sigmoid(posterior)
    return prior if rank == "prior" else posterior


def bound_of(rank: Rank, value: float) -> float:
    """Log-odds that a pair must exceed, before or after its bit, to rank above `value`."""
    if rank == "sum":
        share = min(max(value / 2, 1e-300), 1 - 1e-12)
        return float(np.log(share / (1 - share)))
    return value


@dataclass(frozen=True)
class Ranking:
    """All pairs of a view, by public scores and noisy bits."""

    view: PublicView
    classes: np.ndarray  # (m, classes): the agreement of a pair is the inner product of two rows
    before: Score
    after: Score
    commons: Commons | None = None
    bits: Bits | None = None

    def above(self, bound: float, most: int) -> tuple[Ranked, int]:
        """All pairs whose log-odds exceed `bound` before or after the bit, and their number; no pairs when more than
        `most`."""
        graph = Commons.none(self.view.size) if self.commons is None else self.commons
        words, silent, shift = np.zeros((1, 1), np.uint64), np.ones(self.view.size, dtype=bool), 0.0
        if self.bits is not None:
            words, silent, shift = self.bits.rows, self.bits.silent, self.bits.epsilon
        probability = np.ascontiguousarray(self.classes, dtype=np.float32)
        log_agreement = np.log(np.arange(AGREEMENTS) / (AGREEMENTS - 1) + 0.05)
        before, after = self.before, self.after
        parts: list[tuple[np.ndarray, ...]] = []
        found = 0
        for first, tile in self.view.tiles():
            wide = np.ascontiguousarray(probability[first : first + tile.shape[1]].T)
            *part, size = collect(
                tile, first, probability, wide, before.by_cosine, before.by_agreement, before.products,
                np.array(after.extra), after.by_cosine, after.by_agreement, after.products, log_agreement,
                graph.indptr, graph.indices, graph.data, words, silent, shift, bound, most,
            )  # fmt: skip
            found += size
            parts.append(tuple(part))
        if found > most:
            parts = [tuple(column[:0] for column in part) for part in parts]
        return Ranked(*(np.concatenate(column) for column in zip(*parts))), found

    def all_above(self, bound: float) -> Ranked:
        """All pairs whose log-odds exceed `bound` before or after the bit."""
        most = 1 << 16
        while True:
            found, count = self.above(bound, most)
            if count <= most:
                return found
            most = count

    def top(self, wanted: int, rank: Rank, guess: float) -> Ranked:
        """The `wanted` pairs that rank highest, highest first; equal ones in the order of the rows.

        `guess` is a value of the rank that about `wanted` pairs exceed. Raises SettingError when the scores do not tell
        pairs apart, so that tens of millions of them rank equal.
        """
        total = self.view.size * (self.view.size - 1) // 2
        wanted = min(wanted, total)
        most = min(max(6 * wanted, 1 << 16), total)
        bound = bound_of(rank, guess) - MARGIN
        if wanted <= 0:
            return self.above(np.inf, 1)[0]
        while True:
            found, count = self.above(bound, most)
            if count > MOST_CANDIDATES:
                raise SettingError(
                    f"{count} pairs have the same public score to within rounding; "
                    "allowed: features that tell users apart"
                )
            if count > most:
                most = count
                continue
            value = rank_value(rank, found.prior, found.posterior)
            if count >= wanted:
                least = np.partition(value, count - wanted)[count - wanted]
                needed = bound_of(rank, float(least))
                if needed >= bound or bound == -np.inf:
                    order = np.lexsort((found.j, found.i, -value))
                    return found.take(order[:wanted])
                bound = needed - 1e-9
            else:
                bound = bound - 1.0 if bound > -60 else -np.inf


MOST_CANDIDATES = 1 << 26
MARGIN = 0.4
"""How far below the guess a pass looks, in log-odds, so that one is mostly enough."""


def value_exceeded(values: np.ndarray, counts: np.ndarray, wanted: int) -> float:
    """The value that about `wanted` of `counts.sum()` things reach, from values and how many things have each."""
    order = np.argsort(-values, kind="stable")
    reached = np.cumsum(counts[order])
    return float(values[order[min(int(np.searchsorted(reached, wanted)), len(order) - 1)]])
