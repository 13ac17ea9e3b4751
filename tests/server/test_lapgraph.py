"""LAPGRAPH: the sparse algorithm has exactly the law of noise on every cell, and the release is differentially
private."""

import math

import numpy as np
import pytest
from peers import evidence_of
from scipy import integrate, sparse, stats

from agents.privacy.ties.trusted_curator import TrustedCurator
from server.refinement._pairs import random_cells, triangle_cells, triangle_pairs
from server.refinement.lapgraph import LapGraph, largest_cells, largest_laplace
from sim.kernel.randomness import Streams


def brute_force(ones, total, wanted, epsilon, rng):
    """Noise on every cell, then a full sort."""
    cells = rng.laplace(0, 1 / epsilon, total)
    cells[ones] += 1
    return np.sort(np.argsort(-cells)[:wanted])


@pytest.mark.parametrize(
    "ones, total, wanted, epsilon", [([1], 3, 1, 1.0), ([0, 4], 6, 2, 2.0), ([0, 1, 2], 6, 4, 0.5)]
)
def test_published_sets_have_the_law_of_the_dense_algorithm(ones, total, wanted, epsilon):
    """20,000 releases of each, compared set by set: chi-square over at most 20 sets, error rate 1e-4 a case."""
    rng, ones = np.random.default_rng(3), np.array(ones)
    counts = np.zeros((2, 1 << total), np.int64)
    for row, method in enumerate([largest_cells, brute_force]):
        for _ in range(20_000):
            counts[row, (1 << method(ones, total, wanted, epsilon, rng)).sum()] += 1
    seen = counts.sum(axis=0) > 10
    assert stats.chi2_contingency(counts[:, seen]).pvalue > 1e-4


def test_probability_of_a_true_tie_equals_the_integral():
    """One tie, three pairs, T = 1: P = integral of the density of 1 + L times F(x)^2; 40,000 releases, 4 standard
    errors."""
    epsilon, rng = 1.5, np.random.default_rng(8)
    law = stats.laplace(scale=1 / epsilon)
    exact = integrate.quad(lambda x: law.pdf(x - 1) * law.cdf(x) ** 2, -30, 1)[0]
    exact += integrate.quad(lambda x: law.pdf(x - 1) * law.cdf(x) ** 2, 1, 30)[0]
    hits = sum(largest_cells(np.array([1]), 3, 1, epsilon, rng)[0] == 1 for _ in range(40_000))
    assert abs(hits / 40_000 - exact) < 4 * math.sqrt(exact * (1 - exact) / 40_000)


def test_same_noise_same_set_as_a_full_sort():
    """The merge picks what a full sort of the same noises picks: noises of the zeros that the algorithm does not draw
    lie below those that it does, so placing its own draws in a dense vector and sorting gives the same number from
    each."""
    for seed in range(200):
        rng, twin = np.random.default_rng(seed), np.random.default_rng(seed)
        ones, total, wanted = np.array([2, 5, 7, 11]), 15, seed % 12
        cells = largest_cells(ones, total, wanted, 1.0, rng)
        noisy_ones = 1 + twin.laplace(0, 1, 4)
        noisy_zeros = largest_laplace(11, min(wanted, 11), 1.0, twin)
        dense = sorted([(value, cell) for value, cell in zip(noisy_ones, ones)] + [(z, -1) for z in noisy_zeros])[::-1]
        expected = sorted(cell for _, cell in dense[:wanted] if cell >= 0)
        assert sorted(set(cells) & set(ones)) == expected and len(cells) == wanted == len(set(cells))


def test_order_statistics_have_their_laws():
    """The r-th largest of 50 uniforms is Beta(51 - r, r): Kolmogorov-Smirnov on 4,000 draws, error rate 1e-4 each."""
    rng = np.random.default_rng(4)
    draws = np.array([largest_laplace(50, 50, 2.0, rng) for _ in range(4000)])
    assert (np.diff(draws, axis=1) <= 0).all()
    uniform = stats.laplace(scale=2.0).cdf(draws)
    for rank in (1, 2, 10, 30, 50):
        assert stats.kstest(uniform[:, rank - 1], stats.beta(51 - rank, rank).cdf).pvalue > 1e-4


def test_far_tail_does_not_collapse():
    top = largest_laplace(10**15, 5, 1.0, np.random.default_rng(0))
    assert np.isfinite(top).all() and (np.diff(top) < 0).all() and 25 < top[0] < 45


@pytest.mark.parametrize("n", [2, 3, 7, 1000, 92_000])
def test_positions_in_the_triangle_invert(n):
    total = n * (n - 1) // 2
    cells = np.unique(np.r_[0, total - 1, np.random.default_rng(1).integers(0, total, 2000)])
    u, v = triangle_pairs(cells, n)
    assert (u < v).all() and v.max() < n and (triangle_cells(u, v, n) == cells).all()


