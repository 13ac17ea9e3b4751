"""Solitude: slopes by finite differences, the kernel against plain numpy, the estimator at work, and the preset's
no-op."""

import numpy as np
import pytest
from peers import evidence_of
from scipy import sparse

from agents.privacy.ties.binary_list import BinaryList
from server.refinement import _solitude_kernels as kernels
from server.refinement._pairs import named_pairs
from server.refinement.solitude import Solitude, debiased_ties, softmax
from sim.kernel.randomness import Streams


def world(n=120, classes=3, flip=0.1, seed=0):
    """Block model whose lists are flipped at both ends, with features that tell the classes apart."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    truth = np.triu(rng.random((n, n)) < np.where(labels[:, None] == labels, 0.12, 0.002), 1)
    truth = truth | truth.T
    noisy = truth ^ (rng.random((n, n)) < flip)
    np.fill_diagonal(noisy, False)
    features = sparse.csr_array(
        ((rng.random((n, 60)) < 0.05) | (np.arange(60) % classes == labels[:, None])) * np.float32(1)
    )
    train = rng.random(n) < 0.5
    epsilon = float(np.log((1 - flip) / flip))
    given = evidence_of(
        sparse.csr_array(noisy.astype(np.int8)),
        BinaryList(epsilon=epsilon),
        features=features,
        labels=labels,
        train=train,
    )
    return given, truth, labels


def loss(adjacency, logits, labels, labelled):
    mean = (logits + adjacency @ logits) / (1 + adjacency.sum(axis=1, keepdims=True))
    return -np.log(softmax(mean)[labelled, labels[labelled]]).mean()


def test_slopes_equal_finite_differences():
    """The slope that Adam sees, read from its first running mean (0.1 slope), against a dense numerical derivative."""
    rng = np.random.default_rng(1)
    u, v = np.triu_indices(7, 1)
    tie = rng.random(len(u)).astype(np.float32)
    logits, labels, labelled = rng.normal(size=(7, 3)), rng.integers(0, 3, 7), rng.random(7) < 0.6
    degree = kernels.gather(u, v, tie, np.ones((7, 1)))
    mean = kernels.gather(u, v, tie, logits) / degree
    target = np.eye(3)[labels]
    error = (softmax(mean) - target) * labelled[:, None] / labelled.sum() / degree
    first, second = np.zeros_like(tie), np.zeros_like(tie)
    kernels.step(u, v, tie.copy(), tie.copy(), first, second, logits, mean, error, labelled, 0.0, 0.0, 0.0, 0.01, 1)

    def at(values):
        dense = np.zeros((7, 7))
        dense[u, v] = dense[v, u] = values
        return loss(dense, logits, labels, labelled)

    exact = tie.astype(float)
    for k in range(len(u)):
        nudge = np.zeros(len(u))
        nudge[k] = 1e-5
        assert first[k] * 10 == pytest.approx((at(exact + nudge) - at(exact - nudge)) / 2e-5, abs=2e-7, rel=1e-4)
    by_logits = kernels.gather(u, v, tie, error)
    for i, c in [(0, 0), (3, 2), (6, 1)]:
        up, down = logits.copy(), logits.copy()
        up[i, c] += 1e-5
        down[i, c] -= 1e-5
        dense = np.zeros((7, 7))
        dense[u, v] = dense[v, u] = exact
        numeric = (loss(dense, up, labels, labelled) - loss(dense, down, labels, labelled)) / 2e-5
        assert by_logits[i, c] == pytest.approx(numeric, rel=1e-5)


def test_a_step_by_hand():
    """Nobody labelled: slope = fidelity (a - a~) / distance = 0.5 * (0.75 - 0.5) / 2 = 0.0625; Adam's first step is
    the rate, then the proximal 0.05; a tie at its report moves by the proximal step alone."""
    u, v = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    tie, reported = np.array([0.75, 0.5], np.float32), np.array([0.5, 0.5], np.float32)
    first, second, none = np.zeros(2, np.float32), np.zeros(2, np.float32), np.zeros((3, 2))
    left = kernels.step(u, v, reported, tie, first, second, none, none, none, np.zeros(3, bool), 0.5, 2.0, 0.05, 0.1, 1)
    assert first == pytest.approx([0.00625, 0]) and tie == pytest.approx([0.6, 0.45])
    assert left == pytest.approx(0.1**2 + 0.05**2)


def test_kernels_equal_their_plain_versions():
    given, _, _ = world(50)
    u, v, ends = named_pairs(given.lists)
    reported, rng = (ends / 2).astype(np.float32), np.random.default_rng(2)
    logits, error = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    state = []
    for gather, step in [(kernels.gather, kernels.step), (kernels.gather.py_func, kernels.step.py_func)]:
        tie, first, second = reported.copy(), np.zeros_like(reported), np.zeros_like(reported)
        mean = gather(u, v, tie, logits)
        for turn in (1, 2):
            step(u, v, reported, tie, first, second, logits, mean, error, given.train, 0.1, 1.0, 1e-3, 0.05, turn)
        state.append((mean, tie, first))
    for fast, plain in zip(*state):
        assert fast == pytest.approx(plain, rel=1e-5, abs=1e-6)


def test_debiased_count_by_hand():
    lists = np.zeros((4, 4), np.int8)
    lists[0, 1:] = lists[1, 0] = lists[2, 3] = 1  # 5 ones of 12 cells at q = 1/4: (5/12 - 1/4) / (1/2) * 6 = 2
    given = evidence_of(sparse.csr_array(lists), BinaryList(epsilon=float(np.log(3))))
    assert debiased_ties(given, np.ones(4, bool)) == 2
    # without user 3: 3 ones of 6 cells: (1/2 - 1/4) / (1/2) * 3 = 1.5 -> 2; without user 0: 1 of 6 cells, below q -> 0
    assert debiased_ties(given, np.array([1, 1, 1, 0], bool)) == 2
    assert debiased_ties(given, np.array([0, 1, 1, 1], bool)) == 0


def test_the_estimator_changes_ties_and_prefers_like_nodes():
    """Among pairs that both ends report, the published ones join equal labels more often than the reported ones do."""
    given, _, labels = world()
    graph = Solitude().refine(given, np.ones(120, bool), Streams(0))
    u, v, ends = named_pairs(given.lists)
    assert graph.summary["ties_changed"] == len(u) - len(graph.u) > 0 and not graph.notes
    assert len(graph.u) == debiased_ties(given, np.ones(120, bool))
    both = ends == 2
    before = (labels[u[both]] == labels[v[both]]).mean()
    assert (labels[graph.u] == labels[graph.v]).mean() > before
    sharp = Solitude(publish="threshold").refine(given, np.ones(120, bool), Streams(0))
    assert 0 < len(sharp.u) < len(u)


def test_pruned_users_have_no_tie():
    given, _, _ = world()
    kept = np.arange(120) % 5 != 0
    graph = Solitude(epochs=5).refine(given, kept, Streams(0))
    assert kept[graph.u].all() and kept[graph.v].all()


def test_the_released_denoiser_is_reported_as_one_that_does_nothing():
    given, _, _ = world()
    graph = Solitude(preset="released-code").refine(given, np.ones(120, bool), Streams(0))
    u, v, _ = named_pairs(given.lists)
    assert (graph.u == u).all() and (graph.v == v).all()
    assert graph.summary["ties_changed"] == 0 and "changes no tie" in graph.notes[0]
    # the paper's method says so too, should it ever leave everything as it was
    still = Solitude(publish="threshold", sparsity=0.0, adjacency_rate=1e-9, epochs=1)
    tied = evidence_of(sparse.csr_array(1 - np.eye(6, dtype=np.int8)), BinaryList(epsilon=1.0))
    assert "changed no tie" in still.refine(tied, np.ones(6, bool), Streams(0)).notes[0]
