"""Feature prior: pair scores, the fit and the ranking against plain references, invariances, and edge quality on
Cora."""

from dataclasses import replace

import numpy as np
import pytest
from peers import everyone, evidence_of, world
from scipy import sparse

from agents.privacy.features.piecewise import Piecewise
from agents.privacy.ties.pair_bits import PairBits
from server.refinement import _feature_kernels as kernels
from server.refinement._bit_rows import pack_either, words_of
from server.refinement._pair_ranking import Ranking, Score, bound_of, rank_value, value_exceeded
from server.refinement._prior_fit import (
    Bits,
    Cells,
    Commons,
    common_bins,
    cosine_bins,
    count_pairs,
    expected_ties,
    fit_prior,
    log_likelihood,
    sigmoid,
)
from server.refinement._public import public_view, second_round, tf_idf
from server.refinement.feature_prior import FeaturePrior, estimate
from sim.kernel.graphs import load
from sim.kernel.graphs.base import Split
from sim.kernel.randomness import Streams


def parts(given):
    """View, packed bits and posterior graph of a world, for tests of single steps."""
    view = public_view(given, everyone(given))
    place = np.empty(given.n, np.int64)
    place[view.users] = np.arange(given.n)
    rows = np.zeros((given.n, words_of(given.n)), np.uint64)
    pack_either(given.lists.indptr, given.lists.indices, place, rows)
    rng = np.random.default_rng(5)
    dense = np.triu(np.where(rng.random((given.n, given.n)) < 0.1, rng.random((given.n, given.n)), 0), 1)
    graph = sparse.csr_array((dense + dense.T).astype(np.float32))
    silent = np.zeros(given.n, bool)
    silent[[4, 9]] = True
    return view, Bits(rows, silent, 2.0), Commons(graph.indptr, graph.indices, graph.data)


def dense_codes(view, classes, commons):
    """Codes of all pairs from dense matrices: cosine, agreement, common neighbours."""
    rows, z = view.rows.toarray(), classes.astype(np.float32)
    cosine = np.rint(np.clip(rows @ rows.T, 0, 1) * 65535)
    agreement = np.floor(np.clip(z @ z.T, 0, 1) * np.float32(4095) + np.float32(0.5))
    graph = sparse.csr_array((commons.data, commons.indices, commons.indptr), shape=(view.size, view.size)).toarray()
    common = np.rint(np.minimum(np.log1p(graph @ graph / 0.01) / np.log1p(200), 1) * 255)
    return cosine.astype(int), agreement.astype(int), common.astype(int)


def dense_bits(bits, size):
    return ((bits.rows[:, np.arange(size) >> 6] >> (np.arange(size) & 63).astype(np.uint64)) & np.uint64(1)).astype(int)


def test_tf_idf_by_hand():
    # df = 2, 1, 0 of 2 rows: idf 1, 1 + log(3/2), 1 + log 3; row 0 = (1, 1.405) / 1.725, row 1 = (1, 0)
    rows = tf_idf(sparse.csr_array(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], np.float32)[:2])).toarray()
    second = 1 + np.log(3 / 2)
    assert rows == pytest.approx(np.array([[1, second, 0], [np.hypot(1, second), 0, 0]]) / np.hypot(1, second))
    assert not tf_idf(sparse.csr_array((3, 2), dtype=np.float32)).toarray().any()


def test_tiles_hold_the_cosines_and_can_be_recomputed(monkeypatch):
    monkeypatch.setattr("server.refinement._public.TILE", 64)
    view = public_view(world()[0], np.ones(150, bool))
    exact = view.rows.toarray() @ view.rows.toarray().T
    again = replace(view, held_bytes=0, _held=[])
    for _ in range(2):  # the second time from memory
        for (first, tile), (same, twin) in zip(view.tiles(), again.tiles()):
            assert first == same and (tile == twin).all()
            assert tile / 65535 == pytest.approx(exact[first:, first : first + tile.shape[1]], abs=1e-5)
    assert len(view._held) == 3 and not again._held


