"""Components of the typed mixture over tables of mutual levels, numba sums over users, and their plain reference.

A user's table (cells,) counts its mutual pairs by (level given, level received), flattened. Twelve attack components:
for each of three templates F, shares 1, 0.5 and 0.2 of the excess, and one additive component of strength 2. All of
them depend on a user through its excess only, so their logarithms are taken once for each distinct excess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

SHARES = np.array([1.0, 0.5, 0.2])
STRENGTH = 2.0
PER_TYPE = len(SHARES) + 1


@dataclass(frozen=True)
class Terms:
    """What a pair in a cell contributes, by distinct excess (d), cell (c) and component (12).

    `log_ratio` (d, c, 12): to log L_component - log L_honest; `offset` (d, 12): the same of an empty table. Shares of
    the pair's origin: `honest` (d, c): the law, in an honest user; `odd` and `usual` (d, c, 12): the template and the
    law, in a user of the component; the rest is noise.
    """

    log_ratio: np.ndarray
    offset: np.ndarray
    honest: np.ndarray
    odd: np.ndarray
    usual: np.ndarray


def component_terms(
    excess: np.ndarray, noise: np.ndarray, law: np.ndarray, templates: np.ndarray, caps: np.ndarray
) -> Terms:
    """The terms for each of the distinct `excess` (d,), with `noise` (c,), `law` (c,), `templates` (3, c) and `caps`
    (3,).

    Honest cells expect noise + excess law. The shares mix a template into the law at the same total. The additive
    component multiplies a cell by 1 + STRENGTH F / (noise + min(excess, cap) law): with the cap, loyal partners
    cannot dilute it. What an honest user would gain by that on average is its offset, so that every component has
    mean likelihood ratio 1 among honest users, hubs included.
    """
    usual = excess[:, None] * law
    honest = noise + usual
    log_ratio = np.empty((*honest.shape, len(templates) * PER_TYPE))
    odd, rest = np.empty_like(log_ratio), np.empty_like(log_ratio)
    offset = np.zeros((len(excess), log_ratio.shape[2]))
    for j, (template, cap) in enumerate(zip(templates, caps)):
        for k, share in enumerate(SHARES):
            place = j * PER_TYPE + k
            wrong, right = share * excess[:, None] * template, (1.0 - share) * usual
            rate = noise + wrong + right
            log_ratio[:, :, place] = np.log(rate / honest)
            odd[:, :, place], rest[:, :, place] = wrong / rate, right / rate
        place = j * PER_TYPE + PER_TYPE - 1
        capped = np.minimum(excess, cap)[:, None] * law
        gain = STRENGTH * template / (noise + capped)
        rate = noise + capped + STRENGTH * template
        log_ratio[:, :, place] = np.log1p(gain)
        offset[:, place] = -(honest * gain).sum(1)
        odd[:, :, place], rest[:, :, place] = STRENGTH * template / rate, capped / rate
    return Terms(log_ratio, offset, usual / honest, odd, rest)


@njit(cache=True, nogil=True)
def sum_ratios(tables, which, log_ratio, offset, out):
    """Fill `out` (n, 12): log-likelihood ratios of each user's table (n, c); `which` (n,) names its distinct
    excess."""
    for v in range(len(tables)):
        d = which[v]
        for k in range(out.shape[1]):
            out[v, k] = offset[d, k]
        for x in range(tables.shape[1]):
            count = tables[v, x]
            if count != 0:
                for k in range(out.shape[1]):
                    out[v, k] += count * log_ratio[d, x, k]


@njit(cache=True, nogil=True)
def attribute(tables, which, influence, honest, odd, usual, ratios, weights, law_counts, template_counts, mass):
    """Expectation step: add to `mass` (12,) the responsibilities, to `template_counts` (3, c) the pairs that
    templates explain, and to `law_counts` (c,) those that the law explains, each user's weighted by `influence` (d,).

    `weights` (12,) are the attack components' shares of the users; honest users have the rest.
    """
    parts = len(weights)
    honest_weight = 1.0 - weights.sum()
    share = np.empty(parts)
    for v in range(len(tables)):
        d = which[v]
        top = 0.0
        for k in range(parts):
            top = max(top, ratios[v, k])
        good = honest_weight * np.exp(-top)
        total = good
        for k in range(parts):
            share[k] = weights[k] * np.exp(ratios[v, k] - top)
            total += share[k]
        good /= total
        for k in range(parts):
            share[k] /= total
            mass[k] += share[k]
        for x in range(tables.shape[1]):
            count = tables[v, x]
            if count == 0:
                continue
            lawful = good * honest[d, x]
            for k in range(parts):
                lawful += share[k] * usual[d, x, k]
                template_counts[k // PER_TYPE, x] += count * share[k] * odd[d, x, k]
            law_counts[x] += influence[d] * count * lawful


def sum_ratios_plain(
    tables: np.ndarray, excess: np.ndarray, noise: np.ndarray, law: np.ndarray, templates: np.ndarray, caps: np.ndarray
) -> np.ndarray:
    """Log-likelihood ratios (n, 12) straight from the Poisson likelihoods, one component at a time."""
    honest = noise + excess[:, None] * law
    columns = []
    for template, cap in zip(templates, caps):
        for share in SHARES:
            rate = noise + excess[:, None] * (share * template + (1 - share) * law)
            columns.append((tables * np.log(rate / honest) - (rate - honest)).sum(1))
        gain = STRENGTH * template / (noise + np.minimum(excess, cap)[:, None] * law)
        columns.append((tables * np.log(1 + gain) - honest * gain).sum(1))
    return np.column_stack(columns)
