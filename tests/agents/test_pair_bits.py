"""Binary reports: the kernel against a plain reference (bit for bit), the channel, and who speaks for a pair."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy import sparse, stats

from agents.privacy.ties._bit_kernels import owns
from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.pairing import reporter
from sim.kernel.randomness import BLOCK, Streams


def call(epoch=0):
    return SimpleNamespace(epoch=epoch, phase=0, memoized=False)


def random_ties(rows, columns, density, seed):
    """Symmetric true lists (levels 1..3) over `columns` ids; the first `rows` of them."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((columns, columns)) < density, 1)
    levels = rng.integers(1, 4, (columns, columns)) * (upper | upper.T)
    return sparse.csr_array(levels[:rows].astype(np.int8))


def plain_row(protocol, truth_row, sender, streams, epoch):
    """One list the slow way: numpy's own Philox, a Python loop over skips, held ties one by one."""
    columns, owned_only = len(truth_row), protocol.form == "pair-bits"
    row = np.zeros(columns, dtype=np.int8)
    for block in range(math.ceil(columns / BLOCK)):
        end = min(columns, (block + 1) * BLOCK)
        draws = iter(streams.generator("ties/bits", sender, epoch, block).random(BLOCK + 8))
        column = block * BLOCK - 1
        while True:
            column += 1 + min(BLOCK, math.floor(math.log(1.0 - next(draws)) / math.log1p(-protocol.flip)))
            if column >= end:
                break
            if column != sender and truth_row[column] == 0:
                row[column] = 1
    for column in np.flatnonzero(truth_row):
        own = streams.generator("ties/bits/held", sender, epoch * 256 + 1, int(column)).random()
        row[column] = own >= protocol.flip
    if owned_only:
        row[reporter(np.full(columns, sender), np.arange(columns)) != sender] = 0
    return row


@pytest.mark.parametrize("kind", [PairBits, BinaryList])
@pytest.mark.parametrize("epsilon, columns", [(1.0, 120), (0.1, 60), (5.0, 400), (6.0, BLOCK + 300)])
def test_kernel_equals_the_plain_version_bit_for_bit(kind, epsilon, columns):
    protocol, streams = kind(epsilon=epsilon), Streams(3)
    truth = sparse.csr_array((np.random.default_rng(1).random((9, columns)) < 0.05).astype(np.int8))
    truth.setdiag(0)
    truth.eliminate_zeros()
    made = protocol.encode(truth, np.arange(9), streams, call(2)).lists
    for sender in range(9):
        assert (made[[sender]].toarray()[0] == plain_row(protocol, truth.toarray()[sender], sender, streams, 2)).all()
    assert made.has_sorted_indices and (made.data == 1).all() and made.dtype == np.int8


@pytest.mark.parametrize("kind", [PairBits, BinaryList])
def test_a_report_made_alone_equals_its_row(kind):
    protocol, streams = kind(epsilon=1.5), Streams(0)
    truth = random_ties(50, 50, 0.1, 2)
    whole = protocol.encode(truth, np.arange(50), streams, call()).lists
    for sender in (0, 23, 49):
        alone = protocol.encode(truth[[sender]], np.array([sender]), streams, call()).lists
        assert (alone != whole[[sender]]).nnz == 0


@pytest.mark.parametrize("kind", [PairBits, BinaryList])
def test_more_participants_do_not_shift_the_noise_about_the_others(kind):
    protocol, streams = kind(epsilon=1.0), Streams(5)
    truth = random_ties(30, 30, 0.1, 3)
    wider = sparse.csr_array(sparse.hstack([truth, sparse.csr_array((30, 7), dtype=np.int8)], format="csr"))
    small = protocol.encode(truth, np.arange(30), streams, call()).lists.toarray()
    assert (small == protocol.encode(wider, np.arange(30), streams, call()).lists.toarray()[:, :30]).all()


def test_the_two_values_of_an_entry_have_independent_noise():
    """If the flips were shared, the two answers would differ always; independent ones agree with 2 p q (alpha 1e-4)."""
    protocol, streams = BinaryList(epsilon=0.4), Streams(8)
    full = sparse.csr_array(1 - np.eye(200, dtype=np.int8))
    ones = protocol.encode(full, np.arange(200), streams, call()).lists.toarray()
    zeros = protocol.encode(sparse.csr_array((200, 200), dtype=np.int8), np.arange(200), streams, call()).lists
    agree = int((ones == zeros.toarray())[~np.eye(200, dtype=bool)].sum())
    expected = 2 * protocol.flip * (1 - protocol.flip)
    assert stats.binomtest(agree, 200 * 199, expected).pvalue > 1e-4


