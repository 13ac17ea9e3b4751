"""Blink's reports: who speaks, what is noisy, and what each unit of privacy is charged."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats

from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.blink_reports import BlinkReports
from agents.privacy.ties.pair_bits import PairBits
from sim.kernel.randomness import Streams

CALL = SimpleNamespace(epoch=3, phase=0, memoized=False)


def truth_of(n, density, seed):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    return sparse.csr_array((upper | upper.T).astype(np.int8))


@pytest.mark.parametrize("evidence, plain", [("two-list", BinaryList), ("single-bit", PairBits)])
def test_bits_are_those_of_the_plain_protocol_at_the_rest_of_the_budget(evidence, plain):
    truth, protocol = truth_of(120, 0.1, 1), BlinkReports(epsilon=2.0, delta=0.25, evidence=evidence)
    made = protocol.encode(truth, np.arange(120), Streams(4), CALL)
    expected = plain(epsilon=1.5).encode(truth, np.arange(120), Streams(4), CALL).lists
    assert (made.lists != expected).nnz == 0 and protocol.flip == pytest.approx(1 / (1 + math.exp(1.5)))
    assert protocol.two_ended is (evidence == "two-list")
    senders, others = np.indices((20, 20))
    assert (protocol.speaks_for(senders, others) == plain(epsilon=1.5).speaks_for(senders, others)).all()


@pytest.mark.parametrize("evidence", ["two-list", "single-bit"])
def test_degrees_carry_laplace_noise(evidence):
    """Kolmogorov-Smirnov against the Laplace law at alpha 1e-4, and the row alone equals the row among all."""
    truth, protocol = truth_of(1500, 0.01, 2), BlinkReports(epsilon=2.0, delta=0.25, evidence=evidence)
    made = protocol.encode(truth, np.arange(1500), Streams(4), CALL)
    noise = made.numbers[:, 0] - np.diff(truth.indptr)
    assert stats.kstest(noise, stats.laplace(scale=2.0).cdf).pvalue > 1e-4
    alone = protocol.encode(truth[[9]], np.array([9]), Streams(4), CALL)
    assert alone.numbers[0] == made.numbers[9] and (alone.lists != made.lists[[9]]).nnz == 0


def test_a_tie_costs_the_whole_budget_in_each_unit():
    two, one = (BlinkReports(epsilon=2.0, delta=0.2, evidence=kind) for kind in ("two-list", "single-bit"))
    entry = one.localised("list-entry", 50, 1.0)
    assert entry.degree_epsilon + entry.bit_epsilon == pytest.approx(2.0)  # one degree, one bit
    tie = one.localised("undirected-tie", 50, 1.0)
    assert 2 * tie.degree_epsilon + tie.bit_epsilon == pytest.approx(2.0)  # two degrees, one bit
    assert tie.bit_epsilon == pytest.approx(1.6) and tie.spent(0) == pytest.approx(2.0)
    both = two.localised("undirected-tie", 50, 1.0)
    assert 2 * (both.degree_epsilon + both.bit_epsilon) == pytest.approx(2.0)  # two degrees, two bits
    assert both.spent(0) == pytest.approx(1.0) and both.two_ended
    assert one.localised("whole-list", 51, 0.5).epsilon == pytest.approx(0.02)


@pytest.mark.parametrize(
    "bad", [{"delta": 0.0}, {"delta": 1.0}, {"evidence": "both"}, {"epsilon": -1.0}, {"degree_ends": 3}]
)
def test_bad_options_are_refused(bad):
    with pytest.raises(ValueError):
        BlinkReports(**{"epsilon": 1.0, **bad})
