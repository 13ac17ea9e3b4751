"""The typed mixture: fit honest and attack tables of mutual levels together, score users, calibrate by simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from server.channel import Channel
from server.evidence import MutualPairs
from server.suspicion import _mixture as kernels

LEAST_EXCESS = 4.0
CAPS = np.array([8.0, np.inf, np.inf])
STRATA = np.array([8.0, 24.0])
ATTACK_SHARE = 0.1  # the fitted attackers are never more than this share of the users
PRIOR_PAIRS = 20.0
PSEUDO_USERS = 0.002
REDRAWS = 15
SMALLEST_STRATUM = 200
TAIL = 20


def tables_of(pairs: MutualPairs, n: int, levels: int) -> np.ndarray:
    """(n, kappa^2) counts of each user's mutual pairs by (level given, level received)."""
    x, y = pairs.x.astype(np.int64) - 1, pairs.y.astype(np.int64) - 1
    cells = levels * levels
    flat = np.bincount(pairs.u * cells + x * levels + y, minlength=n * cells)
    flat += np.bincount(pairs.v * cells + y * levels + x, minlength=n * cells)
    return flat.reshape(n, cells)


def attack_templates(channel: Channel) -> np.ndarray:
    """(3, kappa^2): what an over-claimer (kappa, 1), an under-claimer (1, 2..kappa) and a low-trust user (1, 1) look
    like behind the channel, each with a tenth of its mass spread evenly."""
    levels = channel.levels
    true = np.zeros((3, levels, levels))
    true[0, levels - 1, 0] = 1.0
    true[1, 0, min(1, levels - 1) :] = 1.0
    true[2, 0, 0] = 1.0
    seen = np.array([channel.image(law / law.sum()).ravel() for law in true])
    return 0.9 * seen + 0.1 / levels**2


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture: noise rate per cell, honest law (cells,), templates (3, cells)."""

    noise: float
    law: np.ndarray
    templates: np.ndarray

    def excess(self, tables: np.ndarray) -> np.ndarray:
        """Mutual pairs beyond the noise, at least 4."""
        return np.maximum(tables.sum(1) - self.noise * tables.shape[1], LEAST_EXCESS)

    def score(self, tables: np.ndarray) -> np.ndarray:
        """log of the mean likelihood over the attack components minus the honest log-likelihood, per user.

        The components weigh the same: with fitted weights a type that few users show would fade out of the score.
        """
        ratios = np.empty((len(tables), 3 * kernels.PER_TYPE))
        excess = self.excess(tables)
        kernels.log_ratios(tables, excess, self.noise, self.law, self.templates, CAPS, ratios)
        top = ratios.max(1)
        return top + np.log(np.exp(ratios - top[:, None]).mean(1))


def fit_mixture(tables: np.ndarray, channel: Channel, others: int, sweeps: int = 25) -> Mixture:
    """Expectation maximisation over honest users and three attack types, from `tables` (n, kappa^2) of the
    reporters."""
    users, cells = tables.shape
    noise = others * channel.flip**2
    start = attack_templates(channel)
    spare = np.maximum(tables.sum(0) - users * noise, 0.0) + 0.5
    fitted = Mixture(noise, spare / spare.sum(), start)
    excess = fitted.excess(tables)
    weights = np.full(3 * kernels.PER_TYPE, ATTACK_SHARE / (3 * kernels.PER_TYPE))
    ratios = np.empty((users, len(weights)))
    for _ in range(sweeps):
        kernels.log_ratios(tables, excess, noise, fitted.law, fitted.templates, CAPS, ratios)
        law, templates, mass = np.full(cells, 0.5), PRIOR_PAIRS * start, np.zeros(len(weights))
        kernels.attribute(
            tables, excess, noise, fitted.law, fitted.templates, CAPS, ratios, weights, law, templates, mass
        )
        mass += PSEUDO_USERS * users
        weights = mass / (users * (1 + PSEUDO_USERS * len(weights)))
        weights *= min(1.0, ATTACK_SHARE / weights.sum())
        fitted = Mixture(noise, law / law.sum(), templates / templates.sum(1, keepdims=True))
    return fitted


@dataclass(frozen=True)
class Null:
    """Scores of simulated honest users, by stratum of their own excess."""

    score: np.ndarray
    excess: np.ndarray

    def p_values(self, score: np.ndarray, excess: np.ndarray) -> np.ndarray:
        """p-value of each score within its stratum; beyond the 20th largest null value the tail falls like
        exp(-score), as a likelihood ratio's must at least."""
        out = np.ones(len(score))
        theirs, ours = np.searchsorted(STRATA, self.excess), np.searchsorted(STRATA, excess)
        for stratum in np.unique(ours):
            null = self.score[theirs == stratum]
            if len(null) < SMALLEST_STRATUM:
                null = self.score
            null = np.sort(null)
            here = ours == stratum
            above = len(null) - np.searchsorted(null, score[here], side="left")
            last = null[-min(TAIL, len(null))]
            tail = min(TAIL, len(null)) * np.exp(-np.maximum(score[here] - last, 0.0))
            out[here] = np.where(score[here] > last, tail, above) / len(null)
        return np.clip(out, 1e-300, 1.0)


def simulate_null(fitted: Mixture, tables: np.ndarray, rng: np.random.Generator) -> Null:
    """Redraw every user's table from the fitted honest law, with its own number of pairs beyond the noise.

    Users are taken in the order of their totals, so the draws do not depend on how they are numbered.
    """
    beyond = np.maximum(np.sort(tables.sum(1)) - fitted.noise * tables.shape[1], 0.0)
    rates = fitted.noise + beyond[:, None] * fitted.law
    scores, excess = [], []
    for _ in range(REDRAWS):
        drawn = rng.poisson(rates)
        scores.append(fitted.score(drawn))
        excess.append(fitted.excess(drawn))
    return Null(np.concatenate(scores), np.concatenate(excess))


def warm_up() -> None:
    """Compile the kernels."""
    channel = Channel(3.0, 2)
    tables = np.ones((3, 4), np.int64)
    fit_mixture(tables, channel, 2, sweeps=1).score(tables)
