"""Degree-preserving randomised response: the kernel bit for bit, its row sums, its law, and its cost in privacy."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats

from agents.privacy.noise import DegreeNoise
from agents.privacy.ties.sampled_list import SampledList
from sim.kernel.randomness import BLOCK, Streams


def call(epoch=0, memoized=False):
    return SimpleNamespace(epoch=epoch, phase=0, memoized=memoized)


def lists_of(*rows, columns):
    """True lists as csr rows, from collections of partner ids."""
    dense = np.zeros((len(rows), columns), np.int8)
    for row, partners in enumerate(rows):
        dense[row, list(partners)] = 1
    return sparse.csr_array(dense)


def plain_row(protocol, partners, sender, columns, streams, epoch):
    """One reported list the slow way: numpy's Philox, Python loops, one entry at a time."""
    degree_epsilon, bit_epsilon = protocol.shares(columns)
    p = 1 / (1 + math.exp(-bit_epsilon))
    noise = DegreeNoise("laplace", degree_epsilon).draw(1, [sender], epoch, streams, "ties/sampled/degree")[0, 0]
    noisy = len(partners) + noise
    if noisy <= 0:
        return []
    keep = min(1.0, noisy / (noisy * (2 * p - 1) + (columns - 1) * (1 - p)))
    reported = []
    for block in range(math.ceil(columns / BLOCK)):
        end = min(columns, (block + 1) * BLOCK)
        draws = iter(streams.generator("ties/sampled", sender, epoch, block).random(BLOCK + 8))
        column = block * BLOCK - 1
        while True:
            column += 1 + math.floor(min(BLOCK, math.log(1 - next(draws)) / math.log1p(-(1 - p) * keep)))
            if column >= end:
                break
            if column != sender and column not in partners:
                reported.append(column)
    for column in partners:
        if streams.generator("ties/sampled/held", sender, epoch, column).random() < p * keep:
            reported.append(column)
    return sorted(reported)


@pytest.mark.parametrize("budget", ["authors", "edgerefine"])
@pytest.mark.parametrize("epsilon, columns", [(0.5, 60), (1.0, 300), (8.0, 300), (4.0, BLOCK + 500)])
def test_kernel_equals_the_plain_version_bit_for_bit(budget, epsilon, columns):
    protocol, streams = SampledList(epsilon=epsilon, budget=budget), Streams(11)
    held = [set(range(5, 5 + 4 * row)) - {row} for row in range(8)] + [{columns - 1, 0}]
    truth = lists_of(*held, columns=columns)
    reports = protocol.encode(truth, np.arange(9), streams, call(3)).lists
    for row, partners in enumerate(held):
        expected = plain_row(protocol, partners, row, columns, streams, 3)
        assert list(reports.indices[slice(*reports.indptr[row : row + 2])]) == expected


def test_a_report_alone_equals_its_row_of_the_population():
    truth = lists_of({1, 2}, {0, 5}, {7}, {2, 9}, columns=40)
    protocol, streams = SampledList(epsilon=3.0), Streams(2)
    whole = protocol.encode(truth, np.array([30, 31, 32, 33]), streams, call(1)).lists
    alone = protocol.encode(truth[[2]], np.array([32]), streams, call(1)).lists
    assert (whole[[2]] != alone).nnz == 0 and whole.has_sorted_indices and not whole.diagonal().any()


def test_keep_probability_by_hand():
    protocol = SampledList(epsilon=math.log(3) / 0.9)  # epsilon_2 = log 3, so p = 3/4
    assert protocol.truthful(101) == pytest.approx(0.75)
    # d* = 4, n - 1 = 100: 4 / (4 * 1/2 + 100 * 1/4) = 4/27; from (n - 1)/2 on, nothing is thinned
    assert protocol.keep(np.array([4.0, -1.0, 60.0, 50.0]), 101) == pytest.approx([4 / 27, 0, 1, 1])


def test_the_shares_of_the_budget():
    assert SampledList(epsilon=2.0).shares(2708) == pytest.approx((0.2, 1.8))
    # sqrt(8 / 2707) = 0.0544 < 0.2, but at 8 entries sqrt(8/8) = 1 binds, and at 2 entries all of epsilon goes
    assert SampledList(epsilon=2.0, budget="edgerefine").shares(2708) == pytest.approx((0.2, 1.8))
    assert SampledList(epsilon=2.0, budget="edgerefine").shares(9) == pytest.approx((1.0, 1.0))
    assert SampledList(epsilon=2.0, budget="edgerefine").shares(3) == pytest.approx((2.0, 0.0))


