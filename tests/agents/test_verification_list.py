"""Verification lists: the replacement form against a plain reference (bit for bit) and against dense randomised response."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats

from agents.privacy.ties.verification_list import VerificationList
from sim.kernel.randomness import BLOCK, Streams


def call(epoch=0):
    return SimpleNamespace(epoch=epoch, phase=0)


def random_truth(n, columns, density, levels, seed):
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, levels + 1, (n, columns)) * (rng.random((n, columns)) < density)
    dense[np.arange(n), np.arange(n)] = 0
    return sparse.csr_array(dense.astype(np.int8))


def plain_row(protocol, truth_row, sender, streams, epoch):
    """One list the slow way: numpy's own Philox, a Python loop over blocks, positions and held entries."""
    columns = len(truth_row)
    replaced = (protocol.levels + 1) * protocol.flip
    out = {}
    for block in range(math.ceil(columns / BLOCK)):
        end = min(columns, (block + 1) * BLOCK)
        words = iter(streams.generator("ties", sender, epoch, block).bit_generator.random_raw(4 * BLOCK + 8))
        column = block * BLOCK - 1
        while True:
            skip_word, symbol_word = int(next(words)), int(next(words))
            u = (skip_word >> 11) * 2.0**-53
            column += 1 + min(BLOCK, math.floor(math.log(1.0 - u) / math.log1p(-replaced)))
            if column >= end:
                break
            symbol = (symbol_word * (protocol.levels + 1)) >> 64
            if symbol and column != sender and truth_row[column] == 0:
                out[column] = symbol
    for column in np.flatnonzero(truth_row):
        level = int(truth_row[column])
        own = streams.generator("ties/held", sender, epoch * 256 + level, int(column)).bit_generator.random_raw(2)
        if (int(own[0]) >> 11) * 2.0**-53 < replaced:
            level = (int(own[1]) * (protocol.levels + 1)) >> 64
        if level:
            out[int(column)] = level
    row = np.zeros(columns, dtype=np.int8)
    for column, level in out.items():
        row[column] = level
    return row


@pytest.mark.parametrize("epsilon, levels, columns", [(5.0, 5, 300), (1.0, 2, 90), (0.2, 1, 60), (6.0, 3, BLOCK + 500)])
def test_kernel_equals_the_plain_version_bit_for_bit(epsilon, levels, columns):
    protocol, streams = VerificationList(epsilon=epsilon, levels=levels), Streams(3)
    truth = random_truth(12, columns, 0.03, levels, 1)
    made = protocol.encode(truth, np.arange(12), streams, call(2)).lists
    dense = truth.toarray()
    for sender in range(12):
        assert (made[[sender]].toarray()[0] == plain_row(protocol, dense[sender], sender, streams, 2)).all()
    assert made.has_sorted_indices and (made.data > 0).all()


def test_a_report_made_alone_equals_its_row():
    protocol, streams = VerificationList(epsilon=3.0, levels=5), Streams(0)
    truth = random_truth(40, 200, 0.05, 5, 2)
    whole = protocol.encode(truth, np.arange(40), streams, call()).lists
    for sender in (0, 17, 39):
        alone = protocol.encode(truth[[sender]], np.array([sender]), streams, call()).lists
        assert (alone != whole[[sender]]).nnz == 0


def test_more_participants_do_not_shift_the_noise_about_the_others():
    protocol, streams = VerificationList(epsilon=2.0, levels=4), Streams(5)
    truth = random_truth(20, 100, 0.1, 4, 3)
    wider = sparse.csr_array(sparse.hstack([truth, sparse.csr_array((20, 7), dtype=np.int8)], format="csr"))
    small = protocol.encode(truth, np.arange(20), streams, call()).lists
    large = protocol.encode(wider, np.arange(20), streams, call()).lists
    assert (small.toarray() == large.toarray()[:, :100]).all()


def test_a_value_held_before_gets_its_old_answer_and_other_values_fresh_ones():
    protocol, streams = VerificationList(epsilon=0.5, levels=5), Streams(5)
    truth = random_truth(30, 400, 0.2, 5, 3)
    once = protocol.encode(truth, np.arange(30), streams, call()).lists.toarray()
    again = protocol.encode(truth, np.arange(30), streams, call()).lists.toarray()
    assert (once == again).all()
    moved = truth.copy()
    moved.data = (moved.data % 5 + 1).astype(np.int8)
    other = protocol.encode(moved, np.arange(30), streams, call()).lists.toarray()
    held = truth.toarray() > 0
    assert (other[~held] == once[~held]).all()
    agreement = (other[held] == once[held]).mean()
    assert agreement < 0.3  # 1/6 for independent answers at this epsilon; 0.85 if the replacements were shared


@pytest.mark.parametrize("epsilon, levels", [(0.7, 5), (3.0, 2), (5.0, 5), (2.0, 1)])
def test_symbols_follow_the_channel(epsilon, levels):
    """Chi-square over all symbols, for zero and for held entries, at alpha 1e-4 each (fixed seed)."""
    protocol = VerificationList(epsilon=epsilon, levels=levels)
    truth = random_truth(300, 600, 0.3, levels, 9)
    made = protocol.encode(truth, np.arange(300), Streams(11), call()).lists.toarray()
    dense = truth.toarray()
    off = ~np.eye(300, 600, dtype=bool)
    assert (made[~off] == 0).all()
    for true in range(levels + 1):
        counts = np.bincount(made[off & (dense == true)], minlength=levels + 1)
        expected = np.full(levels + 1, protocol.flip)
        expected[true] = protocol.keep
        assert stats.chisquare(counts, expected * counts.sum()).pvalue > 1e-4


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 9.0])
@pytest.mark.parametrize("levels", [1, 5, 8])
def test_the_channel_costs_epsilon_exactly(epsilon, levels):
    protocol = VerificationList(epsilon=epsilon, levels=levels)
    channel = np.full((levels + 1, levels + 1), protocol.flip) + np.eye(levels + 1) * (protocol.keep - protocol.flip)
    assert np.allclose(channel.sum(axis=1), 1, atol=1e-12)
    ratio = (channel.max(axis=0) / channel.min(axis=0)).max()
    assert abs(math.log(ratio) - epsilon) < 1e-12


def test_memory_follows_the_noisy_entries():
    """20,000 users at epsilon 7: 8.3 entries a list; a dense matrix would be 400 MB."""
    truth = sparse.csr_array((20_000, 20_000), dtype=np.int8)
    lists = VerificationList(epsilon=9.0, levels=1).encode(truth, np.arange(20_000), Streams(1), call()).lists
    assert abs(lists.nnz / (20_000 * 19_999 / (math.exp(9) + 1)) - 1) < 0.05