def test_cells_equal_a_dense_count(monkeypatch):
    monkeypatch.setattr("server.refinement._public.TILE", 64)
    given, _, _ = world()
    view, bits, commons = parts(given)
    classes = view.first_round
    cosine, agreement, common = dense_codes(view, classes, commons)
    bins, heard = cosine_bins(view), ~(bits.silent[:, None] | bits.silent)
    upper = np.triu(heard, 1)
    cell = (bins[cosine].astype(int) * 20 + agreement * 20 // 4096) * 16 + common_bins()[common]
    cells = count_pairs(view, classes, bins, commons, bits)
    order = np.unique(cell[upper], return_inverse=True)[1]
    tied = dense_bits(bits, given.n)[upper]
    pairs = np.bincount(order)
    # a code may sit on the other side of a rounding in the dense product, so single pairs may be in the next cell
    assert cells.pairs.sum() == upper.sum() and cells.ones.sum() == tied.sum()
    assert abs(len(cells.pairs) - len(pairs)) <= 3
    assert (cells.pairs @ cells.cosine) * 65535 == pytest.approx(cosine[upper].sum(), rel=1e-6)
    assert (cells.pairs @ cells.agreement) * 4095 == pytest.approx(agreement[upper].sum(), rel=1e-5)
    assert (cells.pairs @ cells.common) * 255 / np.log1p(200) == pytest.approx(common[upper].sum(), rel=1e-4)
    plain = count_pairs(view, classes, bins, None, bits)
    assert plain.pairs.sum() == upper.sum() and not plain.common.any()


def test_kernels_equal_their_plain_versions_to_the_last_bit():
    given, _, _ = world(40)
    view, bits, commons = parts(given)
    (first, tile), z = next(iter(view.tiles())), np.ascontiguousarray(view.first_round, dtype=np.float32)
    wide, dense = np.ascontiguousarray(z.T), next(iter(view.columns()))[1]
    out, bins = np.zeros_like(tile), cosine_bins(view)
    kernels.cosine_tile.py_func(view.rows.indptr, view.rows.indices, view.rows.data, dense, first, out)
    assert (np.tril(out, -1) == np.tril(tile, -1)).all()
    agreement_bin = (np.arange(4096) * 20 // 4096).astype(np.uint8)
    score, held = Score.of_prior(np.array([-3.0, 0.5, 0.2, 0.4, 0.3, 0.1, 0.2, 0.1, -0.1, 0.05])), []
    for count, collect, nearest in [
        (kernels.count_cells, kernels.collect, kernels.nearest),
        (kernels.count_cells.py_func, kernels.collect.py_func, kernels.nearest.py_func),
    ]:
        cells = np.zeros((40 * 20 * 16, 5), np.int64)
        count(
            tile, first, z, wide, bins, agreement_bin, common_bins(), np.array([40, 20, 16]),
            commons.indptr, commons.indices, commons.data, bits.rows, bits.silent, cells,
        )  # fmt: skip
        pairs = collect(
            tile, first, z, wide, score.by_cosine, score.by_agreement, score.products, np.array(score.extra),
            score.by_cosine, score.by_agreement, score.products, np.log(np.arange(4096) / 4095 + 0.05),
            commons.indptr, commons.indices, commons.data, bits.rows, bits.silent, 2.0, -2.0, 800,
        )  # fmt: skip
        best, who = np.zeros((40, 4), np.float32), np.full((40, 4), -1, np.int32)
        nearest(view.rows.indptr, view.rows.indices, view.rows.data, dense, 0, best, who)
        held.append((cells, *pairs[:4], best, who))
    for fast, plain in zip(*held):
        assert (fast == plain).all()
    assert 10 < len(held[0][1]) < 780


def test_bins_follow_the_quantiles():
    view = public_view(world(300)[0], np.ones(300, bool))
    bins = cosine_bins(view)
    codes = np.concatenate([tile[np.tril_indices(300, -1)] for _, tile in view.tiles()])
    assert (np.diff(bins.astype(int)) >= 0).all() and bins.max() <= 39
    for edge, quantile in enumerate(1 - np.geomspace(0.9, 2e-6, 39)):
        assert (bins[codes] > edge).mean() <= 1 - quantile + 1e-12
    assert common_bins()[0] == 0 and common_bins()[-1] == 15


def simulated_cells(theta, epsilon, seed, scale=1.0):
    """Cells on a grid of scores whose noisy ones come from the prior `theta`."""
    rng = np.random.default_rng(seed)
    cosine, agreement = (x.ravel() for x in np.meshgrid(np.linspace(0, 0.6, 20), np.linspace(0.05, 0.9, 15)))
    pairs = np.rint(scale * 2e5 * np.exp(-8 * cosine)).astype(float)
    blank = Cells(pairs, pairs, cosine, agreement, np.zeros_like(cosine))
    pi, flip = sigmoid(blank.design(False) @ theta), 1 / (1 + np.exp(epsilon))
    ones = rng.binomial(pairs.astype(int), flip + (1 - 2 * flip) * pi).astype(float)
    return replace(blank, ones=ones), pi, flip


THETA = np.array([-8.0, 0.6, 0.5, 0.4, 0.8, 0.3])


def test_fit_recovers_the_prior_from_noisy_bits():
    """Fitted probabilities within 5 % of the true ones, weighted by where the ties are, and the coefficients within 4.5
    standard errors (from the information matrix) of the truth; 30 fits' worth of error rate under 1e-3."""
    for epsilon, seed in [(1.0, 1), (3.0, 2)]:
        cells, pi, flip = simulated_cells(THETA, epsilon, seed, scale=20)
        design = cells.design(False)
        theta = fit_prior(design, cells, flip)
        fitted = sigmoid(design @ theta)
        assert (cells.pairs * np.abs(fitted - pi)).sum() / (cells.pairs * pi).sum() < 0.05
        rate, slope = flip + (1 - 2 * flip) * pi, (1 - 2 * flip) * pi * (1 - pi)
        information = (design.T * (cells.pairs * slope**2 / (rate * (1 - rate)))) @ design
        gap = theta - THETA
        information[1:, 1:] += np.eye(5)
        bias = np.linalg.solve(information, np.r_[0, -THETA[1:]])
        assert np.abs((gap - bias) / np.sqrt(np.diag(np.linalg.inv(information)))).max() < 4.5


def test_fit_is_a_maximum():
    cells, _, flip = simulated_cells(THETA, 1.0, 3)
    design = cells.design(False)
    theta = fit_prior(design, cells, flip)
    best = log_likelihood(theta, design, cells, flip)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.3):
        for _ in range(20):
            assert log_likelihood(theta + size * rng.normal(size=6), design, cells, flip) <= best + 1e-6


def test_fit_starts_from_a_positive_mass_even_when_the_bits_say_less():
    cells, _, flip = simulated_cells(np.array([-30.0, 0, 0, 0, 0, 0]), 1.0, 4)
    low = replace(cells, ones=np.floor(cells.pairs * flip * 0.99))
    theta = fit_prior(low.design(False), low, flip)
    assert np.isfinite(theta).all() and (low.pairs * sigmoid(low.design(False) @ theta)).sum() < 1000


def test_expected_ties_by_hand():
    # prior 0.2 (odds 1/4), epsilon = log 2: P(1) = (1/2)/(3/2) = 1/3, P(0) = (1/8)/(9/8) = 1/9; 3 ones, 6 zeros: 1 +
    # 2/3
    cells = Cells(np.array([9.0]), np.array([3.0]), np.zeros(1), np.zeros(1), np.zeros(1))
    assert expected_ties(np.array([0.2]), cells, np.log(2)) == pytest.approx(5 / 3)


def test_design_by_hand():
    cells = Cells(*(np.array([x]) for x in (1.0, 0.0, 0.25, 0.45, 2.0)))
    half = np.log(0.5)
    assert cells.design(True)[0] == pytest.approx([1, 1.25, 2, 0.9, half, 0.5625, 2, 1, 2.5, 2 * half])
    assert cells.design(False).shape == (1, 6)
    theta = np.arange(1.0, 11.0)
    score = Score.of_prior(theta)
    code, agree = 16384, 1843  # c = 0.250004, g = 0.450061
    total = score.by_cosine[code] + score.by_agreement[agree] + score.products * code / 65535 * agree / 4095
    assert total == pytest.approx(cells.design(False)[0] @ theta[:6], abs=1e-2)
    assert score.extra == pytest.approx((7, 2, 45, 10))


def test_ranking_equals_a_full_sort(monkeypatch):
    monkeypatch.setattr("server.refinement._public.TILE", 64)
    given, _, _ = world()
    view, bits, commons = parts(given)
    classes, theta = view.first_round, np.array([-4.0, 0.5, 0.2, 0.4, 0.3, 0.1, 0.2, 0.1, -0.1, 0.05])
    cosine, agreement, common = dense_codes(view, classes, commons)
    before, after = Score.of_prior(theta[:6] * 1.1), Score.of_prior(theta)
    prior = (
        before.by_cosine[cosine] + before.by_agreement[agreement] + before.products * cosine * agreement / 65535 / 4095
    )
    l = common * np.log1p(200) / 255  # noqa: E741
    extra = after.extra
    posterior = (
        after.by_cosine[cosine] + after.by_agreement[agreement] + after.products * cosine * agreement / 65535 / 4095
    )
    posterior += l * (extra[0] + extra[1] * l + extra[2] * cosine / 65535 + extra[3] * np.log(agreement / 4095 + 0.05))
    heard = ~(bits.silent[:, None] | bits.silent)
    posterior += np.where(heard, np.where(dense_bits(bits, given.n) == 1, 2.0, -2.0), 0.0)
    upper = np.triu_indices(given.n, 1)
    ranking = Ranking(view, classes, before, after, commons, bits)
    for rank in ("prior", "posterior", "sum"):
        values = np.sort(rank_value(rank, prior[upper], posterior[upper]))[::-1]
        for guess in (values[0] + 1, values[300], values[-1] - 1):
            found = ranking.top(250, rank, guess)
            mine = rank_value(rank, found.prior, found.posterior)
            assert (np.diff(mine) <= 0).all() and mine == pytest.approx(values[:250], abs=5e-3)
            assert (found.i < found.j).all() and len(set(zip(found.i, found.j))) == 250
    assert len(ranking.top(10**9, "sum", 0.1).i) == given.n * (given.n - 1) // 2
    assert len(ranking.top(0, "sum", 0.1).i) == 0
    assert len(ranking.all_above(0.0).i) == pytest.approx(((prior > 0) | (posterior > 0))[upper].sum(), abs=2)


def test_rank_helpers_by_hand():
    assert bound_of("sum", 0.5) == pytest.approx(np.log(0.25 / 0.75)) and bound_of("prior", 3.0) == 3.0
    assert rank_value("sum", np.array([0.0]), np.array([0.0]))[0] == 1.0
    # values 5 (2 things), 3 (4), 1 (10): the third-best thing has value 3
    assert value_exceeded(np.array([1.0, 5.0, 3.0]), np.array([10, 2, 4]), 3) == 3.0


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
