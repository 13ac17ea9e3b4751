"""PrivGraph: norm-sub and the exponential mechanism by hand, the three stages, the preset's quirks, and an audit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import evidence_of
from scipy import sparse, stats

from agents.privacy.ties.trusted_curator import TrustedCurator
from server.refinement._norm_sub import norm_sub
from server.refinement.privgraph import (
    Coarse,
    PrivGraph,
    block_counts,
    exponential_mechanism,
    louvain,
    same_community_degrees,
    symmetric,
)
from sim.kernel.randomness import Streams


def plain_norm_sub(noisy):
    """The definition: try every amount in turn."""
    whole = [int(x) for x in noisy]
    if min(whole) >= 0:
        return whole
    best = None
    for amount in range(-min(whole)):
        result = [max(x - amount, 0) for x in whole]
        distance = abs(sum(result) - sum(whole))
        if best is None or distance < best[0]:
            best = (distance, result)
    return best[1]


@pytest.mark.parametrize(
    "noisy, expected",
    [
        ([5, 3, -2, 0, 1], [4, 2, 0, 0, 0]),
        ([10, -10, 4, 4], [7, 0, 1, 1]),
        ([-3, -2, -1], [0, 0, 0]),
        ([2.9, 0.5, 1.2], [2, 0, 1]),
        ([3.7, -0.9], [3, 0]),
    ],
)
def test_norm_sub_by_hand(noisy, expected):
    assert norm_sub(np.array(noisy)).tolist() == expected


@settings(deadline=None, max_examples=300)
@given(st.lists(st.floats(-60, 60), min_size=1, max_size=12))
def test_norm_sub_equals_the_plain_search(noisy):
    assert norm_sub(np.array(noisy)).tolist() == plain_norm_sub(noisy)


def test_exponential_mechanism_has_its_law():
    """exp(rate score) / sum over 30,000 draws: chi-square at 1e-4. The released score with 4 ties of 10 candidates at
    epsilon = 1.5: P = e^(0.5 * 4 / 4) / (e^0.5 + 9) = 0.155."""
    rng, score = np.random.default_rng(1), np.r_[4.0, np.zeros(9)]
    drawn = np.bincount([exponential_mechanism(score, 0.5 / 4, rng) for _ in range(30_000)], minlength=10)
    law = np.exp(score / 8) / np.exp(score / 8).sum()
    assert law[0] == pytest.approx(0.155, abs=5e-4)
    assert stats.chisquare(drawn, law * 30_000).pvalue > 1e-4


def two_blocks(n, rng, inside=0.3, outside=0.01):
    side = np.arange(n) % 2
    upper = np.triu(rng.random((n, n)) < np.where(side[:, None] == side, inside, outside), 1)
    return sparse.csr_array((upper | upper.T).astype(np.int8)), side


def test_counts_by_hand():
    ties = symmetric(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), 5)
    blocks = np.array([0, 0, 1, 1, 2])
    # 0-1 inside block 0 (counted twice), 0-2 and 1-3 between 0 and 1, 2-3 inside block 1
    assert block_counts(ties, blocks, 3).tolist() == [[2, 2, 0], [2, 2, 0], [0, 0, 0]]
    assert same_community_degrees(ties, blocks).tolist() == [1, 1, 1, 1, 0]


def test_louvain_finds_two_blocks_of_a_weighted_graph():
    weights = np.full((8, 8), 1)
    weights[:4, :4] = weights[4:, 4:] = 20
    part = louvain(weights, 1.0, 3)
    assert len(set(part[:4])) == 1 and len(set(part[4:])) == 1 and part[0] != part[4]
    assert louvain(np.zeros((3, 3)), 1.0, 3).tolist() == [0, 1, 2]


def test_adjustment_moves_users_to_their_ties():
    """With much budget a user with all its ties in the other community moves there, in the paper's score and the
    code's."""
    ties, side = two_blocks(60, np.random.default_rng(2))
    start = side.copy()
    start[:6] = 1 - start[:6]
    coarse = Coarse(start, np.full(60, float(ties.nnz) / 60))
    for preset in ("paper", "released-code"):
        moved = PrivGraph(preset=preset).adjusted(ties, coarse, 200.0, np.random.default_rng(3))
        assert (moved == side).all() or (moved == 1 - side).all()


def test_modularity_score_by_hand():
    """A user with 2 ties into each of two communities whose noisy volumes (without it) are 30 and 10 of 2m = 44:
    scores 2 - 4 * 30/44 and 2 - 4 * 10/44; at epsilon = 4, P(second) = 1 / (1 + e^(-80/44)) = 0.860."""
    rows, columns = np.array([0, 0, 0, 0]), np.array([1, 2, 3, 4])
    ties = symmetric(rows, columns, 5)
    coarse = Coarse(np.array([0, 0, 0, 1, 1]), np.array([4.0, 15.0, 15.0, 5.0, 5.0]))
    hits = 0
    for seed in range(4000):
        # only the first user of the pass sees the volumes above; let user 0 be it
        rng = np.random.default_rng(seed)
        rng = SmallPass(rng)
        hits += PrivGraph().adjusted(ties, coarse, 4.0, rng)[0] == 1
    exact = 1 / (1 + math.exp(-80 / 44))
    assert abs(hits / 4000 - exact) < 4.5 * math.sqrt(exact * (1 - exact) / 4000)


class SmallPass:
    """A generator whose permutation visits user 0 only."""

    def __init__(self, rng):
        self.rng = rng

    def permutation(self, n):
        return np.array([0])

    def random(self):
        return self.rng.random()


