"""EdgeRefine: kernels against sets and a stable sort, to the last bit; options, presets, and what relabelling does."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from peers import evidence_of
from scipy import sparse

from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.verification_list import VerificationList
from server.bits import estimated_ties, pair_channel
from server.refinement import _edgerefine_plain as plain
from server.refinement import _edgerefine_select as selection
from server.refinement._bit_rows import pack_either
from server.refinement._calibration import METHODS
from server.refinement._edgerefine_bins import empty_rows, packed, quantile_bins, sample_pairs
from server.refinement.base import Refinement
from server.refinement.edgerefine import CELLS, EdgeRefine
from sim.kernel.component import Problem, build, dump
from sim.kernel.randomness import Streams


def noisy(n, density, seed, heavy=False):
    """A random (n, n) symmetric boolean matrix, with uneven degrees when `heavy`."""
    rng = np.random.default_rng(seed)
    weight = rng.pareto(1.5, n) + 0.3 if heavy else np.ones(n)
    upper = np.triu(rng.random((n, n)) < np.minimum(density * np.outer(weight, weight), 1), 1)
    return upper | upper.T


def one_ended(ties):
    """Lists in which the smaller id speaks for a pair."""
    return sparse.csr_array(np.triu(ties).astype(np.int8))


def bits_evidence(ties, epsilon=1.0, **facts):
    return evidence_of(one_ended(ties), PairBits(epsilon=epsilon), **facts)


def packed_graph(ties, similarity="jaccard"):
    lists, n = one_ended(ties), len(ties)
    rows = empty_rows(n)
    pack_either(lists.indptr.astype(np.int64), lists.indices.astype(np.int32), np.arange(n), rows)
    return packed(rows, similarity)


def scores_of(ties, similarity):
    neighbours = [set(np.flatnonzero(row).tolist()) for row in ties]
    return (plain.jaccard_plain if similarity == "jaccard" else plain.adamic_adar_plain)(neighbours)


def dense_jaccard(ties):
    """Jaccard similarity of all pairs by one matrix product (counts are exact in float32)."""
    common = (ties.astype(np.float32) @ ties.astype(np.float32)).astype(np.int64)
    degrees, upper = ties.sum(axis=1), np.triu_indices(len(ties), 1)
    either = (degrees[:, None] + degrees - common)[upper]
    return np.where(either > 0, common[upper] / np.maximum(either, 1), 0.0)


def pairs_of(structure):
    return set(zip(structure.u.tolist(), structure.v.tolist()))


def everyone(ties):
    return np.ones(len(ties), bool)


@pytest.mark.parametrize("similarity", ["jaccard", "adamic-adar"])
@pytest.mark.parametrize("n, density, heavy", [(2, 0.5, False), (5, 0.0, False), (90, 0.3, False), (130, 0.05, True)])
@pytest.mark.parametrize("bins", [1, 2, 10, 32])
def test_bins_are_exact_quantiles(n, density, heavy, similarity, bins):
    ties = noisy(n, density, n, heavy)
    found = quantile_bins(packed_graph(ties, similarity), bins, Streams(0).generator("bins"))
    expected = plain.quantile_bins_plain(scores_of(ties, similarity), bins)
    assert (found.bin_of_code[found.codes] == expected).all()
    bits = ties[np.triu_indices(n, 1)].astype(int)
    table = np.zeros_like(found.counts)
    np.add.at(table, (expected, bits), 1)
    assert (found.counts == table).all()


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_bins_are_exact_where_zones_matter(epsilon):
    """1,500 users: far more pairs than the sample that chooses the zones; against numpy's quantiles of all of them."""
    n = 1500
    ties = noisy(n, 1 / (1 + np.exp(epsilon)), 3, heavy=epsilon > 5)
    scores = dense_jaccard(ties)
    found = quantile_bins(packed_graph(ties), 10, Streams(0).generator("bins"))
    assert (found.bin_of_code[found.codes] == plain.quantile_bins_plain(scores, 10)).all()


def test_the_choice_of_zones_changes_nothing():
    ties = noisy(700, 0.2, 8)
    graph = packed_graph(ties)
    one, two = (quantile_bins(graph, 10, Streams(s).generator("bins")) for s in (1, 2))
    assert (one.edges == two.edges).all() and (one.bin_of_code[one.codes] == two.bin_of_code[two.codes]).all()


