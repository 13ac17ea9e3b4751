"""Binary randomised response over lists: what `binary-list`, `pair-bits` and other protocols of bits share."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from agents.privacy.ties.base import power
from sim.kernel.randomness import Streams


def flip_probability(epsilon: float) -> float:
    """q = 1 / (1 + e^epsilon): probability that a bit is reported inverted (Warner's randomised response)."""
    return 1.0 / (1.0 + power(epsilon))


def noisy_bits(
    truth: sparse.csr_array,
    senders: np.ndarray,
    epsilon: float,
    streams: Streams,
    epoch: int,
    owned_only: bool,
    purpose: str = "ties/bits",
) -> sparse.csr_array:
    """Lists of noisy ones, (k, n) int8 csr with sorted indices, from the true lists of `senders` (k,) stable ids.

    Any stored level counts as a one. Every one of the n - 1 entries of a row (only the entries whose pair the sender
    owns, with `owned_only`) is flipped with probability q = 1 / (1 + e^epsilon), in time and memory proportional to the
    noisy ones. A row depends on its truth, its sender, `epoch` and the seed alone.
    """
    from agents.privacy.ties._bit_kernels import flip_bits

    rows, columns = truth.shape
    flip = flip_probability(epsilon)
    expected = (truth.nnz + rows * columns * flip) * (0.5 if owned_only else 1.0)
    capacity = int(expected + 8 * math.sqrt(expected + 1) + 64)
    while True:
        indptr, indices = flip_bits(
            truth.indptr.astype(np.int64),
            truth.indices.astype(np.int32),
            np.asarray(senders, dtype=np.int64),
            columns,
            owned_only,
            flip,
            streams.key(purpose),
            streams.key(purpose + "/held"),
            epoch,
            capacity,
        )
        if len(indptr):
            break
        capacity *= 2
    return sparse.csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=truth.shape)
