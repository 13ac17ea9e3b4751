"""Attestation and the printed Stage II on four users, worked by hand; the kernel against its plain reference."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from worlds import FOUR, evidence, published

from server._attestation import intersect, intersect_plain
from server.attestation import PENALTY, Attestation, confidence, mutual_pairs, pairs_within
from server.refinement.attested import Attested
from server.refinement.equal_levels import EqualLevels
from sim.kernel.randomness import Streams

EVERYBODY = np.ones(4, bool)


def test_mutual_pairs_of_four_users():
    pairs = mutual_pairs(FOUR)
    assert list(zip(pairs.u, pairs.v, pairs.x, pairs.y)) == [(0, 1, 3, 2), (0, 2, 1, 1), (1, 3, 1, 3)]
    assert (pairs.u.dtype, pairs.x.dtype) == (np.int32, np.int8)


def test_confidence_of_four_users():
    # Eq. 13 with kappa = 3: min(3,2)/3 e^-l, min(1,1)/3, min(1,3)/3 e^-2l.
    pairs = mutual_pairs(FOUR)
    assert confidence(pairs, 3, 1.0) == pytest.approx([2 / 3 * math.exp(-1), 1 / 3, 1 / 3 * math.exp(-2)])
    assert confidence(pairs, 3, 2.0) == pytest.approx([2 / 3 * math.exp(-2), 1 / 3, 1 / 3 * math.exp(-4)])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 25), st.floats(0, 1), st.integers(0, 2**32), st.sampled_from([np.int32, np.int64]))
def test_kernel_equals_plain_reference(n, density, seed, width):
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 6, (n, n)) * (rng.random((n, n)) < density) * ~np.eye(n, dtype=bool)
    lists = sparse.csr_array(dense.astype(np.int8))
    parts = lists.indptr.astype(width), lists.indices.astype(width), lists.data
    for fast, plain in zip(intersect(*parts), intersect_plain(*parts)):
        assert fast.dtype == plain.dtype and (fast == plain).all()


def test_two_million_entries_are_quick():
    rng = np.random.default_rng(0)
    n, row = 7600, 265
    indices = np.concatenate([np.sort(rng.choice(n, row, replace=False)) for _ in range(n)]).astype(np.int32)
    lists = sparse.csr_array((np.ones(n * row, np.int8), indices, np.arange(n + 1) * row), shape=(n, n))
    mutual_pairs(lists)
    start = time.process_time()
    pairs = mutual_pairs(lists)
    assert time.process_time() - start < 0.3
    assert len(pairs.u) == pytest.approx(n * (n - 1) / 2 * (row / n) ** 2, rel=0.05)


def test_pairs_within_drops_pairs_with_an_outsider():
    pairs = pairs_within(mutual_pairs(FOUR), np.array([True, True, False, True]))
    assert list(zip(pairs.u, pairs.v)) == [(0, 1), (1, 3)]


def test_attested_keeps_mutual_pairs_of_kept_users():
    held = evidence(FOUR, 5.0, 3)
    assert published(Attested().refine(held, EVERYBODY, Streams(0))) == {(0, 1), (0, 2), (1, 3)}
    kept = np.array([False, True, True, True])
    assert published(Attested().refine(held, kept, Streams(0))) == {(1, 3)}


def test_attested_cut_weights_and_penalty():
    held = evidence(FOUR, 5.0, 3)
    assert published(Attested(cut=0.1).refine(held, EVERYBODY, Streams(0))) == {(0, 1), (0, 2)}
    held.extra[PENALTY] = np.float64(3.0)
    assert published(Attested(cut=0.1).refine(held, EVERYBODY, Streams(0))) == {(0, 2)}
    weighted = Attested(weights="confidence").refine(held, EVERYBODY, Streams(0))
    assert weighted.weight == pytest.approx([2 / 3 * math.exp(-3), 1 / 3, 1 / 3 * math.exp(-6)])
    assert Attested().refine(held, EVERYBODY, Streams(0)).weight is None


def test_equal_levels_keeps_agreement_only():
    held = evidence(FOUR, 5.0, 3)
    assert published(EqualLevels().refine(held, EVERYBODY, Streams(0))) == {(0, 2)}


def test_penalty_must_be_positive():
    with pytest.raises(ValueError, match="greater than 0"):
        Attestation(asymmetry_penalty=0.0)
