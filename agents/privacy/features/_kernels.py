"""Compiled loops of the feature mechanisms.

One stream per report, keyed by (purpose, epoch, sender): block 0 holds the draws that choose the coordinates, block 1
those that make the outputs. A coordinate's draws are found by its index alone: group j (draws 4j to 4j+3) for the
continuous mechanisms, draw j for the one-bit ones. `tests/agents/test_feature_kernels.py` holds the plain versions.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from sim.kernel.counter import below, philox, unit


@njit(cache=True, nogil=True)
def choose_coordinates(senders, epochs, key, dimensions, sampled):
    """`sampled` of `dimensions` coordinates for each sender, uniformly without replacement: (k, m) int32, ascending.

    Floyd's algorithm: step i draws a place in 0..top with top = dimensions - sampled + i, and takes `top` itself when
    that place is already taken. Draw i of block 0 serves step i. No draw is used when all coordinates are sampled.
    """
    rows = len(senders)
    chosen = np.empty((rows, sampled), np.int32)
    if sampled == dimensions:
        for r in range(rows):
            for j in range(dimensions):
                chosen[r, j] = j
        return chosen
    taken = np.zeros(dimensions, np.bool_)
    for r in range(rows):
        words = philox(1, 0, senders[r], epochs[r], key[0], key[1])
        for i in range(sampled):
            if i > 0 and i % 4 == 0:
                words = philox(1 + i // 4, 0, senders[r], epochs[r], key[0], key[1])
            top = dimensions - sampled + i
            place = np.int64(below(words[i % 4], top + 1))
            if taken[place]:
                place = top
            taken[place] = True
            chosen[r, i] = place
        if sampled > 1:
            chosen[r].sort()
        for i in range(sampled):
            taken[chosen[r, i]] = False
    return chosen


@njit(cache=True, nogil=True)
def look_up(indptr, indices, data, chosen):
    """The true values at the chosen coordinates, clamped to [0, 1] (a NaN counts as 0): (k, m) float32."""
    rows, sampled = chosen.shape
    values = np.zeros((rows, sampled), np.float32)
    for r in range(rows):
        start, end = indptr[r], indptr[r + 1]
        for i in range(sampled):
            low, high, wanted = start, end, chosen[r, i]
            while low < high:
                middle = (low + high) // 2
                if indices[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            start = low
            if low < end and indices[low] == wanted:
                value = np.float32(data[low])
                if value >= np.float32(1.0):
                    values[r, i] = 1.0
                elif value > np.float32(0.0):
                    values[r, i] = value
    return values


@njit(cache=True, nogil=True)
def window_outputs(values, chosen, senders, epochs, key, inside, window, low, total, start, slope, grid):
    """Replace values by outputs of a window mechanism (piecewise, square wave), rounded to the grid.

    With probability `inside` the output is uniform on [l, l + window], l = start + slope * value; else it is uniform
    on the rest of [low, low + total].
    """
    rows, sampled = values.shape
    for r in range(rows):
        for i in range(sampled):
            words = philox(1 + chosen[r, i], 1, senders[r], epochs[r], key[0], key[1])
            left = start + slope * values[r, i]
            if unit(words[0]) < inside:
                output = left + window * unit(words[1])
            else:
                output = low + (total - window) * unit(words[1])
                if output >= left:
                    output += window
            values[r, i] = np.rint(output / grid) * grid


@njit(cache=True, nogil=True)
def bit_outputs(values, chosen, senders, epochs, key, base, gain):
    """Replace values by +1 with probability base + gain * value, else by -1."""
    rows, sampled = values.shape
    for r in range(rows):
        group = -1
        words = philox(0, 0, 0, 0, key[0], key[1])
        for i in range(sampled):
            if chosen[r, i] // 4 != group:
                group = chosen[r, i] // 4
                words = philox(1 + group, 1, senders[r], epochs[r], key[0], key[1])
            chance = base + gain * np.float64(values[r, i])
            values[r, i] = 1.0 if unit(words[chosen[r, i] % 4]) < chance else -1.0


@njit(cache=True, nogil=True)
def laplace_outputs(values, chosen, senders, epochs, key, grid, rate):
    """Replace values by their neighbour on the grid (up or down at random, so the mean stays) plus two-sided geometric
    noise of `grid` steps: step s has probability proportional to e^(-rate |s|)."""
    rows, sampled = values.shape
    for r in range(rows):
        for i in range(sampled):
            words = philox(1 + chosen[r, i], 1, senders[r], epochs[r], key[0], key[1])
            place = np.float64(values[r, i]) / grid
            step = np.floor(place)
            if unit(words[2]) < place - step:
                step += 1.0
            step += np.floor(-math.log(1.0 - unit(words[0])) / rate)
            step -= np.floor(-math.log(1.0 - unit(words[1])) / rate)
            values[r, i] = step * grid


@njit(cache=True, nogil=True)
def gaussian_outputs(values, chosen, senders, epochs, key, sigma, grid):
    """Replace values by value + sigma * normal (Box and Muller), rounded to the grid."""
    rows, sampled = values.shape
    for r in range(rows):
        for i in range(sampled):
            words = philox(1 + chosen[r, i], 1, senders[r], epochs[r], key[0], key[1])
            radius = math.sqrt(-2.0 * math.log(1.0 - unit(words[0])))
            output = values[r, i] + sigma * radius * math.cos(2.0 * math.pi * unit(words[1]))
            values[r, i] = np.rint(output / grid) * grid
