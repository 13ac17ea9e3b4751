"""The edge posterior: every kernel against a plain reference, what may become a tie, and what it says of itself."""

import math

import numpy as np
import pytest
from worlds import FOUR, as_lists, block_graph, evidence, f1, make_world, noisy_lists, published

from server.attestation import mutual_pairs
from server.refinement import _posterior as kernels
from server.refinement._edge_posterior import best_expected_f1, class_prior, draw_contrast, logistic_steps
from server.refinement.attested import Attested
from server.refinement.posterior import Posterior
from sim.kernel.randomness import Streams


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@pytest.fixture
def weighted():
    """A random graph of 30 users as (pairs, weights, dense weights, kernel adjacency)."""
    rng = np.random.default_rng(0)
    dense = np.triu(rng.random((30, 30)) < 0.3, 1)
    u, v = np.nonzero(dense)
    u, v, weight = u.astype(np.int32), v.astype(np.int32), rng.random(len(u))
    matrix = np.zeros((30, 30))
    matrix[u, v] = matrix[v, u] = weight
    return u, v, weight, matrix, kernels.adjacency(30, u, v)


def test_adjacency_lists_both_directions(weighted):
    _, _, weight, matrix, (indptr, neighbours, pair) = weighted
    for w in range(30):
        span = slice(indptr[w], indptr[w + 1])
        assert neighbours[span].tolist() == np.flatnonzero(matrix[w]).tolist()
        assert weight[pair[span]].tolist() == matrix[w][neighbours[span]].tolist()


def test_shared_neighbours_equal_the_dense_product(weighted):
    *_, weight, matrix, graph = weighted
    first, second = np.triu_indices(30, 1)
    found = kernels.shared_neighbours(*graph, weight, 0.4, first.astype(np.int32), second.astype(np.int32))
    held = np.where(matrix >= 0.4, matrix, 0)
    assert found == pytest.approx((held @ held)[first, second], abs=1e-12)


def test_beliefs_equal_dense_averaging(weighted):
    *_, weight, matrix, graph = weighted
    labels, prior = np.r_[np.arange(3), np.full(27, -1)], np.array([0.5, 0.3, 0.2])
    now, before = kernels.beliefs(*graph, weight, labels, prior, 4)
    plain = np.vstack([np.eye(3), np.tile(prior, (27, 1))])
    for _ in range(4):
        earlier = plain
        plain = (matrix @ plain + prior) / (matrix.sum(1) + 1)[:, None]
        plain[:3] = np.eye(3)
    assert now == pytest.approx(plain) and before == pytest.approx(earlier)


def test_agreement_leaves_the_pair_itself_out(weighted):
    """As if the last sweep had been made without the pair's own weight, at each end that has no known label."""
    u, v, weight, matrix, graph = weighted
    labels, prior = np.r_[np.arange(3), np.full(27, -1)], np.array([0.5, 0.3, 0.2])
    now, before = kernels.beliefs(*graph, weight, labels, prior, 4)
    found = kernels.agreement(now, before, matrix.sum(1), labels, prior, u, v, weight)
    for i in range(len(u)):
        beliefs = []
        for mine, other in ((u[i], v[i]), (v[i], u[i])):
            row = matrix[mine].copy()
            row[other] = 0
            fresh = (row @ before + prior) / (row.sum() + 1)
            beliefs.append(now[mine] if labels[mine] >= 0 else fresh)
        assert found[i] == pytest.approx((beliefs[0] * beliefs[1] / prior).sum())


def test_posterior_and_mass(weighted):
    rng = np.random.default_rng(1)
    columns, seen, slopes = rng.normal(size=(400, 3)), rng.normal(size=400), np.array([-1.0, 0.5, 0.2, 0.0])
    assert kernels.posterior(columns, seen, slopes) == pytest.approx(sigmoid(slopes[0] + columns @ slopes[1:] + seen))
    for mass in (0.5, 100.0, 399.0):
        shift = kernels.shift_to_mass(columns, seen, slopes, mass)
        moved = slopes + np.array([shift, 0, 0, 0])
        assert kernels.posterior(columns, seen, moved).sum() == pytest.approx(mass, rel=1e-7)


def test_logistic_steps_reach_the_weighted_optimum():
    """Enough steps end where the gradient of the penalised likelihood is zero."""
    rng = np.random.default_rng(2)
    inside, outside = rng.normal(size=(300, 2)), rng.normal(size=(500, 2))
    truth = np.array([-0.5, 0.6, 0.3])
    chance, target = sigmoid(truth[0] + inside @ truth[1:]), sigmoid(truth[0] + outside @ truth[1:])
    slopes = logistic_steps(inside, chance, outside, target, 3.0, np.zeros(3), steps=40)

    def pull(rows, soft):
        design = np.column_stack([np.ones(len(rows)), rows])
        return design.T @ (soft - sigmoid(design @ slopes))

    gradient = pull(inside, chance) + 3 * pull(outside, target) - np.r_[0, slopes[1:]]
    assert np.abs(gradient).max() < 1e-6
    assert slopes == pytest.approx(truth, abs=0.01)


def test_slopes_never_turn_negative():
    rng = np.random.default_rng(3)
    inside = rng.normal(size=(300, 1))
    slopes = logistic_steps(inside, sigmoid(-2 * inside[:, 0]), inside[:0], np.zeros(0), 1.0, np.zeros(2), steps=20)
    assert slopes[1] == 0.0