def test_sampled_edges_are_quantiles_of_the_sample():
    ties = noisy(120, 0.3, 4)
    u, v = sample_pairs(120, 500, Streams(5).generator("bins"))
    assert len(set(zip(u.tolist(), v.tolist()))) == 500 and (u < v).all()
    scores = scores_of(ties, "jaccard")
    rows, columns = np.triu_indices(120, 1)
    position = {pair: at for at, pair in enumerate(zip(rows.tolist(), columns.tolist()))}
    sample = scores[[position[pair] for pair in zip(u.tolist(), v.tolist())]]
    found = quantile_bins(packed_graph(ties), 10, Streams(5).generator("bins"), 500)
    assert (found.bin_of_code[found.codes] == plain.quantile_bins_plain(scores, 10, sample)).all()


@pytest.mark.parametrize("preset, rounded", [("paper", False), ("authors-code", True)])
@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_published_pairs_are_the_authors(preset, rounded, rate):
    ties = noisy(80, 0.27, 7)
    evidence = bits_evidence(ties, extra={"true_edge_count": np.array(150)})
    made = EdgeRefine(preset=preset, rate=rate).refine(evidence, everyone(ties), Streams(0))
    rho = np.e / (1 + np.e)
    assert pairs_of(made) == plain.edgerefine_plain(ties, 150, rate, rho, rounded)
    assert (made.u < made.v).all() and made.weight is None and "epsilon does not cover" in made.notes[0]


def marks(pairs, words, key):
    """The random mark of each pair, from numpy's own Philox."""
    out = []
    for i, j in pairs:
        total, parity = (int(words[i]) + int(words[j])) % 2**64, int(words[i]) ^ int(words[j])
        counter = np.array([0, total, parity, 0], dtype=np.uint64)
        out.append(int(np.random.Philox(key=key, counter=counter).random_raw()))
    return out


@pytest.mark.parametrize("rule", ["row-order", "continuous", "random"])
@pytest.mark.parametrize("selected", ["quota", "top-k"])
@pytest.mark.parametrize("calibration", list(METHODS))
def test_every_option_equals_its_plain_version(rule, selected, calibration):
    """Ties of the last group by position, by similarity or by chance, for groups of all calibrations."""
    n = 60
    ties = noisy(n, 0.25, 11, heavy=True)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    bits = ties[np.triu_indices(n, 1)].astype(int)
    scores = scores_of(ties, "jaccard")
    if calibration == "histogram":
        probability = plain.probabilities_plain(plain.quantile_bins_plain(scores, 10), bits)
    else:
        low, scale = scores.min(), CELLS / (scores.max() - scores.min())
        cells = np.minimum((scores - low) * scale, CELLS - 1).astype(int)
        counts = np.zeros((CELLS, 2), int)
        np.add.at(counts, (cells, bits), 1)
        probability = METHODS[calibration]((low + (np.arange(CELLS) + 0.5) / scale) / scores.max(), counts)[cells]
    method = EdgeRefine(calibration=calibration, selection=selected, ties=rule, rate=0.5, edge_count="exact")
    evidence = bits_evidence(ties, extra={"true_edge_count": np.array(160)})
    mark = marks(pairs, method._words(evidence, np.arange(n)), Streams(4).key("refinement/ties"))
    keys = {
        "row-order": lambda at: (),
        "continuous": lambda at: (scores[at], mark[at]),
        "random": lambda at: (mark[at],),
    }
    real = int(pair_channel(PairBits(epsilon=1.0)).hit * 80)
    need = (80 - real, real) if selected == "quota" else (80,)
    made = method.refine(evidence, everyone(ties), Streams(4))
    assert pairs_of(made) == plain.select_plain(pairs, bits, probability, need, keys[rule])
    at = {pair: place for place, pair in enumerate(pairs)}
    listed = [at[pair] for pair in zip(made.u.tolist(), made.v.tolist())]
    assert np.array_equal(made.probability, np.clip(probability[listed], 0, 1))
    assert np.array_equal(
        method.pair_estimate(evidence, everyone(ties), Streams(4)).dense(), probability.astype(np.float32)
    )


