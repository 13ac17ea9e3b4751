"""Feature-prior refinement: what it refuses and publishes, invariances, and edge quality on Cora."""

from dataclasses import replace

import numpy as np
import pytest
from peers import everyone, evidence_of, world
from scipy import sparse

from agents.privacy.features.piecewise import Piecewise
from agents.privacy.ties.pair_bits import PairBits
from server.refinement._public import public_view, second_round
from server.refinement.feature_prior import FeaturePrior, estimate
from sim.kernel.graphs import load
from sim.kernel.graphs.base import Split
from sim.kernel.randomness import Streams


def test_features_that_tell_nobody_apart_are_refused(monkeypatch):
    monkeypatch.setattr("server.refinement._pair_ranking.MOST_CANDIDATES", 5000)
    given, _, _ = world()
    flat = replace(given, features=sparse.csr_array(np.ones((150, 1), np.float32)), train=np.zeros(150, bool))
    with pytest.raises(ValueError, match="tell users apart"):
        FeaturePrior(per_user=5).refine(flat, everyone(given), Streams(0))


def test_private_features_are_refused():
    given, _, _ = world()
    hidden = replace(given, protocol=replace(given.protocol, features=Piecewise(epsilon=1.0)))
    with pytest.raises(ValueError, match=r"needs public features; found .*'piecewise'"):
        FeaturePrior().refine(hidden, everyone(given), Streams(0))


def test_own_label_does_not_speak_about_itself():
    """Changing a training node's label leaves its own class probabilities as they were, and moves others'."""
    given, _, _ = world()
    node = int(np.flatnonzero(given.train)[7])
    other = given.labels.copy()
    other[node] = (other[node] + 1) % 3
    views = [public_view(replace(given, labels=x), everyone(given)) for x in (given.labels, other)]
    place = int(np.flatnonzero(views[0].users == node)[0])
    assert (views[0].users == views[1].users).all()
    first = [view.first_round for view in views]
    assert (first[0][place] == first[1][place]).all() and np.abs(first[0] - first[1]).max() > 1e-3
    fold = views[0].folds[place]
    same_fold = views[0].folds == fold
    assert (first[0][same_fold] == first[1][same_fold]).all()
    # in the structural round a label reaches its neighbours' rows, and with them other rows, but the rows of the design
    # of its own node only through those: with no neighbour at all, nothing of it comes back
    weights = sparse.csr_array((given.n, given.n))
    second = [second_round(view, first[0], weights) for view in views]
    assert (second[0][same_fold] == second[1][same_fold]).all()


@pytest.mark.parametrize("publish", ["soft", "top", "hard"])
@pytest.mark.parametrize("epsilon", [1.0, 2.5])
def test_relabelling_the_users_relabels_the_graph(publish, epsilon):
    given, _, _ = world(epsilon=epsilon)
    order = np.random.default_rng(3).permutation(given.n)
    lists = sparse.csr_array(given.lists[order][:, order])
    lists.sort_indices()
    moved = replace(
        given, lists=lists, features=sparse.csr_array(given.features[order]), labels=given.labels[order],
        train=given.train[order], validation=given.validation[order],
    )  # fmt: skip
    refinement = FeaturePrior(publish=publish, per_user=6)
    graph, twin = (refinement.refine(x, everyone(x), Streams(0)) for x in (given, moved))
    weight = graph.probability if graph.weight is None else graph.weight
    twin_weight = twin.probability if twin.weight is None else twin.weight
    named = {(min(a, b), max(a, b)): w for a, b, w in zip(order[twin.u], order[twin.v], twin_weight)}
    assert named == {(a, b): w for a, b, w in zip(graph.u, graph.v, weight)}
    assert len(named) > 10 or (publish, epsilon) == ("hard", 1.0)  # where no pair is likelier than not


def test_published_forms():
    given, truth, _ = world(epsilon=3.0)
    kept = np.arange(given.n) != 11
    soft, top, hard = (
        FeaturePrior(publish=p, per_user=4).refine(given, kept, Streams(0)) for p in ("soft", "top", "hard")
    )
    assert len(soft.u) == 4 * 149 and (soft.weight > 0).all()
    assert (soft.weight * 0.5 >= soft.probability).all()  # P + pi, relative to a self-loop of weight 1/2
    assert soft.hard.sum() == len(hard.u) and (hard.probability > 0.5).all() and hard.weight is None
    assert len(top.u) == int(top.summary["expected_ties"]) and top.hard is None
    assert set(zip(soft.u[soft.hard], soft.v[soft.hard])) == set(zip(hard.u, hard.v))
    assert truth[hard.u, hard.v].mean() > 0.5 > truth[soft.u, soft.v].mean()
    for graph in (soft, top, hard):
        assert (graph.u < graph.v).all() and not np.isin(11, [graph.u, graph.v])
        assert (np.lexsort((graph.v, graph.u)) == np.arange(len(graph.u))).all()


def test_posterior_is_the_prior_moved_by_the_bit_and_silent_users_have_no_bit():
    given, _, _ = world(epsilon=1.5)
    given = replace(given, reported=np.arange(given.n) != 3)
    found = estimate(public_view(given, everyone(given)), given, FeaturePrior(structural_round=False))
    pairs = found.ranking.all_above(-np.inf)
    a, b = (found.ranking.view.users[side] for side in (pairs.i, pairs.j))
    bit = (given.lists + given.lists.T).toarray()[a, b] > 0
    silent = (a == 3) | (b == 3)
    expected = pairs.prior + np.where(silent, 0.0, np.where(bit, 1.5, -1.5))
    assert silent.sum() == given.n - 1 and pairs.posterior == pytest.approx(expected, abs=1e-9)


def test_prior_mass_is_near_the_debiased_count():
    """Sum of pi within 3 standard deviations of (ones - q M) / (1 - 2q), at epsilon 1 and 3."""
    for epsilon in (1.0, 3.0):
        given, _, _ = world(400, epsilon=epsilon, seed=6)
        graph = FeaturePrior().refine(given, everyone(given), Streams(0))
        flip, total = 1 / (1 + np.exp(epsilon)), 400 * 399 / 2
        mass = (given.lists.nnz - flip * total) / (1 - 2 * flip)
        deviation = np.sqrt(total * flip * (1 - flip)) / (1 - 2 * flip)
        assert abs(graph.summary["prior_mass"] - mass) < 3 * deviation


def test_cora_edge_quality():
    """Average precision over all pairs (pairs that are not published count as missed) near the prototype's .0945 and
    .2192 at epsilon 1 and 2; over seeds it varies by about .005."""
    graph = load("cora")
    streams, kept = Streams(42), np.ones(graph.nodes, bool)
    train, validation, _ = Split(train=0.6, validation=0.2, test=0.2).draw(graph.labels, streams)
    for epsilon, expected in [(1.0, 0.0945), (2.0, 0.2192)]:
        protocol = PairBits(epsilon=epsilon)
        call = type("Call", (), {"epoch": 0, "phase": 0, "memoized": False})
        lists = protocol.encode(graph.ties, np.arange(graph.nodes), streams, call).lists
        given = evidence_of(
            lists, protocol, features=graph.features, labels=graph.labels, train=train, validation=validation
        )
        soft = FeaturePrior().refine(given, kept, streams)
        hit = graph.ties.toarray()[soft.u, soft.v][np.argsort(-soft.probability, kind="stable")] > 0
        precision = np.cumsum(hit) / np.arange(1, len(hit) + 1)
        assert abs(precision[hit].sum() / graph.edges - expected) < 0.02
        assert len(soft.u) == 25 * graph.nodes and soft.hard.sum() < 2000
