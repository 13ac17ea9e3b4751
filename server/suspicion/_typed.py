"""The typed mixture: fit honest and attack tables of mutual levels together, score users, calibrate by simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from server.channel import Channel
from server.evidence import MutualPairs
from server.suspicion import _mixture as kernels
from server.suspicion._null import Null, Split, group_of, simulate

LEAST_EXCESS = 4.0
CAPS = np.array([8.0, np.inf, np.inf])
ATTACK_SHARE = 0.1  # the fitted attackers are never more than this share of the users
PRIOR_PAIRS = 20.0
PSEUDO_USERS = 0.002
PARTS = 2
MOST_BINS = 8


def bins_of(levels: int) -> np.ndarray:
    """(kappa,): the bin of each level 1..kappa. Up to 8 levels have one each; more are grouped, 1 and kappa alone, so
    that tables stay small."""
    level = np.arange(1, levels + 1)
    if levels <= MOST_BINS:
        return level - 1
    inner = 1 + (level - 2) * (MOST_BINS - 2) // (levels - 2)
    return np.where(level == 1, 0, np.where(level == levels, MOST_BINS - 1, inner))


def tables_of(pairs: MutualPairs, n: int, levels: int) -> np.ndarray:
    """(n, cells) counts of each user's mutual pairs by (bin of the level given, bin of the level received)."""
    bins = bins_of(levels)
    x, y, width = bins[pairs.x - 1], bins[pairs.y - 1], int(bins[-1]) + 1
    cells = width * width
    flat = np.bincount(pairs.u * cells + x * width + y, minlength=n * cells)
    flat += np.bincount(pairs.v * cells + y * width + x, minlength=n * cells)
    return flat.reshape(n, cells)


def in_bins(law: np.ndarray) -> np.ndarray:
    """A table (kappa, kappa) of expectations, summed over bins and flattened."""
    bins = bins_of(len(law))
    member = bins == np.arange(bins[-1] + 1)[:, None]
    return (member @ law @ member.T).ravel()


def attack_templates(channel: Channel) -> np.ndarray:
    """(3, cells): what an over-claimer (kappa, 1), an under-claimer (1, 2..kappa) and a low-trust user (1, 1) look like
    behind the channel, each with a tenth of its mass spread evenly over the levels."""
    levels = channel.levels
    true = np.zeros((3, levels, levels))
    true[0, levels - 1, 0] = 1.0
    true[1, 0, min(1, levels - 1) :] = 1.0
    true[2, 0, 0] = 1.0
    return np.array([in_bins(0.9 * channel.image(law / law.sum()) + 0.1 / levels**2) for law in true])


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture: noise rates (cells,), honest law (cells,), templates (3, cells)."""

    noise: np.ndarray
    law: np.ndarray
    templates: np.ndarray

    def excess(self, tables: np.ndarray) -> np.ndarray:
        """Mutual pairs beyond the noise, at least 4."""
        return np.maximum(tables.sum(1) - self.noise.sum(), LEAST_EXCESS)

    def terms(self, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, kernels.Terms]:
        """(which, distinct excess, terms): the components at each distinct excess, and which one each user has."""
        excess, which = np.unique(self.excess(tables), return_inverse=True)
        return which, excess, kernels.component_terms(excess, self.noise, self.law, self.templates, CAPS)

    def score(self, tables: np.ndarray) -> np.ndarray:
        """log of the mean likelihood over the attack components minus the honest log-likelihood, per user.

        The components weigh the same: with fitted weights a type that few users show would fade out of the score.
        """
        which, _, terms = self.terms(tables)
        ratios = np.empty((len(tables), 3 * kernels.PER_TYPE))
        kernels.sum_ratios(tables, which, terms.log_ratio, terms.offset, ratios)
        top = ratios.max(1)
        return top + np.log(np.exp(ratios - top[:, None]).mean(1))


def fit_mixture(tables: np.ndarray, channel: Channel, others: int, sweeps: int = 25) -> Mixture:
    """Expectation maximisation over honest users and three attack types, from `tables` (users, cells)."""
    users, cells = tables.shape
    noise = in_bins(np.full((channel.levels, channel.levels), others * channel.flip**2))
    start = attack_templates(channel)
    spare = np.maximum(tables.sum(0) - users * noise, 0.0) + 0.5
    fitted = Mixture(noise, spare / spare.sum(), start)
    weights = np.full(3 * kernels.PER_TYPE, ATTACK_SHARE / (3 * kernels.PER_TYPE))
    ratios = np.empty((users, len(weights)))
    for _ in range(sweeps):
        which, excess, terms = fitted.terms(tables)
        kernels.sum_ratios(tables, which, terms.log_ratio, terms.offset, ratios)
        law, templates, mass = np.full(cells, 0.5), PRIOR_PAIRS * start, np.zeros(len(weights))
        influence = np.minimum(1.0, 3.0 / excess)  # a hub counts as 3 pairs, so it cannot set the law
        kernels.attribute(
            tables, which, influence, terms.honest, terms.odd, terms.usual, ratios, weights, law, templates, mass
        )
        mass += PSEUDO_USERS * users
        weights = mass / (users * (1 + PSEUDO_USERS * len(weights)))
        weights *= min(1.0, ATTACK_SHARE / weights.sum())
        fitted = Mixture(noise, law / law.sum(), templates / templates.sum(1, keepdims=True))
    return fitted


@dataclass(frozen=True)
class Detector:
    """Mixtures fitted without one part of the users each: a user is scored with the attack templates that it had no
    hand in. A template fitted on the scored users themselves would chase the oddest honest tables, and find them."""

    mixtures: list[Mixture]
    nulls: list[Null]

    def score(self, tables: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(score, p-value) of users with these `tables` (users, cells); `part` (users,) names the part each is
        in."""
        score, p = np.empty(len(tables)), np.empty(len(tables))
        groups = group_of(tables.sum(1))
        for which, (mixture, null) in enumerate(zip(self.mixtures, self.nulls)):
            mine = part == which
            score[mine] = mixture.score(tables[mine])
            p[mine] = null.p_values(score[mine], groups[mine])
        return score, p


def fit_detector(tables: np.ndarray, part: np.ndarray, channel: Channel, rng: np.random.Generator) -> Detector:
    """Fit on `tables` (users, cells) of all users that reported; `part` (users,) splits them into 0, 1, ..."""
    parts = range(int(part.max(initial=0)) + 1)
    fits = [fit_mixture(tables[part != which], channel, len(tables) - 1) for which in parts]
    law = np.mean([fit.law for fit in fits], axis=0)
    mixtures = [Mixture(fit.noise, law, fit.templates) for fit in fits]
    totals = tables.sum(1)
    split = Split(totals, fits[0].noise)
    nulls = [simulate(totals[part == which], split, law, mixtures[which].score, rng) for which in parts]
    return Detector(mixtures, nulls)


def warm_up() -> None:
    """Compile the kernels."""
    channel = Channel(3.0, 2)
    tables = np.ones((3, 4), np.int64)
    fit_detector(tables, np.array([0, 1, 0]), channel, np.random.default_rng(0)).score(tables, np.array([0, 1, 0]))
