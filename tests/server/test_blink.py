"""Blink without n x n arrays, against dense matrices: prior, posterior, and each variant's published pairs."""

import numpy as np
import pytest
from peers import evidence_of
from scipy import sparse
from scipy.special import expit

from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.blink_reports import BlinkReports
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.verification_list import VerificationList
from server.refinement.blink import Blink, Posterior, beta_parameters, pairs_above
from sim.kernel.randomness import Streams


def dense_blink(lists, reported, degrees, hit, false_alarm, two_ended):
    """(n, n) posterior log-odds by matrices: 200 sweeps of the fixed point, one likelihood ratio a reported bit."""
    n = len(degrees)
    clipped = np.clip(np.rint(degrees * 16) / 16, 1, n - 2)
    beta, off = np.zeros(n), ~np.eye(n, dtype=bool)
    for _ in range(200):
        terms = 1 / (np.exp(beta)[:, None] + np.exp(-beta)[None, :])
        beta = np.log(clipped) - np.log((terms * off).sum(axis=1))
    odds = beta[:, None] + beta[None, :]
    one, zero = np.log(hit / false_alarm), np.log((1 - hit) / (1 - false_alarm))
    told = np.where(lists > 0, one, zero)
    if two_ended:
        told = np.where(reported[:, None], told, 0)
        return odds + told + told.T
    return odds + np.where((lists > 0) | (lists > 0).T, one, zero)


def world(n=80, density=0.06, seed=0, epsilon=2.5, two_ended=True, spread=1.0):
    """(dense noisy lists, noisy degrees) of a random graph under randomised response."""
    rng = np.random.default_rng(seed)
    q = 1 / (1 + np.exp(epsilon))
    weight = rng.pareto(2.0, n) + 0.5
    true = np.triu(rng.random((n, n)) < np.minimum(density * np.outer(weight, weight), 0.9), 1)
    true |= true.T
    lists = true ^ (rng.random((n, n)) < q)
    lists = np.triu(lists, 1) if not two_ended else lists & ~np.eye(n, dtype=bool)
    return lists.astype(np.int8), true.sum(axis=1) + rng.laplace(0, spread, n)


def evidence(lists, degrees, epsilon, two_ended, reported=None):
    kind = "two-list" if two_ended else "single-bit"
    ties = BlinkReports(epsilon=epsilon / 0.9, delta=0.1, evidence=kind)
    return evidence_of(sparse.csr_array(lists), ties, numbers=[degrees[:, None]], reported=reported)


def pairs_of(structure):
    return set(zip(structure.u.tolist(), structure.v.tolist()))


def upper(odds):
    return odds[np.triu_indices(len(odds), 1)]


CASES = pytest.mark.parametrize("two_ended", [True, False])


@CASES
@pytest.mark.parametrize("epsilon", [0.8, 2.5, 5.0])
def test_posterior_equals_the_dense_one(two_ended, epsilon):
    lists, degrees = world(epsilon=epsilon, two_ended=two_ended)
    given, everyone = evidence(lists, degrees, epsilon, two_ended), np.ones(80, bool)
    q = 1 / (1 + np.exp(epsilon))
    odds = dense_blink(lists, everyone, degrees, 1 - q, q, two_ended)
    posterior = Posterior.of(given, everyone)
    assert posterior.dense() == pytest.approx(expit(upper(odds)), rel=2e-6, abs=1e-12)
    assert posterior.expected == pytest.approx(expit(upper(odds)).sum(), rel=1e-7)
    assert Blink().pair_estimate(given, everyone, Streams(0)).dense() == pytest.approx(posterior.dense())


@CASES
@pytest.mark.parametrize("epsilon", [0.8, 2.5, 5.0])
def test_hard_publishes_what_is_more_likely_than_not(two_ended, epsilon):
    lists, degrees = world(seed=3, epsilon=epsilon, two_ended=two_ended)
    q = 1 / (1 + np.exp(epsilon))
    odds = dense_blink(lists, np.ones(80, bool), degrees, 1 - q, q, two_ended)
    made = Blink().refine(evidence(lists, degrees, epsilon, two_ended), np.ones(80, bool), Streams(0))
    rows, columns = np.nonzero(np.triu(odds > 0, 1))
    assert pairs_of(made) == set(zip(rows.tolist(), columns.tolist())) and len(rows) > 0
    assert made.probability == pytest.approx(expit(odds[made.u, made.v]), rel=1e-9)
    assert (np.diff(made.u) >= 0).all() and made.weight is None


