"""Numba kernels of the typed mixture over tables of mutual levels, and their plain references.

A user's table (cells,) counts its mutual pairs by (level given, level received), flattened. Twelve attack components:
for each of three templates F, shares 1, 0.5 and 0.2 of the excess, and one additive component of strength 2.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

SHARES = np.array([1.0, 0.5, 0.2])
STRENGTH = 2.0
PER_TYPE = len(SHARES) + 1


@njit(cache=True, nogil=True)
def log_ratios(tables, excess, noise, law, templates, caps, out):
    """Fill `out` (n, 12) with log L_component - log L_honest of each user's table.

    Honest cells expect noise + excess law; the shares mix a template into the law; the additive component adds
    `STRENGTH` pairs of the template, read against min(excess, cap) so that loyal partners cannot dilute it.
    """
    n, cells = tables.shape
    types = len(templates)
    for v in range(n):
        for j in range(types):
            for k in range(PER_TYPE - 1):
                out[v, j * PER_TYPE + k] = 0.0
            out[v, j * PER_TYPE + PER_TYPE - 1] = -STRENGTH
        for x in range(cells):
            count = tables[v, x]
            if count == 0:
                continue
            honest = noise + excess[v] * law[x]
            for j in range(types):
                for k in range(PER_TYPE - 1):
                    mixed = SHARES[k] * templates[j, x] + (1.0 - SHARES[k]) * law[x]
                    out[v, j * PER_TYPE + k] += count * math.log((noise + excess[v] * mixed) / honest)
                base = noise + min(excess[v], caps[j]) * law[x]
                out[v, j * PER_TYPE + PER_TYPE - 1] += count * math.log1p(STRENGTH * templates[j, x] / base)


@njit(cache=True, nogil=True)
def attribute(tables, excess, noise, law, templates, caps, ratios, weights, law_counts, template_counts, mass):
    """Expectation step: add to `mass` (12,) the responsibilities, to `template_counts` (3, cells) the pairs explained
    by templates, and to `law_counts` (cells,) those explained by the honest law, at most 3 pairs' worth a user.

    `weights` (12,) are the attack components' shares of the users; honest users have the rest.
    """
    n, cells = tables.shape
    parts = len(weights)
    honest_weight = 1.0 - weights.sum()
    resp = np.empty(parts)
    for v in range(n):
        top = 0.0
        for k in range(parts):
            top = max(top, ratios[v, k])
        honest_resp = honest_weight * math.exp(-top)
        total = honest_resp
        for k in range(parts):
            resp[k] = weights[k] * math.exp(ratios[v, k] - top)
            total += resp[k]
        honest_resp /= total
        for k in range(parts):
            resp[k] /= total
            mass[k] += resp[k]
        influence = min(1.0, 3.0 / excess[v])
        for x in range(cells):
            count = tables[v, x]
            if count == 0:
                continue
            usual = excess[v] * law[x]
            honest = noise + usual
            law_counts[x] += influence * count * honest_resp * usual / honest
            for j in range(len(templates)):
                for k in range(PER_TYPE - 1):
                    share = resp[j * PER_TYPE + k]
                    if share < 1e-12:
                        continue
                    odd = SHARES[k] * excess[v] * templates[j, x]
                    rest = (1.0 - SHARES[k]) * usual
                    template_counts[j, x] += share * count * odd / (noise + odd + rest)
                    law_counts[x] += influence * share * count * rest / (noise + odd + rest)
                share = resp[j * PER_TYPE + PER_TYPE - 1]
                if share < 1e-12:
                    continue
                odd = STRENGTH * templates[j, x]
                capped = min(excess[v], caps[j]) * law[x]
                template_counts[j, x] += share * count * odd / (noise + odd + capped)
                law_counts[x] += influence * share * count * capped / (noise + odd + capped)


def log_ratios_plain(
    tables: np.ndarray, excess: np.ndarray, noise: float, law: np.ndarray, templates: np.ndarray, caps: np.ndarray
) -> np.ndarray:
    """`log_ratios` as differences of Poisson log-likelihoods, written out."""
    honest = noise + excess[:, None] * law
    columns = []
    for template, cap in zip(templates, caps):
        for share in SHARES:
            rate = noise + excess[:, None] * (share * template + (1 - share) * law)
            columns.append((tables * np.log(rate / honest) - (rate - honest)).sum(1))
        base = noise + np.minimum(excess, cap)[:, None] * law
        columns.append((tables * np.log((base + STRENGTH * template) / base)).sum(1) - STRENGTH)
    return np.column_stack(columns)
