"""Columns worked by hand on small cases."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from server.evidence import Structure
from sim.anchors import random_structure
from sim.columns import GROUP, ROUND
from sim.directory import Directory
from sim.kernel.graphs import Graph
from sim.measures import degree_distance, ranking, root_mean_square
from sim.observer import Observer


def observer(permutation=(2, 0, 4, 1, 3)):
    """Four honest users in a path 0-1-2-3 and one attacker, 4; server ids are a given permutation."""
    ties = np.zeros((4, 4), dtype=np.int8)
    for a, b in ((0, 1), (1, 2), (2, 3)):
        ties[a, b] = ties[b, a] = 1
    graph = Graph("path", sparse.csr_array(np.eye(4, dtype=np.float32)), sparse.csr_array(ties), np.array([0, 0, 1, 1]))
    public = np.array(permutation)
    scenario = SimpleNamespace(seed=0, rounds=1, population=SimpleNamespace(attackers=[SimpleNamespace(name="fakes")]))
    masks = tuple(np.array(m, dtype=bool) for m in ([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]))
    return Observer(scenario, graph, Directory(public, np.argsort(public)), np.array([-1, -1, -1, -1, 0]), masks)


def structure(watcher, pairs, **more):
    ends = np.array([[watcher.directory.public[a], watcher.directory.public[b]] for a, b in pairs])
    return Structure(ends.min(axis=1), ends.max(axis=1), **more)


def test_published_ties_are_three_disjoint_counts():
    """Published: two true ties, one false, one with the attacker. Precision 2/4, recall 2/3, F1 = 4/7, density 4/10."""
    watcher = observer()
    row = watcher._structure(structure(watcher, [(0, 1), (2, 1), (0, 3), (2, 4)]))
    assert (row["edges"], row["edges_true"], row["edges_false"], row["edges_attack"]) == (4, 2, 1, 1)
    assert (row["edge_precision"], row["density"]) == (0.5, 0.4)
    assert row["edge_recall"] == pytest.approx(2 / 3) and row["edge_f1"] == pytest.approx(4 / 7)
    assert row["largest_degree"] == 2 and "edge_weight_true" not in row


def test_weights_count_all_published_pairs_and_counts_only_the_hard_set():
    watcher = observer()
    weight, hard = np.array([0.9, 0.2, 0.5]), np.array([True, False, True])
    row = watcher._structure(structure(watcher, [(0, 1), (0, 3), (3, 4)], weight=weight, hard=hard))
    assert (row["edges_true"], row["edges_false"], row["edges_attack"]) == (1, 0, 1)
    assert (row["edge_weight_true"], row["edge_weight_false"], row["edge_weight_attack"]) == (0.9, 0.2, 0.5)


def test_an_empty_structure_has_no_precision():
    row = observer()._structure(Structure(np.zeros(0, int), np.zeros(0, int)))
    assert row["edges"] == 0 and row["edge_precision"] is None and row["edge_recall"] == 0.0 and row["edge_f1"] == 0.0


def test_detection_by_hand():
    """Scores 1, 2, 3, 4 of the honest, 3.5 of the attacker: AUC 3/4; flagged: user 3 and the attacker."""
    watcher = observer()
    score = np.array([1.0, 2.0, 3.0, 4.0, 3.5])
    flagged = np.array([False, False, False, True, True])
    row = watcher._detection(score, flagged, np.array([False, False, True, True]), 3.2)
    assert row["detection_auc"] == 0.75 and row["detection_ap"] == 0.5
    assert (row["detection_precision"], row["detection_recall"], row["detection_fpr"]) == (0.5, 1.0, 0.25)
    assert row["detection_fpr_victims"] == 0.5 and row["gamma"] == 3.2
    assert (row["suspicion_honest_mean"], row["suspicion_attacker_mean"]) == (2.5, 3.5)


def test_what_does_not_exist_is_none():
    watcher = observer()
    row = watcher._detection(np.full(5, np.nan), np.zeros(5, dtype=bool), np.zeros(4, dtype=bool), float("nan"))
    assert row["gamma"] is None and row["detection_fpr_victims"] is None and "suspicion_honest_mean" not in row
    assert ranking(np.zeros(3, dtype=bool), np.arange(3.0)) == (None, None)


def test_accuracy_counts_every_honest_user_of_the_split():
    watcher = observer()
    predictions = np.full(5, -1)
    predictions[watcher.directory.public[[0, 2, 3]]] = [0, 1, 0]
    assert watcher.accuracy(predictions, watcher.test) == 0.5
    assert watcher.accuracy(predictions, watcher.validation) == 0.0


def test_errors_and_distances_by_hand():
    truth = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32))
    estimate = np.array([[0.5, -0.5], [0.5, 0.5]], dtype=np.float32)  # with neutral 0.5: [[1, 0], [1, 1]]
    assert root_mean_square(estimate, truth, 0.5) == pytest.approx(0.5)
    assert root_mean_square(sparse.csr_array(estimate), truth, 0.5) == pytest.approx(0.5)
    assert degree_distance(np.array([0, 0, 1, 3]), np.array([0, 1, 1, 2])) == pytest.approx(0.5)


def test_random_structures_are_distinct_pairs_of_members():
    members = np.array([1, 4, 5, 8, 9, 11])
    for size in (0, 4, 15, 99):
        made = random_structure(members, size, np.random.default_rng(0))
        assert len(made.u) == min(size, 15) == len({*zip(made.u.tolist(), made.v.tolist())})
        assert (made.u < made.v).all() and np.isin(made.u, members).all() and np.isin(made.v, members).all()
    counts = np.zeros((12, 12))
    for seed in range(3000):
        made = random_structure(members, 3, np.random.default_rng(seed))
        counts[made.u, made.v] += 1
    used = counts[counts > 0]
    assert len(used) == 15 and abs(used - 600).max() < 120


def test_column_names_are_unique_and_explained():
    for columns in (ROUND, GROUP):
        assert len({c.name for c in columns}) == len(columns) and all(c.unit and c.meaning for c in columns)