def test_row_sums_follow_the_degree():
    """Mean row sum of 4,000 users of degree 60 among 1,500 at epsilon 8: the Laplace noise (scale 1.25) is rarely cut
    at 0, so the mean is 60 within 5 standard errors of a row's sd, at most sqrt(60 + 2 * 1.25^2)."""
    columns, users = 1500, 4000
    truth = lists_of(range(60), columns=columns)
    truth = sparse.csr_array(sparse.vstack([truth] * users))
    senders = np.full(users, 1400) + np.arange(users) % 100
    sums = []
    for epoch in range(40):
        part = slice(epoch * 100, epoch * 100 + 100)
        reports = SampledList(epsilon=8.0).encode(truth[part], senders[part], Streams(5), call(epoch)).lists
        sums.append(np.diff(reports.indptr))
    sums = np.concatenate(sums)
    p, keep = SampledList(epsilon=8.0).truthful(columns), SampledList(epsilon=8.0).keep(np.array([60.0]), columns)[0]
    exact = keep * (60 * p + (columns - 1 - 60) * (1 - p))  # at the true degree
    assert exact == pytest.approx(60, rel=1e-12)
    assert abs(sums.mean() - 60) < 5 * math.sqrt((60 + 2 * 1.25**2) / users)


def test_memoized_lists_keep_their_answer_until_they_move():
    protocol, streams = SampledList(epsilon=4.0), Streams(8)
    first = lists_of({1, 2, 3}, {4, 5}, columns=200)
    moved = lists_of({1, 2, 3, 9}, {4, 5}, columns=200)
    old = protocol.encode(first, np.array([50, 51]), streams, call(0, memoized=True)).lists
    new = protocol.encode(moved, np.array([50, 51]), streams, call(0, memoized=True)).lists
    assert (old[[1]] != new[[1]]).nnz == 0
    assert (old[[0]] != new[[0]]).nnz > 0
    fresh = protocol.encode(first, np.array([50, 51]), streams, call(1)).lists
    again = protocol.encode(first, np.array([50, 51]), streams, call(2)).lists
    assert (fresh != again).nnz > 0


def test_audit_no_output_is_more_likely_than_the_budget_allows():
    """Six users, two neighbouring lists ({1} and {1, 2}) of user 0, 40,000 reports of each: for each of the 32 possible
    reports, the Clopper-Pearson bounds on its two probabilities do not contradict a ratio of e^epsilon in either
    direction. 64 tests at level 1e-5 each: a correct mechanism fails with probability under 1e-3."""
    protocol, trials = SampledList(epsilon=1.0), 40_000
    counts = []
    for world, partners in enumerate([{1}, {1, 2}]):
        truth = lists_of(partners, columns=6)
        rows = sparse.csr_array(sparse.vstack([truth] * trials))
        codes = np.zeros(trials, np.int64)
        reports = encode_epochs(protocol, rows, world, trials)
        np.add.at(codes, np.repeat(np.arange(trials), np.diff(reports.indptr)), 1 << (reports.indices - 1))
        counts.append(np.bincount(codes, minlength=32))
    for numerator, denominator in [(0, 1), (1, 0)]:
        low = stats.beta.ppf(1e-5, counts[numerator], trials - counts[numerator] + 1)
        high = stats.beta.ppf(1 - 1e-5, counts[denominator] + 1, trials - counts[denominator])
        assert (np.nan_to_num(low) <= math.exp(1.0) * high).all()
    # the same test has the power to reject a mechanism that spends 1.6 times as much
    low = stats.beta.ppf(1e-5, counts[1], trials - counts[1] + 1)
    high = stats.beta.ppf(1 - 1e-5, counts[0] + 1, trials - counts[0])
    assert (np.nan_to_num(low) > math.exp(0.6) * high).any()


def encode_epochs(protocol, rows, world, trials):
    """Independent reports of user 0: row r as that user would send it in perturbation epoch r."""
    streams, senders, epochs = Streams(100 + world), np.zeros(trials, np.int64), np.arange(trials, dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agents.privacy.ties.sampled_list.row_epochs", lambda truth, call: epochs)
        return protocol.encode(rows, senders, streams, call()).lists
