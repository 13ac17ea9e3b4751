"""Numba kernels of the edge posterior: adjacency, shared neighbours, label beliefs, logistic steps, mass
calibration."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def adjacency(n, u, v):
    """CSR of an undirected pair list sorted by (u, v): (indptr, neighbours ascending in a row, pair number of a
    slot)."""
    indptr = np.zeros(n + 1, np.int64)
    for i in range(len(u)):
        indptr[u[i] + 1] += 1
        indptr[v[i] + 1] += 1
    indptr = np.cumsum(indptr)
    place = indptr[:-1].copy()
    neighbours, pair = np.empty(2 * len(u), np.int32), np.empty(2 * len(u), np.int64)
    for i in range(len(u)):  # smaller neighbours first: pairs come in ascending u
        neighbours[place[v[i]]], pair[place[v[i]]] = u[i], i
        place[v[i]] += 1
    for i in range(len(u)):
        neighbours[place[u[i]]], pair[place[u[i]]] = v[i], i
        place[u[i]] += 1
    return indptr, neighbours, pair


@njit(cache=True, nogil=True)
def shared_neighbours(indptr, neighbours, pair, weight, cut, qu, qv):
    """(A A)[qu, qv] for each query pair, where A holds the pair weights >= cut.

    Queries are grouped by their end of larger degree, whose row is spread once over a dense vector; the other end's row
    then reads it. The work is the sum of the smaller degrees, so hubs cost little.
    """
    n = len(indptr) - 1
    start = np.zeros(n + 1, np.int64)
    for w in range(n):
        held = 0
        for i in range(indptr[w], indptr[w + 1]):
            if weight[pair[i]] >= cut:
                held += 1
        start[w + 1] = start[w] + held
    near, value = np.empty(start[n], np.int32), np.empty(start[n])
    for w in range(n):
        place = start[w]
        for i in range(indptr[w], indptr[w + 1]):
            if weight[pair[i]] >= cut:
                near[place], value[place] = neighbours[i], weight[pair[i]]
                place += 1
    out = np.zeros(len(qu))
    first = np.zeros(n + 1, np.int64)
    hub, other = np.empty(len(qu), np.int32), np.empty(len(qu), np.int32)
    for i in range(len(qu)):
        a, b = qu[i], qv[i]
        if start[a + 1] - start[a] < start[b + 1] - start[b]:
            a, b = b, a
        hub[i], other[i] = a, b
        first[a + 1] += 1
    first = np.cumsum(first)
    place_of = first[:-1].copy()
    order = np.empty(len(qu), np.int64)
    for i in range(len(qu)):
        order[place_of[hub[i]]] = i
        place_of[hub[i]] += 1
    spread = np.zeros(n)
    for w in range(n):
        if first[w] == first[w + 1] or start[w] == start[w + 1]:
            continue
        for i in range(start[w], start[w + 1]):
            spread[near[i]] = value[i]
        for j in range(first[w], first[w + 1]):
            b = other[order[j]]
            total = 0.0
            for i in range(start[b], start[b + 1]):
                total += value[i] * spread[near[i]]
            out[order[j]] = total
        for i in range(start[w], start[w + 1]):
            spread[near[i]] = 0.0
    return out


@njit(cache=True, nogil=True)
def beliefs(indptr, neighbours, pair, weight, labels, prior, sweeps):
    """Label beliefs (n, classes) after `sweeps` averaging sweeps, and those of the sweep before.

    Users with a known label (labels >= 0) keep it; others get (sum of weighted neighbour beliefs + prior) / (degree
    + 1).
    """
    n, classes = len(indptr) - 1, len(prior)
    now = np.empty((n, classes))
    for w in range(n):
        for c in range(classes):
            now[w, c] = prior[c] if labels[w] < 0 else 0.0
        if labels[w] >= 0:
            now[w, labels[w]] = 1.0
    before = now.copy()
    for _ in range(sweeps):
        before, now = now, before
        for w in range(n):
            if labels[w] >= 0:
                continue
            degree = 1.0
            for c in range(classes):
                now[w, c] = prior[c]
            for i in range(indptr[w], indptr[w + 1]):
                share = weight[pair[i]]
                degree += share
                for c in range(classes):
                    now[w, c] += share * before[neighbours[i], c]
            for c in range(classes):
                now[w, c] /= degree
    return now, before


@njit(cache=True, nogil=True)
def agreement(now, before, degree, labels, prior, qu, qv, own):
    """sum_c Z_u[c] Z_v[c] / prior[c] of each query pair, each unlabelled end without the pair's own weight `own`.

    `degree` (n,) is the weighted degree that the beliefs were averaged over.
    """
    out = np.empty(len(qu))
    for i in range(len(qu)):
        u, v = qu[i], qv[i]
        mine, yours = own[i], own[i]
        if labels[u] >= 0:
            mine = 0.0
        if labels[v] >= 0:
            yours = 0.0
        total = 0.0
        for c in range(len(prior)):
            a = now[u, c] * (degree[u] + 1.0) - mine * before[v, c]
            b = now[v, c] * (degree[v] + 1.0) - yours * before[u, c]
            total += max(a, 0.0) * max(b, 0.0) / prior[c]
        out[i] = total / ((degree[u] + 1.0 - mine) * (degree[v] + 1.0 - yours))
    return out


@njit(cache=True, nogil=True)
def _sigmoid(z):
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    return math.exp(z) / (1.0 + math.exp(z))


@njit(cache=True, nogil=True)
def posterior(columns, evidence, slopes):
    """sigmoid(b0 + slopes . columns + evidence) per pair; `columns` (pairs, k), `slopes` (k + 1,)."""
    out = np.empty(len(evidence))
    for i in range(len(evidence)):
        z = slopes[0] + evidence[i]
        for j in range(columns.shape[1]):
            z += slopes[j + 1] * columns[i, j]
        out[i] = _sigmoid(z)
    return out


@njit(cache=True, nogil=True)
def logistic_sums(columns, target, weight, slopes, gradient, hessian):
    """Add the gradient (k + 1,) and information (k + 1, k + 1) of a soft-target logistic likelihood; rows of one
    weight."""
    k = columns.shape[1] + 1
    row = np.empty(k)
    row[0] = 1.0
    for i in range(len(target)):
        z = slopes[0]
        for j in range(1, k):
            row[j] = columns[i, j - 1]
            z += slopes[j] * row[j]
        chance = _sigmoid(z)
        pull, push = weight * (target[i] - chance), weight * chance * (1.0 - chance)
        for a in range(k):
            gradient[a] += pull * row[a]
            for b in range(a + 1):
                hessian[a, b] += push * row[a] * row[b]


@njit(cache=True, nogil=True)
def shift_to_mass(columns, evidence, slopes, mass):
    """The amount to add to b0 so that the posteriors sum to `mass` (Newton steps inside a bracket)."""
    low, high, shift = -60.0, 60.0, 0.0
    for _ in range(200):
        total, slope = 0.0, 0.0
        for i in range(len(evidence)):
            z = slopes[0] + shift + evidence[i]
            for j in range(columns.shape[1]):
                z += slopes[j + 1] * columns[i, j]
            chance = _sigmoid(z)
            total += chance
            slope += chance * (1.0 - chance)
        if abs(total - mass) <= 1e-9 * mass:
            break
        if total > mass:
            high = shift
        else:
            low = shift
        step = shift - (total - mass) / slope if slope > 0.0 else low - 1.0
        shift = step if low < step < high else (low + high) / 2
        if high - low < 1e-12:
            break
    return shift