@pytest.mark.parametrize("similarity", ["jaccard", "adamic-adar"])
def test_pruned_users_have_no_tie_and_count_in_no_neighbourhood(similarity):
    ties = noisy(70, 0.3, 2)
    kept = np.arange(70) % 5 > 0
    method = EdgeRefine(similarity=similarity, ties="continuous", rate=1.0, edge_count="exact")
    extra = {"true_edge_count": np.array(60)}
    whole = method.refine(bits_evidence(ties, extra=extra), kept, Streams(0))
    alone = EdgeRefine(similarity=similarity, rate=1.0, edge_count="exact")
    inside = alone.refine(bits_evidence(ties[kept][:, kept], extra=extra), np.ones(kept.sum(), bool), Streams(0))
    outside = alone.refine(bits_evidence(ties, extra=extra), kept, Streams(0))
    members = np.flatnonzero(kept)
    assert len(whole.u) == 60 and kept[whole.u].all() and kept[whole.v].all()
    assert pairs_of(outside) == {(members[u], members[v]) for u, v in pairs_of(inside)}


@pytest.mark.parametrize("rule, follows", [("continuous", True), ("random", True), ("row-order", False)])
def test_relabelling_the_nodes_relabels_the_published_graph_unless_ties_go_by_row(rule, follows):
    ties = noisy(150, 0.27, 21)
    order = np.random.default_rng(1).permutation(150)
    method = EdgeRefine(rate=1.0, edge_count="exact", ties=rule)
    extra = {"true_edge_count": np.array(40)}
    before = method.refine(bits_evidence(ties, extra=extra), everyone(ties), Streams(3))
    lists = one_ended(ties)[order][:, order]
    lists.sort_indices()
    after = method.refine(evidence_of(lists, PairBits(epsilon=1.0), extra=extra), everyone(ties), Streams(3))
    renamed = {tuple(sorted((order[u], order[v]))) for u, v in pairs_of(after)}
    assert (renamed == pairs_of(before)) is follows


def test_the_authors_graph_is_a_star_on_the_first_users():
    ties = noisy(1000, 0.27, 5)
    evidence = bits_evidence(ties, extra={"true_edge_count": np.array(2500)})
    made = EdgeRefine(preset="paper").refine(evidence, everyone(ties), Streams(0))
    assert len(made.u) == 25 and set(made.u) <= {0, 1}


def test_debiasing_changes_probabilities_and_no_choice():
    ties = noisy(120, 0.3, 9)
    evidence = bits_evidence(ties)
    methods = [EdgeRefine(rate=1.0, debias=debias, ties="random") for debias in (False, True)]
    raw, fair = (method.refine(evidence, everyone(ties), Streams(0)) for method in methods)
    assert len(raw.u) > 0
    assert pairs_of(raw) == pairs_of(fair)
    q = PairBits(epsilon=1.0).flip
    assert fair.probability == pytest.approx(np.clip((raw.probability - q) / (1 - 2 * q), 0, 1))


def test_the_number_of_ties_is_estimated_without_bias():
    """Mean of 200 estimates from fresh noise within 4 standard errors of the truth; the sd as the formula says."""
    truth, protocol, n = noisy(60, 0.1, 3), PairBits(epsilon=1.5), 60
    rng, q, pairs = np.random.default_rng(2), protocol.flip, 60 * 59 // 2
    upper = np.triu_indices(n, 1)
    made = [
        ((truth[upper] ^ (rng.random(pairs) < q)).sum() - q * pairs) / (1 - 2 * q)
        for _ in range(200)
    ]  # fmt: skip
    mine = [estimated_ties(int(m * (1 - 2 * q) + q * pairs + 0.5), pairs, pair_channel(protocol)) for m in made]
    assert mine == pytest.approx(np.maximum(made, 0))
    sd = np.sqrt(pairs * q * (1 - q)) / (1 - 2 * q)
    assert abs(np.mean(made) - truth[upper].sum()) < 4 * sd / np.sqrt(200)


