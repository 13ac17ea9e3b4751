"""Public pair scores, cells and rankings: tiled kernels against dense matrices and a full sort."""

from dataclasses import replace

import numpy as np
import pytest
from peers import everyone, world
from scipy import sparse

from server.refinement import _feature_kernels as kernels
from server.refinement._bit_rows import pack_either, words_of
from server.refinement._pair_ranking import Ranking, Score, bound_of, rank_value, value_exceeded
from server.refinement._prior_fit import (
    Bits,
    Commons,
    common_bins,
    cosine_bins,
    count_pairs,
)
from server.refinement._public import public_view, tf_idf


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