@CASES
def test_pairs_of_hubs_need_no_report(two_ended):
    """A clique's worth of degree among ten users: their pairs are ties whatever was reported, and are found."""
    lists, degrees = world(seed=1, epsilon=0.3, two_ended=two_ended)
    degrees[:10] = 75.0
    given = evidence(lists, degrees, 0.3, two_ended)
    q = 1 / (1 + np.exp(0.3))
    odds = dense_blink(lists, np.ones(80, bool), degrees, 1 - q, q, two_ended)
    made = Blink().refine(given, np.ones(80, bool), Streams(0))
    silent = [(u, v) for u, v in pairs_of(made) if not (lists[u, v] or lists[v, u])]
    assert len(silent) > 5
    rows, columns = np.nonzero(np.triu(odds > 0, 1))
    assert pairs_of(made) == set(zip(rows.tolist(), columns.tolist()))


@CASES
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_hybrid_keeps_as_many_as_are_expected(two_ended, epsilon):
    lists, degrees = world(seed=5, epsilon=epsilon, two_ended=two_ended, spread=20.0)
    q = 1 / (1 + np.exp(epsilon))
    odds = upper(dense_blink(lists, np.ones(80, bool), degrees, 1 - q, q, two_ended))
    made = Blink(variant="hybrid").refine(evidence(lists, degrees, epsilon, two_ended), np.ones(80, bool), Streams(0))
    count = int(expit(odds).sum())
    cut = np.sort(odds)[-count]
    rows, columns = np.triu_indices(80, 1)
    assert len(made.u) == count
    held = pairs_of(made)
    assert {(u, v) for u, v, o in zip(rows, columns, odds) if o > cut + 1e-9} <= held
    assert held <= {(u, v) for u, v, o in zip(rows, columns, odds) if o > cut - 1e-9}
    position = dict(zip(zip(rows.tolist(), columns.tolist()), odds))
    assert made.weight == pytest.approx(expit([position[p] for p in zip(made.u.tolist(), made.v.tolist())]), rel=1e-6)


@CASES
def test_soft_weighs_every_pair(two_ended):
    lists, degrees = world(seed=6, two_ended=two_ended)
    q = 1 / (1 + np.exp(2.5))
    odds = upper(dense_blink(lists, np.ones(80, bool), degrees, 1 - q, q, two_ended))
    made = Blink(variant="soft").refine(evidence(lists, degrees, 2.5, two_ended), np.ones(80, bool), Streams(0))
    assert len(made.u) == 80 * 79 // 2 and made.weight == pytest.approx(expit(odds), rel=2e-6)
    assert (made.hard == (odds > 0)).all()
    assert "100.0% of all pairs" in made.notes[0]


def test_silent_users_say_nothing():
    """Two-list evidence of a pair with one silent end is one bit, and with two silent ends the prior."""
    lists, degrees = world(seed=7)
    reported = np.arange(80) % 4 > 0
    lists[~reported] = 0
    given = evidence(lists, np.where(reported, degrees, np.nan), 2.5, True, reported)
    filled = np.where(reported, degrees, np.median(degrees[reported]))
    q = 1 / (1 + np.exp(2.5))
    odds = dense_blink(lists, reported, filled, 1 - q, q, True)
    assert Posterior.of(given, np.ones(80, bool)).dense() == pytest.approx(expit(upper(odds)), rel=2e-6, abs=1e-12)