def test_edge_counts_come_from_where_they_should():
    ties = noisy(50, 0.4, 6)
    kept = everyone(ties)
    with pytest.raises(ValueError, match="hands none over"):
        EdgeRefine(edge_count="exact").refine(bits_evidence(ties), kept, Streams(0))
    with pytest.raises(ValueError, match="pair-bits reports with a count"):
        EdgeRefine(edge_count="noisy").refine(bits_evidence(ties), kept, Streams(0))
    counts = np.full((50, 1), 2.0)
    counts[3] = np.nan
    protocol = EdgeRefine(edge_count="noisy", count_share=0.2).tie_protocol(2.0, 5)
    assert protocol == PairBits(epsilon=2.0, count_share=0.2)
    noisy_count = evidence_of(one_ended(ties), protocol, numbers=[counts])
    made = EdgeRefine(edge_count="noisy", rate=0.5).refine(noisy_count, kept, Streams(0))
    assert made.summary == {"edge_count_used": 98.0, "selected": 49.0}
    free = EdgeRefine(rate=0.5).refine(bits_evidence(ties), kept, Streams(0))
    q = PairBits(epsilon=1.0).flip
    ones = np.triu(ties).sum()
    assert free.summary["edge_count_used"] == pytest.approx((ones - q * 1225) / (1 - 2 * q))
    assert EdgeRefine(edge_count="exact").needs_true_edge_count
    assert not EdgeRefine(edge_count="estimated").needs_true_edge_count
    assert not EdgeRefine(edge_count="noisy").needs_true_edge_count


def test_the_exact_count_tells_neighbouring_worlds_apart_and_the_estimate_does_not():
    """Same bits, one true tie more: at rate 1 the authors' quota grows by one pair, whatever the noise was."""
    ties = noisy(40, 0.3, 12)
    for count, pairs in (("exact", [30, 31]), ("estimated", None)):
        method = EdgeRefine(rate=1.0, edge_count=count)
        worlds = [bits_evidence(ties, extra={"true_edge_count": np.array(edges)}) for edges in (30, 31)]
        made = [len(method.refine(world, everyone(ties), Streams(0)).u) for world in worlds]
        assert made == pairs if pairs else made[0] == made[1]


def test_attested_lists_are_read_as_the_conjunction_of_two_bits():
    """A verification list is a binary list with P(1|tie) = 1 - q, P(1|no tie) = kappa q; the server ands both ends."""
    protocol = VerificationList(epsilon=4.0, levels=5)
    channel = pair_channel(protocol)
    q = 1 / (np.exp(4.0) + 5)
    assert (channel.hit, channel.false_alarm) == pytest.approx(((1 - q) ** 2, (5 * q) ** 2))
    given = noisy(90, 0.3, 4)
    told = given & (np.random.default_rng(5).random((90, 90)) < 0.8)
    lists = sparse.csr_array((told * np.random.default_rng(6).integers(1, 6, (90, 90))).astype(np.int8))
    method = EdgeRefine(rate=1.0, edge_count="exact")
    extra = {"true_edge_count": np.array(100)}
    for kind, reports in ((protocol, lists), (BinaryList(epsilon=4.0), (lists > 0).astype(np.int8))):
        made = method.refine(evidence_of(reports, kind, extra=extra), everyone(given), Streams(0))
        assert pairs_of(made) == plain.edgerefine_plain(told & told.T, 100, 1.0, pair_channel(kind).hit)
    assert pair_channel(BinaryList(epsilon=1.0)).false_alarm == pytest.approx(1 / (1 + np.e) ** 2)


def test_a_pair_claimed_by_the_wrong_end_or_by_both_counts_once():
    ties = noisy(40, 0.3, 1)
    both = evidence_of(sparse.csr_array(ties.astype(np.int8)), PairBits(epsilon=1.0))
    one = bits_evidence(ties)
    method = EdgeRefine(rate=1.0)
    assert pairs_of(method.refine(both, everyone(ties), Streams(0))) == pairs_of(
        method.refine(one, everyone(ties), Streams(0))
    )


