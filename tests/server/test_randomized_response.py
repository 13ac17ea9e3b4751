"""Randomised response as published, expected density, and the warning before a dense graph."""

import math

import numpy as np
import pytest
from peers import evidence_of
from scipy import sparse

from agents.privacy.features.none import PublicFeatures
from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.sampled_list import SampledList
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Protocol
from server.bits import pair_channel
from server.density import expected_density, size_warning
from server.refinement.randomized_response import RandomizedResponse
from sim.kernel.randomness import Streams


def noisy_lists(n, seed, density=0.05, epsilon=1.0, two_ended=False):
    rng = np.random.default_rng(seed)
    true = np.triu(rng.random((n, n)) < density, 1)
    lists = (true | true.T) ^ (rng.random((n, n)) < 1 / (1 + math.exp(epsilon)))
    return true, np.triu(lists, 1) if not two_ended else lists & ~np.eye(n, dtype=bool)


def pairs_of(structure):
    return set(zip(structure.u.tolist(), structure.v.tolist()))


def test_raw_publishes_every_reported_pair_of_kept_users():
    _, lists = noisy_lists(60, 1)
    kept = np.arange(60) % 7 > 0
    made = RandomizedResponse().refine(evidence_of(sparse.csr_array(lists), PairBits(epsilon=1.0)), kept, Streams(0))
    assert pairs_of(made) == {(u, v) for u, v in np.argwhere(lists).tolist() if kept[u] and kept[v]}
    assert made.weight is None and "of all pairs" in made.notes[0]


@pytest.mark.parametrize("ends, rule", [("both", np.logical_and), ("either", np.logical_or)])
def test_two_ended_reports_need_both_ends_or_either(ends, rule):
    _, lists = noisy_lists(50, 2, two_ended=True)
    method = RandomizedResponse(ends=ends)
    made = method.refine(evidence_of(sparse.csr_array(lists), BinaryList(epsilon=1.0)), np.ones(50, bool), Streams(0))
    assert pairs_of(made) == {tuple(p) for p in np.argwhere(np.triu(rule(lists, lists.T), 1)).tolist()}


def test_debiased_weights_are_the_chance_of_a_tie_given_a_report():
    """By Bayes: p d / (p d + q (1 - d)), d = (share of ones - q) / (p - q). Their sum is the expected number of
    reported true ties: within 4 sd of it."""
    true, lists = noisy_lists(400, 3, density=0.2)
    protocol = PairBits(epsilon=1.0)
    made = RandomizedResponse(variant="debiased").refine(
        evidence_of(sparse.csr_array(lists), protocol), np.ones(400, bool), Streams(0)
    )
    q, pairs = protocol.flip, 400 * 399 / 2
    d = (lists.sum() / pairs - q) / (1 - 2 * q)
    assert made.weight == pytest.approx(np.full(lists.sum(), (1 - q) * d / ((1 - q) * d + q * (1 - d))), rel=1e-6)
    sd = math.sqrt(pairs * q * (1 - q)) / (1 - 2 * q)
    assert abs(made.weight.sum() - (true & lists).sum()) < 4 * sd


@pytest.mark.parametrize("ends", ["both", "either"])
@pytest.mark.parametrize("ties", [PairBits(epsilon=2.0), BinaryList(epsilon=2.0)])
def test_the_estimate_has_two_values_that_average_to_the_density(ties, ends):
    _, lists = noisy_lists(300, 4, density=0.15, epsilon=2.0, two_ended=ties.two_ended)
    kept = np.arange(300) % 9 > 0
    method, given = RandomizedResponse(ends=ends), evidence_of(sparse.csr_array(lists), ties)
    estimate, made = method.pair_estimate(given, kept, Streams(0)), method.refine(given, kept, Streams(0))
    dense = estimate.dense()
    assert len(np.unique(dense)) == 2 and (dense == dense.max()).sum() == len(made.u)
    assert dense.max() == pytest.approx(made.probability[0]) and abs(dense.mean() - 0.15) < 0.03


def test_relabelling_the_nodes_relabels_the_published_graph():
    _, lists = noisy_lists(70, 5)
    order = np.random.default_rng(0).permutation(70)
    method, ties = RandomizedResponse(variant="debiased"), PairBits(epsilon=1.0)
    before = method.refine(evidence_of(sparse.csr_array(lists), ties), np.ones(70, bool), Streams(0))
    after = method.refine(evidence_of(sparse.csr_array(lists[order][:, order]), ties), np.ones(70, bool), Streams(0))
    assert {tuple(sorted((order[u], order[v]))) for u, v in pairs_of(after)} == pairs_of(before)


@pytest.mark.parametrize(
    "ties", [PairBits(epsilon=1.0), BinaryList(epsilon=1.0), VerificationList(epsilon=3.0, levels=5)]
)
def test_density_is_as_expected(ties):
    """The real client's reports of 500 users, within 4 sd of q0 + (p - q0) d."""
    from types import SimpleNamespace

    n, rng = 500, np.random.default_rng(1)
    true = np.triu(rng.random((n, n)) < 0.02, 1)
    truth = sparse.csr_array((true | true.T).astype(np.int8))
    lists = ties.encode(truth, np.arange(n), Streams(6), SimpleNamespace(epoch=0, phase=0, memoized=False)).lists
    made = RandomizedResponse().refine(evidence_of(lists, ties), np.ones(n, bool), Streams(0))
    expected = expected_density(pair_channel(ties), n, truth.nnz / n)
    pairs = n * (n - 1) / 2
    assert abs(len(made.u) - expected.ties) < 4 * math.sqrt(pairs * expected.density)
    assert expected.density == pytest.approx(expected.ties / pairs)


def test_expected_density_by_hand():
    """DBLP at epsilon 1: 26.9% of the pairs, as printed for this graph."""
    size = expected_density(pair_channel(PairBits(epsilon=1.0)), 4057, 2 * 3528 / 4057)
    assert size.density == pytest.approx(0.26914, abs=5e-6)
    assert size.true_ties == pytest.approx(3528 * math.e / (1 + math.e))
    assert size.megabytes == pytest.approx(size.ties * 48e-6)


@pytest.mark.parametrize(
    "ties, warned",
    [
        (PairBits(epsilon=1.0), True),
        (PairBits(epsilon=8.0), False),
        (VerificationList(epsilon=5.0, levels=5), False),
        (SampledList(epsilon=1.0), False),
    ],
)
def test_a_dense_graph_is_announced(ties, warned):
    protocol = Protocol(4057, 1, 2, PublicFeatures(), ties, "undirected-tie", 1, 1.74)
    told = size_warning(protocol, 4057)
    assert (told is not None) is warned and RandomizedResponse().warning(protocol) == told
    if told:
        assert "26.9% of all pairs" in told and "4057 users" in told