def test_much_budget_reproduces_ties_and_blocks():
    ties, side = two_blocks(200, np.random.default_rng(4))
    given = evidence_of(ties, TrustedCurator(epsilon=300.0))
    graph = PrivGraph(group_size=1).refine(given, np.ones(200, bool), Streams(1))
    assert abs(len(graph.u) / (ties.nnz / 2) - 1) < 0.1
    assert (side[graph.u] == side[graph.v]).mean() > 0.9
    assert (graph.u < graph.v).all() and len(set(zip(graph.u, graph.v))) == len(graph.u)
    assert graph.summary["communities"] == 2 and not graph.notes


def test_counts_between_communities_are_met_exactly_and_by_the_right_ends():
    """Three communities of 5, no tie inside; at much budget 12 ties between the first and the second, none else."""
    first, second = np.divmod(np.arange(12), 5)[0], 5 + np.arange(12) % 5
    ties, communities = symmetric(first, second, 15), np.repeat([0, 1, 2], 5)
    u, v = PrivGraph().synthetic(ties, communities, 1e6, np.random.default_rng(1))
    assert len(u) == 12 and (communities[u] == 0).all() and (communities[v] == 1).all()
    u, v = PrivGraph(preset="released-code").synthetic(ties, communities, 1e6, np.random.default_rng(1))
    assert len(u) <= 12 and (communities[v] == 2).all()  # one end in the last community, whichever pair was counted


def test_presets_say_what_they_do_and_empty_graphs_pass():
    nobody = evidence_of(sparse.csr_array((30, 30), dtype=np.int8), TrustedCurator(epsilon=1.0))
    graph = PrivGraph(preset="released-code", group_size=7).refine(nobody, np.ones(30, bool), Streams(2))
    assert "released code" in graph.notes[0]
    assert PrivGraph.curator == "trusted"
    kept = np.arange(30) % 2 == 0
    some = PrivGraph(group_size=7).refine(nobody, kept, Streams(2))
    assert kept[some.u].all() and kept[some.v].all()


BASE = symmetric(np.array([2, 3, 4, 1]), np.array([3, 4, 5, 2]), 6)
TIED = symmetric(np.array([2, 3, 4, 1, 0]), np.array([3, 4, 5, 2, 1]), 6)


def contradictions(hits, trials, epsilon):
    """Events (2, events) whose Clopper-Pearson bounds at 1e-5 contradict a ratio of e^epsilon, in either direction."""
    found = 0
    for a, b in [(0, 1), (1, 0)]:
        low = np.nan_to_num(stats.beta.ppf(1e-5, hits[a], trials - hits[a] + 1))
        high = np.nan_to_num(stats.beta.ppf(1 - 1e-5, hits[b] + 1, trials - hits[b]), nan=1.0)
        found += int((low > math.exp(epsilon) * high).sum())
    return found


@pytest.mark.parametrize("preset", ["paper", "released-code"])
@pytest.mark.parametrize("resolution", [1.0, 2.5])
def test_the_adjustment_of_six_users_costs_at_most_its_budget_exactly(preset, resolution, monkeypatch):
    """Stage 2 in two worlds that differ in the tie {0, 1}: the exact probability of each of the 64 outcomes, by
    forcing every user's choice and multiplying the probabilities that the code itself gives to them. No ratio exceeds
    e^epsilon."""
    coarse = Coarse(np.array([0, 1, 0, 1, 0, 1]), np.array([1.0, 2.0, 1.5, 1.5, 2.0, 1.0]))
    epsilon, refinement, largest = 3.0, PrivGraph(preset=preset, resolution=resolution), 0.0

    def log_probability(ties, outcome, seed):
        choices, spent = iter(np.random.default_rng(seed).permutation(6)), []

        def forced(score, rate, rng):
            choice = outcome[next(choices)]
            spent.append(rate * score[choice] - np.log(np.exp(rate * score).sum()))
            return int(choice)

        monkeypatch.setattr("server.refinement.privgraph.exponential_mechanism", forced)
        refinement.adjusted(ties, coarse, epsilon, np.random.default_rng(seed))
        assert len(spent) == 6
        return sum(spent)

    for seed in range(4):
        both = []
        for ties in (BASE, TIED):
            both.append([log_probability(ties, np.array(o), seed) for o in np.ndindex(*(2,) * 6)])
            assert np.exp(both[-1]).sum() == pytest.approx(1)
        largest = max(largest, np.abs(np.subtract(*both)).max())
    assert epsilon / 8 < largest <= epsilon


def test_audit_the_whole_release_of_six_users():
    """The whole method in the same two worlds, 600 releases each: at least k ties, with and without the pair {0,
    1}."""
    trials, epsilon, refinement = 600, 3.0, PrivGraph(group_size=2)
    hits = np.zeros((2, 36), np.int64)
    for world, ties in enumerate([BASE, TIED]):
        given = evidence_of(ties, TrustedCurator(epsilon=epsilon))
        for trial in range(trials):
            graph = refinement.refine(given, np.ones(6, bool), Streams(2 * trial + world))
            pair = bool(((graph.u == 0) & (graph.v == 1)).any())
            reached = np.arange(12) <= len(graph.u)
            hits[world] += np.concatenate([reached, reached & pair, reached & (not pair)])
    assert contradictions(hits, trials, epsilon) == 0
    assert (hits[0] != hits[1]).any()
