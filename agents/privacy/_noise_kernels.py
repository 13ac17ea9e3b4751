"""Compiled loop of the degree noise. `tests/agents/test_noise.py` holds the plain version."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from sim.kernel.counter import philox, unit


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
