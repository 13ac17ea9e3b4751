"""The null law of the typed mixture: what honest users with the same number of mutual pairs would score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

Score = Callable[[np.ndarray], np.ndarray]

REDRAWS = 15  # simulated tables a user
LEAST_DRAWS = 1000  # and at least this many for each group of totals
SINGLE_TOTALS = 20  # totals up to this one are a group each; above, groups widen by a tenth
TAIL = 20
MOST_NOISE = 300.0  # with more noise pairs a user, the split of a total is taken as binomial


def group_of(totals: np.ndarray) -> np.ndarray:
    """Group number of each total count of mutual pairs; equal or nearly equal totals share a group."""
    wide = np.log(np.maximum(totals, 1) / SINGLE_TOTALS) / np.log(1.1)
    return np.where(totals <= SINGLE_TOTALS, totals, SINGLE_TOTALS + np.ceil(wide)).astype(np.int64)


class Split:
    """How many of a user's mutual pairs are noise, given their total: Poisson noise plus an unknown number of ties.

    `rates` (cells,) are the expected noise pairs of a user, `totals` (users,) all users' mutual pairs. The law of
    the number of ties over users is estimated from all totals by expectation maximisation.
    """

    def __init__(self, totals: np.ndarray, rates: np.ndarray, sweeps: int = 50) -> None:
        noise = float(rates.sum())
        self.noise, self.noise_law, self.ties = noise, rates / noise, np.zeros(0)
        if noise > MOST_NOISE:
            return
        seen = np.bincount(totals).astype(np.float64)
        width = min(int(noise + 8 * np.sqrt(noise) + 10), len(seen) - 1)
        count = np.arange(width + 1)
        self.poisson = np.exp(count * np.log(max(noise, 1e-300)) - noise - special.gammaln(count + 1))
        ties = (seen + 0.5) / (seen + 0.5).sum()
        for _ in range(sweeps):
            expected = np.convolve(ties, self.poisson)[: len(seen)]
            share = np.append(seen / np.maximum(expected, 1e-300), np.zeros(width))
            ties = ties * np.correlate(share, self.poisson, "valid") / len(totals)
        self.ties = np.maximum(ties, 1e-300)

    def draw(self, total: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Simulated numbers of noise pairs among `total` mutual pairs."""
        if not len(self.ties):
            return rng.binomial(total, min(self.noise / max(total, 1), 1.0), size)
        most = min(total, len(self.poisson) - 1)
        weight = np.cumsum(self.poisson[: most + 1] * self.ties[total - most : total + 1][::-1])
        return np.searchsorted(weight, rng.random(size) * weight[-1], side="right").clip(0, most)


def honest_tables(
    total: int, noise_pairs: np.ndarray, noise_law: np.ndarray, law: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Tables (draws, cells) of `total` pairs: `noise_pairs` (draws,) of them follow `noise_law`, the others `law`."""
    draws, cells = len(noise_pairs), len(law)
    if total > 2 * cells:
        return rng.multinomial(noise_pairs, noise_law) + rng.multinomial(total - noise_pairs, law)
    pick = rng.random((draws, total))
    spurious, true = (np.searchsorted(np.cumsum(each), pick).clip(0, cells - 1) for each in (noise_law, law))
    chosen = np.where(np.arange(total) < noise_pairs[:, None], spurious, true)
    flat = (np.arange(draws)[:, None] * cells + chosen).ravel()
    return np.bincount(flat, minlength=draws * cells).reshape(draws, cells)


@dataclass(frozen=True)
class Null:
    """Scores of simulated honest users, sorted by (group of the total, score)."""

    score: np.ndarray
    group: np.ndarray

    @cached_property
    def by_group(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """(groups ascending, sorted scores of each)."""
        held, first = np.unique(self.group, return_index=True)
        return held, np.split(self.score, first[1:])

    @cached_property
    def beyond(self) -> np.ndarray:
        """By how much the largest 20 scores of each group exceed the smallest of them; sorted."""
        tops = [null[-min(TAIL, len(null)) :] for null in self.by_group[1]]
        return np.sort(np.concatenate([top - top[0] for top in tops]))

    def p_values(self, score: np.ndarray, group: np.ndarray) -> np.ndarray:
        """p-value of each score among the simulated users of its group (or the nearest group that has some).

        Beyond a group's 20th largest null value, the excess over it is judged by the excesses of all groups together;
        and beyond the 20th largest of those, the tail falls like exp(-score), as a likelihood ratio's must at least.
        """
        held, nulls = self.by_group
        nearest = np.clip(np.searchsorted(held, group), 0, len(held) - 1)
        out = np.ones(len(score))
        for place in np.unique(nearest):
            here, null = nearest == place, nulls[place]
            top = min(TAIL, len(null))
            inside = upper_share(null, score[here])
            far = top / len(null) * upper_share(self.beyond, score[here] - null[-top])
            out[here] = np.where(score[here] > null[-top], far, inside)
        return np.clip(out, 1e-300, 1.0)


def upper_share(ascending: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Share of a sorted sample at or above each value; exponential with rate 1 beyond the 20th largest."""
    top = min(TAIL, len(ascending))
    above = np.maximum(len(ascending) - np.searchsorted(ascending, value, side="left"), top)
    return above / len(ascending) * np.exp(-np.maximum(value - ascending[-top], 0.0))


def simulate(totals: np.ndarray, split: Split, law: np.ndarray, score: Score, rng: np.random.Generator) -> Null:
    """Redraw honest tables with the users' own totals and score them.

    Users are taken in the order of their totals, so the draws do not depend on how they are numbered.
    """
    distinct, users = np.unique(totals, return_counts=True)
    groups = group_of(distinct)
    in_group = np.bincount(groups, users)[groups]
    draws = np.ceil(users * np.maximum(REDRAWS, LEAST_DRAWS / in_group)).astype(np.int64)
    tables = []
    for total, count in zip(distinct.tolist(), draws.tolist()):
        tables.append(honest_tables(total, split.draw(total, count, rng), split.noise_law, law, rng))
    scores, group = score(np.concatenate(tables)), np.repeat(groups, draws)
    order = np.lexsort((scores, group))
    return Null(scores[order], group[order])
