"""LDPGen: formulas by hand, generators against their definitions, and the two phases together."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from peers import evidence_of
from scipy import sparse, stats

from agents.privacy.ties.group_degrees import GroupDegrees
from server.refinement._expected_degrees import chung_lu, skip_pairs
from server.refinement._group_graph import between_groups, inside_group
from server.refinement.ldpgen import LdpGen, carried_over, number_of_groups
from sim.kernel.randomness import Streams


def test_number_of_groups_by_hand():
    # eta = 10 and 20, epsilon_2 = 0.5: f(5) = 5 + (25 - 32.3607 + 1)/0.5 = -7.7214; f(10) = 10 + (100 - 64.7214 +
    # 1)/0.5 = 82.5573; mean 37.4180 -> 38
    assert number_of_groups(np.array([10.2, 19.8]), 100, 0.5) == 38
    assert number_of_groups(np.array([4.0]), 100, 0.5) == 1  # f(2) < 0
    assert number_of_groups(np.array([90.0]), 100, 0.01) == 100


def test_degrees_are_carried_over_by_overlap():
    # first groups {0, 1}, {2, 3, 4}; second groups {0, 2}, {1, 3, 4}
    vectors = np.array([[4.0, 6.0], [-3.0, 3.0], [0.0, 0.0], [1.0, 1.0], [50.0, 3.0]])
    intents = carried_over(vectors, np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 1]), 20)
    # [4, 6]: 4 * 1/2 + 6 * 1/3 = 4 and 4 * 1/2 + 6 * 2/3 = 6; [-3, 3]: -0.5 -> 0 and 0.5; [50, 3]: 26 -> 19 and 27 ->
    # 19
    assert intents == pytest.approx(np.array([[4, 6], [0, 0.5], [0, 0], [5 / 6, 7 / 6], [19, 19]]))


def test_chung_lu_kernel_equals_its_plain_version():
    weights = np.sort(np.random.default_rng(1).pareto(1.5, 300))[::-1].copy()
    fast = skip_pairs(weights, weights.sum(), np.random.Generator(np.random.Philox(5)))
    plain = skip_pairs.py_func(weights, weights.sum(), np.random.Generator(np.random.Philox(5)))
    assert (fast[0] == plain[0]).all() and (fast[1] == plain[1]).all() and len(fast[0]) > 50


def test_chung_lu_ties_have_their_probabilities():
    """Every pair's frequency over 20,000 graphs against min(1, w w / sum): 15 binomial z-scores under 4.5."""
    weights, rng, trials = np.array([1.0, 6.0, 0.0, 3.0, 0.5, 2.0]), np.random.default_rng(2), 20_000
    counts = np.zeros((6, 6))
    for _ in range(trials):
        i, j = chung_lu(weights, rng)
        np.add.at(counts, (np.minimum(i, j), np.maximum(i, j)), 1)
    exact = np.triu(np.minimum(1.0, np.outer(weights, weights) / weights.sum()), 1)
    assert counts[exact == 1] == pytest.approx(trials) and not counts[exact == 0].any()
    uncertain = (exact > 0) & (exact < 1)
    z = (counts - trials * exact)[uncertain] / np.sqrt(trials * exact * (1 - exact))[uncertain]
    assert np.abs(z).max() < 4.5
    assert [len(side) for side in chung_lu(np.zeros(4), rng)] == [0, 0]


def test_between_groups_numbers_and_ends():
    """Groups {0, 1}, {2, 3, 4}: the ties are Poisson of the mean total, (6 + 4)/2 = 5, and ends follow the intents."""
    groups = np.array([0, 1, 0, 1, 1])
    intents = np.array([[9.0, 4.0], [1.0, 9.0], [9.0, 2.0], [3.0, 9.0], [0.0, 9.0]])
    rng, ends, sizes = np.random.default_rng(3), np.zeros(5), []
    for _ in range(4000):
        u, v = between_groups(intents, groups, rng)
        assert (groups[u] == 0).all() and (groups[v] == 1).all()
        sizes.append(len(u))
        ends += np.bincount(u, minlength=5) + np.bincount(v, minlength=5)
    sizes = np.array(sizes)
    assert abs(sizes.mean() - 5) < 4.5 * math.sqrt(5 / 4000)
    assert 0.85 < sizes.var() / 5 < 1.15
    total = sizes.sum()
    assert ends / total == pytest.approx([4 / 6, 1 / 4, 2 / 6, 3 / 4, 0], abs=4.5 * math.sqrt(0.25 / total))


