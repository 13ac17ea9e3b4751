"""Compiled loops of degree noise and label noise; the plain versions are in their tests."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from sim.kernel.counter import below, philox, unit


@njit(cache=True, nogil=True)
def geometric_steps(senders, epochs, columns, key, rate):
    """Two-sided geometric steps (k, c) float64: step s has probability proportional to e^(-rate |s|).

    Column c of a sender uses the first two draws of group c of its stream: the difference of two geometric variables.
    """
    rows = len(senders)
    steps = np.empty((rows, columns))
    for r in range(rows):
        for c in range(columns):
            words = philox(1 + c, 0, senders[r], epochs[r], key[0], key[1])
            up = np.floor(-math.log(1.0 - unit(words[0])) / rate)
            steps[r, c] = up - np.floor(-math.log(1.0 - unit(words[1])) / rate)
    return steps


@njit(cache=True, nogil=True)
def replaced_symbols(senders, epochs, key, chance, symbols):
    """(who is replaced, by which symbol of 0..symbols-1), for each sender: the first two draws of its stream."""
    replaced = np.empty(len(senders), np.bool_)
    by = np.empty(len(senders), np.int64)
    for r in range(len(senders)):
        words = philox(1, 0, senders[r], epochs[r], key[0], key[1])
        replaced[r] = unit(words[0]) < chance
        by[r] = below(words[1], symbols)
    return replaced, by