@pytest.mark.parametrize("kind", [PairBits, BinaryList])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_bits_follow_the_channel_of_dense_randomised_response(kind, epsilon):
    """Chi-square on the 2 x 2 table (true bit, reported bit) over the reported entries, alpha 1e-4, fixed seed."""
    n, protocol = 500, kind(epsilon=epsilon)
    truth = random_ties(n, n, 0.3, 9)
    made = protocol.encode(truth, np.arange(n), Streams(11), call()).lists.toarray()
    rows, columns = np.indices((n, n))
    mine = rows != columns
    if kind is PairBits:
        mine &= reporter(rows, columns) == rows
    assert (made[~mine] == 0).all() and np.isin(made, (0, 1)).all()
    for true in (False, True):
        bits = made[mine & ((truth.toarray() > 0) == true)]
        expected = (1 - protocol.flip) if true else protocol.flip
        assert stats.binomtest(int(bits.sum()), len(bits), expected).pvalue > 1e-4
        flips = np.bincount(np.add.reduceat(bits, np.arange(0, len(bits) - 7, 8)), minlength=9)[:9]
        law = stats.binom.pmf(np.arange(9), 8, expected)
        thick = law * flips.sum() > 5
        observed, predicted = np.append(flips[thick], flips[~thick].sum()), np.append(law[thick], law[~thick].sum())
        keep = predicted > 0
        assert stats.chisquare(observed[keep], predicted[keep] / predicted.sum() * flips.sum()).pvalue > 1e-4


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_both_ends_name_the_same_reporter(u, v):
    owner = int(reporter(u, v))
    assert owner in (u, v) and owner == int(reporter(v, u))
    if u != v:
        assert owns(u, v) == (owner == u) and owns(v, u) == (owner == v)


def test_the_kernel_and_the_server_agree_on_owners():
    @njit
    def table(n):
        return np.array([[u != v and owns(u, v) for v in range(n)] for u in range(n)])

    rows, columns = np.indices((300, 300))
    assert (table(300) == ((reporter(rows, columns) == rows) & (rows != columns))).all()


def test_users_own_half_of_their_pairs():
    """Each user's number of owned pairs is binomial(n - 1, 1/2); the largest of 1,000 deviations stays within 5 sd."""
    rows, columns = np.indices((1000, 1000))
    owned = ((reporter(rows, columns) == rows) & (rows != columns)).sum(axis=1)
    assert owned.sum() == 1000 * 999 // 2
    assert np.abs(owned - 999 / 2).max() < 5 * math.sqrt(999) / 2


def test_counts_add_up_to_the_ties_and_the_bits_use_the_rest_of_the_budget():
    truth = random_ties(400, 400, 0.05, 4)
    protocol = PairBits(epsilon=2.0, count_share=0.25)
    reports = protocol.encode(truth, np.arange(400), Streams(2), call())
    assert reports.numbers.shape == (400, 1)
    assert protocol.bit_epsilon + protocol.count_epsilon == pytest.approx(2.0)
    assert protocol.flip == pytest.approx(1 / (1 + math.exp(1.5)))
    sd = math.sqrt(400 * 2) / 0.5  # 400 Laplace draws of scale 1 / 0.5
    assert abs(reports.numbers.sum() - truth.nnz / 2) < 4 * sd
    rows, columns = truth.nonzero()
    owned = np.bincount(rows[reporter(rows, columns) == rows], minlength=400)
    assert stats.kstest(reports.numbers[:, 0] - owned, stats.laplace(scale=2.0).cdf).pvalue > 1e-4
    alone = protocol.encode(truth[[7]], np.array([7]), Streams(2), call())
    assert alone.numbers[0, 0] == reports.numbers[7, 0]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_bit_costs_epsilon_exactly(epsilon):
    q = PairBits(epsilon=epsilon).flip
    assert math.log((1 - q) / q) == pytest.approx(epsilon, abs=1e-12)


def test_units_convert_the_budget():
    assert PairBits(epsilon=2.0).localised("undirected-tie", 11, 1.0).epsilon == 2.0
    assert BinaryList(epsilon=2.0).localised("undirected-tie", 11, 0.5).epsilon == 0.5
    assert BinaryList(epsilon=2.0).localised("whole-list", 11, 1.0).epsilon == pytest.approx(0.2)