def test_bter_makes_dense_blocks_and_keeps_degrees():
    """400 nodes of degree 10: blocks of 11 at density 0.9, then Chung-Lu for the missing degree of 1."""
    rng = np.random.default_rng(4)
    u, v = inside_group(np.full(400, 10.0), "bter", 0.9, rng)
    degrees = np.bincount(np.r_[u, v], minlength=400)
    assert abs(degrees.mean() - 10) < 0.3
    graph = sparse.csr_array((np.ones(2 * len(u)), (np.r_[u, v], np.r_[v, u])), shape=(400, 400))
    graph.data[:] = 1
    triangles = (graph @ graph).multiply(graph).sum()
    wedges = (degrees * (degrees - 1)).sum()
    assert triangles / wedges > 0.5  # Chung-Lu with these degrees has about 10/400
    plain_u, _ = inside_group(np.full(400, 10.0), "chung-lu", 0.9, rng)
    assert abs(2 * len(plain_u) / 400 - 10) < 1


def block_model(n, rng):
    """Two groups, mean degree about 20, nine tenths of it inside."""
    side = np.arange(n) % 2
    chance = np.where(side[:, None] == side, 36 / n, 4 / n)
    upper = np.triu(rng.random((n, n)) < chance, 1)
    return sparse.csr_array((upper | upper.T).astype(np.int8)), side


@pytest.mark.parametrize("generator", ["bter", "chung-lu"])
def test_two_phases_reproduce_the_number_of_ties(generator):
    """At epsilon 20 (noise of scale 0.1) the synthetic graph has the true number of ties within 15 %, and no more true
    ties than chance and groups give."""
    truth, _ = block_model(300, np.random.default_rng(5))
    refinement, streams = LdpGen(generator=generator, most_groups=12), Streams(4)
    protocol = refinement.tie_protocol(20.0, 5)
    assert isinstance(protocol, GroupDegrees)
    senders, none = np.arange(300), sparse.csr_array((300, 300), dtype=np.int8)
    ask = SimpleNamespace(phase=0, epoch=0, memoized=False, broadcast={})
    first = protocol.encode(truth, senders, streams, ask).numbers
    groups = refinement.broadcast(0, evidence_of(none, protocol, [first]), streams)["groups"]
    assert groups.shape == (300,) and groups.min() == 0
    ask = SimpleNamespace(phase=1, epoch=0, memoized=False, broadcast={"groups": groups})
    second = protocol.encode(truth, senders, streams, ask).numbers
    given = evidence_of(none, protocol, [first, second], extra={"groups": groups})
    graph = refinement.refine(given, np.ones(300, bool), streams)
    assert abs(len(graph.u) / (truth.nnz / 2) - 1) < 0.15
    assert (graph.u < graph.v).all() and len(set(zip(graph.u, graph.v))) == len(graph.u)
    correlation = stats.spearmanr(np.bincount(np.r_[graph.u, graph.v], minlength=300), np.diff(truth.indptr))
    assert correlation.statistic > 0.3
    recomputed = refinement.refine(evidence_of(none, protocol, [first, second]), np.ones(300, bool), streams)
    assert (recomputed.u == graph.u).all() and (recomputed.v == graph.v).all()


def test_silent_users_have_no_group_and_no_tie():
    truth, _ = block_model(60, np.random.default_rng(6))
    refinement, streams, silent = LdpGen(most_groups=4), Streams(1), np.array([3, 17])
    protocol, none = GroupDegrees(epsilon=6.0), sparse.csr_array((60, 60), dtype=np.int8)
    ask = SimpleNamespace(phase=0, epoch=0, memoized=False, broadcast={})
    first = protocol.encode(truth, np.arange(60), streams, ask).numbers
    first[silent] = np.nan
    groups = refinement.broadcast(0, evidence_of(none, protocol, [first]), streams)["groups"]
    assert (groups[silent] == -1).all() and (np.delete(groups, silent) >= 0).all()
    ask = SimpleNamespace(phase=1, epoch=0, memoized=False, broadcast={"groups": groups})
    second = protocol.encode(truth, np.arange(60), streams, ask).numbers
    second[silent] = np.nan
    kept = np.arange(60) != 5
    graph = refinement.refine(evidence_of(none, protocol, [first, second], extra={"groups": groups}), kept, streams)
    assert len(graph.u) > 0 and not np.isin([*graph.u, *graph.v], [3, 17, 5]).any()
    nobody = np.full((60, 2), np.nan)
    empty = refinement.broadcast(0, evidence_of(none, protocol, [nobody]), streams)["groups"]
    assert (empty == -1).all()
    nothing = refinement.refine(
        evidence_of(none, protocol, [nobody, nobody[:, :0]], extra={"groups": empty}), kept, streams
    )
    assert len(nothing.u) == 0