def test_presets_fill_in_what_they_mean_and_survive_being_written_out():
    for preset, rounding, sample in (("paper", "floor", None), ("authors-code", "round", 200_000)):
        made = EdgeRefine(preset=preset)
        assert (made.ties, made.edge_count) == ("row-order", "exact")
        assert (made.real_quota, made.bin_sample) == (rounding, sample)
        problems: list[Problem] = []
        assert build(Refinement, dump(made), (), problems) == made and not problems
    with pytest.raises(ValueError, match="preset 'paper' means ties: row-order, found random"):
        EdgeRefine(preset="paper", ties="random")


@pytest.mark.parametrize(
    "bad", [{"rate": 1.5}, {"bins": 0}, {"bins": 33}, {"preset": "code"}, {"bin_sample": 5}, {"k": 1}]
)
def test_bad_options_are_refused(bad):
    with pytest.raises(ValueError):
        EdgeRefine(**bad)


def test_empty_and_tiny_worlds():
    for n in (0, 1, 2, 3):
        ties = np.zeros((n, n), bool)
        evidence = bits_evidence(ties, extra={"true_edge_count": np.array(2)})
        for method in (
            EdgeRefine(rate=1.0, edge_count="exact"),
            EdgeRefine(rate=1.0, edge_count="exact", calibration="beta"),
        ):
            made = method.refine(evidence, everyone(ties), Streams(0))
            assert len(made.u) == len(made.v) == len(made.probability) <= n * (n - 1) // 2
            assert len(method.pair_estimate(evidence, everyone(ties), Streams(0)).dense()) == n * (n - 1) // 2


def test_plan_takes_whole_groups_and_then_some():
    probability, counts = np.array([0.2, 0.9, 0.2, 0.5]), np.array([[3, 1], [0, 2], [4, 0], [1, 1]])
    take, whole, some = selection.plan(probability, counts, (5, 2))
    assert take.tolist() == [[selection.SOME, 0, selection.SOME, selection.ALL], [0, selection.ALL, 0, 0]]
    assert whole.tolist() == [1, 2] and some.tolist() == [4, 0]
    take, whole, some = selection.plan(probability, counts, (100, 100))
    assert whole.tolist() == [8, 4] and not some.any()


def test_memory_stays_at_a_bit_and_a_byte_a_pair():
    """At most n^2/8 + n^2/2 bytes and a constant for the sample (4 MB), as numpy's allocations count."""
    n = 4000
    evidence = bits_evidence(noisy(n, 0.13, 5), epsilon=2.0)
    method = EdgeRefine()
    method.warm_up()
    method.refine(evidence, np.ones(n, bool), Streams(0))
    tracemalloc.start()
    method.refine(evidence, np.ones(n, bool), Streams(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n * n / 2 < peak < n * n / 8 + n * n / 2 + 4e6


@pytest.mark.slow
def test_dblp_gives_the_authors_35_pairs(data_root):
    """The published pairs on DBLP at epsilon 1 are those of the authors' rule on the same bits: dense matrices, all of
    numpy's quantiles, a stable sort."""
    stored = np.load(data_root / "dblp" / "dblp.npz")
    u, v = stored["edge_index"]
    n = len(stored["y"])
    truth = sparse.csr_array((np.ones(len(u), np.int8), (u, v)), shape=(n, n))
    truth = sparse.csr_array(((truth + truth.T) > 0).astype(np.int8))
    call = SimpleNamespace(epoch=0, phase=0, memoized=False)
    reports = PairBits(epsilon=1.0).encode(truth, np.arange(n), Streams(42), call)
    evidence = evidence_of(reports.lists, PairBits(epsilon=1.0), extra={"true_edge_count": np.array(len(u))})
    made = EdgeRefine(preset="paper").refine(evidence, np.ones(n, bool), Streams(0))
    bits = (reports.lists + reports.lists.T).toarray() > 0
    upper = np.triu_indices(n, 1)
    bins = plain.quantile_bins_plain(dense_jaccard(bits), 10)
    probability = plain.probabilities_plain(bins, bits[upper].astype(int))
    chosen = []
    for kind, wanted in ((False, 35 - 25), (True, 25)):
        places = np.flatnonzero(bits[upper] == kind)
        chosen.append(places[np.argsort(-probability[places], kind="stable")[:wanted]])
    places = np.concatenate(chosen)
    assert pairs_of(made) == set(zip(upper[0][places].tolist(), upper[1][places].tolist())) and len(places) == 35