def test_random_cells_are_uniform_over_the_free_ones():
    rng, taken = np.random.default_rng(2), np.array([3, 4, 9])
    for count in (2, 8):
        counts = np.zeros(12, np.int64)
        for _ in range(6000):
            cells = random_cells(12, taken, count, rng)
            assert len(np.unique(cells)) == count
            counts[cells] += 1
        assert not counts[taken].any()
        free = np.delete(counts, taken)
        assert abs(free - 6000 * count / 9).max() < 5 * math.sqrt(6000 * count / 9)
    with pytest.raises(ValueError, match="only 9 of 12 are free"):
        random_cells(12, taken, 10, rng)


def ring(n):
    rows = np.arange(n)
    lists = sparse.csr_array((np.ones(2 * n, np.int8), (np.r_[rows, (rows + 1) % n], np.r_[(rows + 1) % n, rows])))
    lists.sort_indices()
    return lists


def test_number_and_truth_of_published_ties():
    lists = ring(400)
    given = evidence_of(lists, TrustedCurator(epsilon=8.0))
    graph = LapGraph().refine(given, np.ones(400, bool), Streams(1))
    assert abs(len(graph.u) - 400) < 20 / 0.08  # T - E is Laplace of scale 12.5; 20 scales
    true = ((graph.v - graph.u) % 400 == 1) | ((graph.v - graph.u) % 400 == 399)
    # a tie is published when it beats the threshold: at epsilon_2 = 7.92 nearly always
    assert true.sum() > 300
    assert len(np.unique(triangle_cells(graph.u, graph.v, 400))) == len(graph.u)


def test_a_claim_of_one_end_is_not_a_tie_and_pruning_only_drops():
    lists = ring(60).tolil()
    lists[5, 20:50] = 1
    given = evidence_of(sparse.csr_array(lists.tocsr()), TrustedCurator(epsilon=1e4))
    everyone = LapGraph().refine(given, np.ones(60, bool), Streams(1))
    assert len(everyone.u) in (59, 60)  # T is cut to a whole number
    assert len(LapGraph(ends=1).refine(given, np.ones(60, bool), Streams(1)).u) > 80
    kept = np.arange(60) != 7
    some = LapGraph().refine(given, kept, Streams(1))
    stay = kept[everyone.u] & kept[everyone.v]
    assert (some.u == everyone.u[stay]).all() and (some.v == everyone.v[stay]).all()


def test_noise_follows_the_epoch_and_the_ties():
    lists, kept = ring(50), np.ones(50, bool)

    def release(lists, **extra):
        return LapGraph().refine(evidence_of(lists, TrustedCurator(epsilon=1.0), extra=extra), kept, Streams(1))

    first, again, later = release(lists), release(lists), release(lists, epoch=np.int64(2))
    assert (first.u == again.u).all() and (first.v == again.v).all()
    assert set(zip(first.u, first.v)) != set(zip(later.u, later.v))


def test_audit_one_tie_of_six_users():
    """Two worlds that differ in the tie {0, 1}; 4,000 releases each (over seeds). Events: the pair is published, at
    least k ties are published, both. Clopper-Pearson at 1e-5 must not contradict e^epsilon;
    96 tests."""
    base = np.zeros((6, 6), np.int8)
    for u, v in [(2, 3), (3, 4), (4, 5), (1, 2)]:
        base[u, v] = base[v, u] = 1
    tied = base.copy()
    tied[0, 1] = tied[1, 0] = 1
    trials, epsilon, outcomes = 4_000, 1.5, []
    for offset, world in enumerate([base, tied]):
        given = evidence_of(sparse.csr_array(world), TrustedCurator(epsilon=epsilon))
        rows = np.zeros((trials, 2), np.int64)
        for trial in range(trials):
            graph = LapGraph(count_share=0.3).refine(given, np.ones(6, bool), Streams(2 * trial + offset))
            rows[trial] = len(graph.u), ((graph.u == 0) & (graph.v == 1)).any()
        outcomes.append(rows)
    strongest = 0.0
    for size in range(0, 16):
        for event in ("alone", "with", "without"):
            hits = []
            for rows in outcomes:
                inside = rows[:, 0] >= size
                if event != "alone":
                    inside &= rows[:, 1] == (event == "with")
                hits.append(int(inside.sum()))
            for a, b in [(0, 1), (1, 0)]:
                low = stats.beta.ppf(1e-5, hits[a], trials - hits[a] + 1) if hits[a] else 0.0
                high = stats.beta.ppf(1 - 1e-5, hits[b] + 1, trials - hits[b]) if hits[b] < trials else 1.0
                assert low <= math.exp(epsilon) * high
                strongest = max(strongest, low / high)
    assert strongest > math.exp(epsilon / 3)  # the events are strong enough to expose a threefold overspend
