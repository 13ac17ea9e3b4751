"""Kernel of the detection bound: the likelihood of a table of mutual pairs when an unknown number of them are
ties."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def log_likelihoods(tables, background, chance, log_weight):
    """log sum_j W_j e_j(table) - sum(background) per table (n, cells), e_j the coefficient of s^j in the product over
    pairs of (background + s chance) of the pair's cell.

    `log_weight` (J + 1,) is log W_j: how likely j ties are to be among the mutual pairs, orders included. The factor
    that does not depend on the laws (one over the factorials of the counts) is left out.
    """
    most = len(log_weight) - 1
    constant = -background.sum()
    out = np.empty(len(tables))
    coefficient = np.empty(most + 1)
    for i in range(len(tables)):
        coefficient[:] = 0.0
        coefficient[0] = 1.0
        used, log_scale = 0, 0.0
        for cell in range(tables.shape[1]):
            for _ in range(tables[i, cell]):
                scale = background[cell] + chance[cell]
                noise, tie = background[cell] / scale, chance[cell] / scale
                log_scale += math.log(scale)
                used = min(used + 1, most)
                for j in range(used, 0, -1):
                    coefficient[j] = coefficient[j] * noise + coefficient[j - 1] * tie
                coefficient[0] *= noise
        top = -np.inf
        for j in range(used + 1):
            if coefficient[j] > 0.0:
                top = max(top, math.log(coefficient[j]) + log_weight[j])
        total = 0.0
        for j in range(used + 1):
            if coefficient[j] > 0.0:
                total += math.exp(math.log(coefficient[j]) + log_weight[j] - top)
        out[i] = top + math.log(total) + log_scale + constant
    return out


def log_likelihood_plain(table: np.ndarray, background: np.ndarray, chance: np.ndarray, counts: np.ndarray) -> float:
    """The same for one table by trying every way to split each cell's pairs into noise and ties."""
    missed = 1.0 - chance.sum()
    total = 0.0
    for split in itertools.product(*(range(int(count) + 1) for count in table)):
        ties = sum(split)
        for number, share in enumerate(counts):
            if share == 0 or number < ties:
                continue
            value = share * math.factorial(number) / math.factorial(number - ties) * missed ** (number - ties)
            for cell, tie in enumerate(split):
                noise = int(table[cell]) - tie
                value *= chance[cell] ** tie / math.factorial(tie)
                value *= background[cell] ** noise / math.factorial(noise) * math.exp(-background[cell])
            total += value
    return math.log(total * math.prod(math.factorial(int(count)) for count in table))
