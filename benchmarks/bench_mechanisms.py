"""Perturbing the reports of 7,624 users: 128 features with every mechanism, and their lists at epsilon 5.

Prints the best of three, in seconds on one core; kernels are compiled before the clock starts. Target: features and
lists together under 1 s, whichever mechanism.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

from agents.privacy.features import FeatureMechanism
from agents.privacy.features.none import PublicFeatures
from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Protocol, RoundCall
from sim.kernel.randomness import Streams

USERS, DIMENSIONS, MEAN_DEGREE, EPSILON = 7_624, 128, 7.3, 5.0
STREAMS = Streams(1)


def best_of_three(work: Callable[[], object]) -> float:
    """Seconds."""
    work()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def true_features() -> sparse.csr_array:
    """Rows with three values in ten above zero."""
    generator = STREAMS.generator("bench/features")
    dense = generator.random((USERS, DIMENSIONS), dtype=np.float32)
    return sparse.csr_array(dense * (generator.random((USERS, DIMENSIONS)) < 0.3))


def true_lists() -> sparse.csr_array:
    """Symmetric random ties with levels 1..5."""
    generator = STREAMS.generator("bench/ties")
    ends = generator.integers(0, USERS, (2, int(USERS * MEAN_DEGREE / 2)))
    ends = ends[:, ends[0] != ends[1]]
    both = np.hstack([ends, ends[::-1]])
    pattern = sparse.csr_array((np.ones(both.shape[1], dtype=np.int8), (both[0], both[1])), shape=(USERS, USERS))
    lists = sparse.csr_array(pattern > 0).astype(np.int8)
    lists.data[:] = generator.integers(1, 6, lists.nnz)
    lists.sort_indices()
    return lists


if __name__ == "__main__":
    features, lists, senders = true_features(), true_lists(), np.arange(USERS)
    spent: dict[str, float] = {}
    for cls in FeatureMechanism._family.classes():
        if cls.kind == "none":
            continue
        sizes = [("all", {} if cls.kind == "one-bit" else {"dimensions": DIMENSIONS})]
        sizes += [] if cls.kind == "one-bit" else [("auto", {})]
        for name, more in sizes:
            mechanism = cls(epsilon=EPSILON, **more)
            epochs = np.ones(USERS, dtype=np.uint64)
            seconds = best_of_three(lambda: mechanism.perturb(features, senders, epochs, STREAMS))  # noqa: B023
            spent[cls.kind] = max(seconds, spent.get(cls.kind, 0.0))
            print(f"features {cls.kind:13s} m = {mechanism.sampled(DIMENSIONS):3d} ({name:4s})  {seconds:.4f} s")
    for ties in (VerificationList(epsilon=EPSILON, levels=5), BinaryList(epsilon=EPSILON), PairBits(epsilon=EPSILON)):
        protocol = Protocol(USERS, DIMENSIONS, 18, PublicFeatures(), ties, "list-entry", 1, MEAN_DEGREE)
        call = RoundCall(1, 0, 1, False, protocol)
        seconds = best_of_three(lambda: ties.encode(lists, senders, STREAMS, call))  # noqa: B023
        spent[ties.kind] = seconds
        print(f"ties     {ties.kind:17s}        {'':8s}{seconds:.4f} s")
    slowest = max(spent[kind] for kind in spent if kind not in ("verification-list", "binary-list", "pair-bits"))
    total = slowest + spent["verification-list"]
    print(
        f"slowest mechanism and verification lists: {total:.3f} s ({'under' if total < 1 else 'over'} the target, 1 s)"
    )