def test_contrast_is_complete_on_small_graphs_and_a_sample_on_large_ones():
    pairs = mutual_pairs(FOUR)
    found = draw_contrast(pairs, np.arange(4), np.random.default_rng(0))
    assert sorted(zip(found.u.tolist(), found.v.tolist())) == [(0, 3), (1, 2), (2, 3)] and found.weight == 1.0
    users = np.random.default_rng(1).permutation(2000)
    found = draw_contrast(pairs, users, np.random.default_rng(0))
    drawn = set(zip(found.u.tolist(), found.v.tolist()))
    assert len(found.u) == 40_000 and (found.u < found.v).all()
    assert not drawn & {(0, 1), (0, 2), (1, 3)}
    assert found.weight == pytest.approx((2000 * 1999 / 2 - 3) / 40_000)
    assert np.bincount(np.r_[found.u, found.v], minlength=2000).std() < 1.1 * math.sqrt(40)


def test_class_prior_renumbers_present_classes():
    labels, prior = class_prior(np.array([5, -1, 2, 5]), 4)
    assert labels.tolist() == [1, -1, 0, 1] and prior.tolist() == [1 / 3, 2 / 3]
    assert class_prior(None, 3)[1].tolist() == class_prior(np.full(3, -1), 3)[1].tolist() == [1.0]


def test_expected_f1_by_hand():
    # Ties 2: keeping .9 gives 1.8/3, .9 .8 gives 3.4/4, all gives 3.8/5. Equal posteriors stand together.
    assert best_expected_f1(np.array([0.2, 0.9, 0.8]), 2.0) == (0.8, pytest.approx(3.4 / 4))
    assert best_expected_f1(np.array([0.5, 0.5, 0.5]), 1.0) == (0.5, pytest.approx(3.0 / 4))


def world_of(seed=4, n=700, epsilon=4.0, levels=3, trust="correlated"):
    rng = np.random.default_rng(seed)
    ties, labels = block_graph(n, 6.0, rng)
    lists = noisy_lists(make_world(ties, labels, levels, trust, rng), epsilon, rng)
    return ties, evidence(lists, epsilon, levels, labels, rng.random(n) < 0.5)


def test_beats_the_printed_gate_and_knows_itself():
    ties, held = world_of(epsilon=3.0)
    everybody = np.ones(held.n, bool)
    ours, printed = Posterior().refine(held, everybody, Streams(0)), Attested().refine(held, everybody, Streams(0))
    assert f1(ours, ties) > f1(printed, ties) + 0.04
    assert ours.summary["expected_f1"] == pytest.approx(f1(ours, ties), abs=0.1)
    assert ours.summary["expected_edges"] == pytest.approx(len(ties), rel=0.1)
    assert ours.weight.sum() <= ours.summary["expected_edges"]


def test_probabilities_are_calibrated():
    """In five bins of posterior, the share of true ties is within 0.1 of the mean posterior."""
    ties, held = world_of(seed=5, n=1500)
    found = Posterior().refine(held, np.ones(held.n, bool), Streams(0))
    true = set(map(tuple, ties.tolist()))
    hit = np.array([pair in true for pair in zip(found.u.tolist(), found.v.tolist())])
    for low in (0.02, 0.2, 0.4, 0.6, 0.8):
        mine = (found.probability > low) & (found.probability <= low + 0.2)
        assert abs(hit[mine].mean() - found.probability[mine].mean()) < 0.1


def test_no_one_sided_claim_becomes_a_tie():
    _, held = world_of(n=300, epsilon=2.0, levels=1, trust="maximal")
    mutual = set(zip(held.pairs.u.tolist(), held.pairs.v.tolist()))
    found = Posterior().refine(held, np.ones(held.n, bool), Streams(0))
    assert set(zip(found.u.tolist(), found.v.tolist())) <= mutual


def test_pruned_and_silent_users_have_no_tie():
    _, held = world_of(n=300)
    kept = np.arange(300) >= 50
    found = Posterior().refine(held, kept, Streams(0))
    assert min(found.u.min(), found.v.min()) >= 50


def test_soft_and_hard_agree_on_the_hard_set():
    _, held = world_of(n=400)
    everybody = np.ones(held.n, bool)
    soft, hard = (Posterior(output=kind).refine(held, everybody, Streams(0)) for kind in ("soft", "hard"))
    assert published(soft) == published(hard) and hard.weight is None and hard.hard.all()
    assert soft.weight.tolist() == soft.probability.tolist()
    assert ((soft.probability > 0.02) | soft.hard).all() and len(soft.u) > len(hard.u)


def test_validation_labels_are_not_read():
    _, held = world_of(n=300)
    everybody = np.ones(held.n, bool)
    before = Posterior().refine(held, everybody, Streams(0))
    held.labels[~held.train] = 1
    after = Posterior().refine(held, everybody, Streams(0))
    assert after.probability.tolist() == before.probability.tolist()
    without = Posterior(labels=False).refine(held, everybody, Streams(0))
    assert without.probability.tolist() != before.probability.tolist()


def test_one_level_is_fitted_by_contrast():
    """With one level all mutual pairs look alike; only the covariates can order them, and nothing is lost by that."""
    ties, held = world_of(seed=6, n=900, epsilon=1.8, levels=1, trust="maximal")
    everybody = np.ones(held.n, bool)
    found = Posterior().refine(held, everybody, Streams(0))
    assert np.unique(found.probability).size > 100
    assert f1(found, ties) > f1(Attested().refine(held, everybody, Streams(0)), ties) - 0.01


@pytest.mark.parametrize("lists", [as_lists([[0, 0], [0, 0]]), as_lists([[0, 2], [3, 0]]), FOUR])
def test_tiny_inputs(lists):
    held = evidence(lists, 5.0, 3)
    found = Posterior().refine(held, np.ones(held.n, bool), Streams(0))
    assert len(found.u) <= len(held.pairs.u)
    assert np.isfinite(list(found.summary.values())).all()
    nobody = Posterior().refine(held, np.zeros(held.n, bool), Streams(0))
    assert len(nobody.u) == 0
