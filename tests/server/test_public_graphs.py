"""Graphs of public information: neighbours by brute force, public weights by hand, tuning, and the controls as
controls."""

from dataclasses import replace

import numpy as np
import pytest
from peers import everyone, world
from scipy import sparse

from server.evidence import Structure
from server.refinement._public import knn_graph, public_view
from server.refinement._public_weights import public_graph, scaled, tuned_public_graph, vote_accuracy
from server.refinement.feature_prior import FeaturePrior
from sim.kernel.randomness import Streams


def test_knn_by_brute_force(monkeypatch):
    monkeypatch.setattr("server.refinement._public.TILE", 64)
    given, _, _ = world()
    kept = np.arange(given.n) % 10 != 0
    view = public_view(given, kept)
    graph = knn_graph(view, 4)
    cosine = view.rows.toarray() @ view.rows.toarray().T
    np.fill_diagonal(cosine, -1)
    allowed, needed = set(), set()
    for row in range(view.size):
        fourth = np.sort(cosine[row])[-4]
        for other in np.flatnonzero(cosine[row] >= fourth - 1e-6):
            pair = tuple(sorted((view.users[row], view.users[other])))
            allowed.add(pair)  # equal cosines may go either way
            if cosine[row, other] > fourth + 1e-6:
                needed.add(pair)
    found = set(zip(graph.u, graph.v))
    assert needed <= found <= allowed and len(found) == len(graph.u)
    degrees = np.bincount(np.r_[graph.u, graph.v], minlength=given.n)
    assert (degrees[kept] >= 4).all() and not degrees[~kept].any()


def test_public_weights_by_hand():
    given, _, _ = world()
    view = public_view(given, everyone(given))
    graph = public_graph(view, 10.0, per_user=5, self_loop=0.5)
    assert len(graph.u) == 5 * given.n and graph.weight.sum() == pytest.approx(4 * given.n)  # 2 n at a self-loop of 1/2
    assert scaled(np.log([1.0, 3.0]), 4) == pytest.approx([2, 6])


def test_tuning_takes_the_best_on_validation():
    view = public_view(world()[0], np.ones(150, bool))
    seen = []

    def validate(structure):
        seen.append(structure.summary["kappa"])
        return -abs(structure.summary["kappa"] - 15)

    assert tuned_public_graph(view, 5, validate=validate).summary["kappa"] == 15 and seen == [5, 10, 15, 20]
    graphs = [public_graph(view, kappa, 5) for kappa in seen]
    best = int(np.argmax([vote_accuracy(view, graph) for graph in graphs]))
    assert tuned_public_graph(view, 5).summary["kappa"] == seen[best]
    assert vote_accuracy(replace(view, validation=np.zeros(150, bool)), graphs[0]) == 0.0


def test_votes_by_hand():
    given, _, labels = world()
    view = public_view(given, everyone(given))
    asked = view.users[view.validation]
    friends = [int(np.flatnonzero((labels == labels[a]) & given.train)[0]) for a in asked]
    pairs = np.sort(np.stack([asked, friends]), axis=0)
    right = Structure(pairs[0], pairs[1], np.full(len(asked), 100.0))
    assert vote_accuracy(view, right) == 1.0
    foes = [int(np.flatnonzero((labels != labels[a]) & given.train)[0]) for a in asked]
    pairs = np.sort(np.stack([asked, foes]), axis=0)
    assert vote_accuracy(view, Structure(pairs[0], pairs[1], np.full(len(asked), 100.0))) == 0.0


def test_controls_use_what_they_say():
    """Other bits leave `public_only` and `knn` as they are; `fit_only` sees them through its coefficients
    alone, so two pairs of equal scores rank equal whatever their bits."""
    given, _, _ = world(epsilon=3.0)
    other = replace(given, lists=world(epsilon=3.0, seed=9)[0].lists)
    refinement = FeaturePrior(per_user=5)
    first, second = (refinement.controls(x, everyone(x)) for x in (given, other))
    assert set(first) == {"public_only", "fit_only", "knn"}
    for name in ("public_only", "knn"):
        assert (first[name].u == second[name].u).all() and (first[name].v == second[name].v).all()
    assert first["public_only"].weight == pytest.approx(second["public_only"].weight, rel=0)
    assert not np.array_equal(first["fit_only"].weight, second["fit_only"].weight)
    assert first["fit_only"].weight == pytest.approx(first["fit_only"].probability / 0.5)


def test_views_without_training_labels_work():
    given, _, _ = world()
    blind = replace(given, train=np.zeros(given.n, bool), labels=np.full(given.n, -1))
    view = public_view(blind, everyone(given))
    assert view.first_round == pytest.approx(np.full((given.n, 3), 1 / 3))
    graph = FeaturePrior(per_user=3).refine(blind, everyone(given), Streams(0))
    assert len(graph.u) == 3 * given.n
    one = replace(given, train=np.arange(given.n) == int(np.flatnonzero(given.train)[0]))
    assert public_view(one, everyone(given)).first_round.sum(axis=1) == pytest.approx(1.0)
    nobody = FeaturePrior().refine(given, np.arange(given.n) < 2, Streams(0))
    assert len(nobody.u) == 0 and "too few users" in nobody.notes[0]
    empty = replace(given, features=sparse.csr_array((given.n, 40), dtype=np.float32))
    assert len(knn_graph(public_view(empty, everyone(given))).u) == 0
