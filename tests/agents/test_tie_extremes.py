"""Tie protocols at budgets where floats run out: next to no privacy, and next to no information."""

import math

import numpy as np
import pytest
from scipy import sparse

from agents.privacy.ties import TieProtocol
from agents.privacy.ties.sampled_list import SampledList
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import RoundCall
from sim.kernel.component import Problem, build
from sim.kernel.randomness import BLOCK, Streams

COLUMNS, SENDERS = BLOCK + 700, np.arange(6)
KINDS = [
    {"kind": "verification-list"},
    {"kind": "verification-list", "levels": 120},
    {"kind": "binary-list"},
    {"kind": "pair-bits"},
    {"kind": "pair-bits", "count_share": 0.3},
    {"kind": "blink-reports"},
    {"kind": "blink-reports", "evidence": "single-bit"},
    {"kind": "sampled-list"},
    {"kind": "sampled-list", "budget": "edgerefine"},
    {"kind": "group-degrees"},
]


def made(settings, epsilon) -> TieProtocol:
    problems: list[Problem] = []
    ties = build(TieProtocol, {**settings, "epsilon": epsilon}, (), problems)
    assert not problems, problems
    return ties


def truth_for(ties) -> sparse.csr_array:
    """Thirty entries a user on both sides of a block's end; the last user has none."""
    dense = np.zeros((len(SENDERS), COLUMNS), dtype=np.int8)
    for row in range(len(SENDERS) - 1):
        dense[row, BLOCK - 10 + row : BLOCK + 20 + row] = 1 + np.arange(30) % ties.levels
    return sparse.csr_array(dense)


def reported(ties, truth, memoized):
    return ties.encode(truth, SENDERS, Streams(8), RoundCall(1, 0, 0 if memoized else 1, memoized, None))


@pytest.mark.parametrize("memoized", [True, False])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 30.0, 44.0, 50.0, 700.0, 800.0, 1e5])
@pytest.mark.parametrize("settings", KINDS, ids=lambda s: "-".join(map(str, s.values())))
def test_reports_are_well_formed_at_every_budget(settings, epsilon, memoized):
    ties = made(settings, epsilon)
    truth = truth_for(ties)
    reports = reported(ties, truth, memoized)
    lists = reports.lists
    assert lists.shape == truth.shape and np.isfinite(reports.numbers).all()
    assert ((lists.indices >= 0) & (lists.indices < COLUMNS)).all()
    assert ((lists.data >= 1) & (lists.data <= ties.levels)).all()
    rows = np.repeat(SENDERS, np.diff(lists.indptr))
    assert (np.diff(rows.astype(np.int64) * COLUMNS + lists.indices) > 0).all(), "sorted, no entry twice"
    assert not (lists.indices == rows).any()
    if epsilon >= 44.0 and lists.nnz:  # less than 1e-13 is left of the noise
        owned = ties.speaks_for(np.repeat(SENDERS, np.diff(truth.indptr)), truth.indices)
        held, said = truth.toarray(), lists.toarray()
        assert (said[said > 0] == held[said > 0]).all() and lists.nnz == owned.sum()


@pytest.mark.parametrize("settings", KINDS[:6], ids=lambda s: "-".join(map(str, s.values())))
def test_a_tiny_budget_still_reports_the_share_of_noise_that_it_should(settings):
    ties = made(settings, 1e-6)
    truth = truth_for(ties)
    lists = reported(ties, truth, False).lists
    spoken = sum(int(ties.speaks_for(np.full(COLUMNS, s), np.arange(COLUMNS)).sum()) for s in SENDERS)
    share, expected = lists.nnz / spoken, ties.levels / (ties.levels + 1)
    assert abs(share - expected) < 5 * math.sqrt(0.25 / spoken)


def test_probabilities_keep_their_digits_and_their_sum():
    for epsilon in (1e-9, 1.0, 50.0, 700.0, 1e4):
        ties = VerificationList(epsilon=epsilon, levels=5)
        assert ties.keep + 5 * ties.flip == pytest.approx(1.0, abs=1e-15) and ties.flip > 0
        assert ties.false_positive == pytest.approx(TieProtocol.false_positive.fget(ties), rel=1e-14)
    long = SampledList(epsilon=50.0)  # 45 for the bits: 1 - p has no digits there
    assert long.flip(100) == pytest.approx(math.exp(-45), rel=1e-12)
    assert long.keep(np.array([0.0, 3.0]), 100) == pytest.approx([0.0, 1.0])