def test_pruned_users_have_no_tie():
    lists, degrees = world(seed=8, epsilon=4.0)
    kept = np.arange(80) % 3 > 0
    q = 1 / (1 + np.exp(4.0))
    inside = dense_blink(lists[kept][:, kept], np.ones(kept.sum(), bool), degrees[kept], 1 - q, q, True)
    rows, columns = np.nonzero(np.triu(inside > 0, 1))
    members = np.flatnonzero(kept)
    made = Blink().refine(evidence(lists, degrees, 4.0, True), kept, Streams(0))
    assert pairs_of(made) == {(members[u], members[v]) for u, v in zip(rows, columns)}


@pytest.mark.parametrize(
    "ties", [VerificationList(epsilon=4.0, levels=3), BinaryList(epsilon=2.0), PairBits(epsilon=2.0)]
)
def test_other_reports_have_their_degrees_estimated(ties):
    """Bits of their own channel, P(1|tie) = 1 - q and P(1|no tie) = kappa q; degrees (ones - q0 (n-1)) / (p - q0)."""
    lists, _ = world(seed=9, two_ended=ties.two_ended)
    q, levels = (1 / (np.exp(4.0) + 3), 3) if ties.levels == 3 else (1 / (1 + np.exp(2.0)), 1)
    ones = lists.sum(axis=1) if ties.two_ended else (lists | lists.T).sum(axis=1)
    degrees = (ones - levels * q * 79) / (1 - q - levels * q)
    odds = dense_blink(lists, np.ones(80, bool), degrees, 1 - q, levels * q, ties.two_ended)
    given = evidence_of(sparse.csr_array(lists * min(2, levels)), ties)
    assert Posterior.of(given, np.ones(80, bool)).dense() == pytest.approx(expit(upper(odds)), rel=2e-6, abs=1e-12)


@pytest.mark.parametrize("variant", ["hard", "soft", "hybrid"])
def test_relabelling_the_nodes_relabels_the_published_graph(variant):
    lists, degrees = world(seed=11, epsilon=1.0, spread=3.0)
    order = np.random.default_rng(4).permutation(80)
    before = Blink(variant=variant).refine(evidence(lists, degrees, 1.0, True), np.ones(80, bool), Streams(2))
    moved = evidence(lists[order][:, order], degrees[order], 1.0, True)
    after = Blink(variant=variant).refine(moved, np.ones(80, bool), Streams(2))
    renamed = {tuple(sorted((order[u], order[v]))) for u, v in pairs_of(after)}
    assert renamed == pairs_of(before) and len(renamed) > 0


def test_beta_model_gives_every_user_its_degree():
    degrees = np.random.default_rng(0).gamma(2.0, 3.0, 300)
    beta = beta_parameters(degrees)
    prior = expit(beta[:, None] + beta[None, :]) * ~np.eye(300, dtype=bool)
    assert prior.sum(axis=1) == pytest.approx(np.clip(np.rint(degrees * 16) / 16, 1, 298), abs=1e-4)


def test_pairs_above_by_brute_force():
    base = np.random.default_rng(2).normal(size=60)
    for cut in (-5.0, 0.0, 1.5, 9.0):
        rows, columns = np.nonzero(np.triu(base[:, None] + base[None, :] > cut, 1))
        assert set(zip(*(x.tolist() for x in pairs_above(base, cut)))) == set(zip(rows.tolist(), columns.tolist()))


@pytest.mark.parametrize("variant", ["hard", "soft", "hybrid"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_tiny_worlds(n, variant):
    lists = np.triu(np.ones((n, n), np.int8), 1)
    made = Blink(variant=variant).refine(evidence(lists, np.ones(n), 1.0, False), np.ones(n, bool), Streams(0))
    assert len(made.u) == len(made.v) == len(made.probability)


def test_a_soft_graph_is_announced_with_its_size():
    protocol = evidence(*world(), 2.5, True).protocol
    assert "3,160 ties, 100.0% of all pairs" in Blink(variant="soft").warning(protocol)
    assert Blink().warning(protocol) is None


def test_blink_asks_for_its_own_reports():
    asked = Blink(evidence="single-bit", delta=0.3).tie_protocol(2.0, 5)
    assert asked == BlinkReports(epsilon=2.0, delta=0.3, evidence="single-bit")
