"""Privacy of whole reports: all six users' messages in two worlds that differ in one undirected tie.

For an event S of the joint reports, P1(S) / P0(S) <= e^epsilon must hold. The event is the strongest there is: a threshold
on the likelihood ratio of everything sent (six thresholds, fixed beforehand). Clopper-Pearson limits at alpha 1e-5 a side
bound epsilon from below: a sound mechanism fails with probability at most 1.2e-4, and the bound must come close to
epsilon, so the audit has teeth.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats

from agents.privacy.ties.binary_list import BinaryList
from agents.privacy.ties.blink_reports import BlinkReports
from agents.privacy.ties.pair_bits import PairBits
from sim.kernel.randomness import Streams

RUNS = 5000
TIES = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5)]
DIFFERENT = (1, 4)


def world(ties):
    matrix = np.zeros((6, 6), dtype=np.int8)
    for u, v in ties:
        matrix[u, v] = matrix[v, u] = 1
    return sparse.csr_array(matrix)


WORLDS = [world(TIES), world([*TIES, DIFFERENT])]


def transcripts(protocol, truth, seed):
    """(runs, 36 bits) and (runs, 6 numbers): what all six users send, with fresh noise each run."""
    bits, numbers = np.zeros((RUNS, 36), dtype=np.int8), []
    for run in range(RUNS):
        call = SimpleNamespace(epoch=run, phase=0, memoized=False)
        made = protocol.encode(truth, np.arange(6), Streams(seed), call)
        bits[run] = made.lists.toarray().ravel()
        numbers.append(made.numbers)
    return bits, np.array(numbers)[:, :, 0] if protocol.encode(
        truth, np.arange(6), Streams(0), call
    ).numbers.size else None


def log_ratio(protocol, bits, numbers):
    """Log likelihood ratio of a transcript, second world over first, from the protocol's stated laws."""
    one = math.log((1 - protocol.flip) / protocol.flip)
    u, v = DIFFERENT
    total = np.zeros(len(bits))
    for giver, other in ((u, v), (v, u)):
        if protocol.speaks_for(giver, other):
            total += np.where(bits[:, giver * 6 + other] == 1, one, -one)
    if numbers is not None:
        counts = [numbers_of(protocol, truth) for truth in WORLDS]
        scale = noise_epsilon(protocol)
        total += scale * (np.abs(numbers - counts[0]) - np.abs(numbers - counts[1])).sum(axis=1)
    return total


def numbers_of(protocol, truth):
    """The true numbers behind a report: degrees, or ties that a user speaks for."""
    if isinstance(protocol, BlinkReports):
        return np.diff(truth.indptr)
    rows, columns = truth.nonzero()
    return np.bincount(rows[protocol.speaks_for(rows, columns)], minlength=6)


def noise_epsilon(protocol):
    return protocol.degree_epsilon if isinstance(protocol, BlinkReports) else protocol.count_epsilon


def lower_bound(hits, misses):
    """Largest epsilon that the counts of an event in the two worlds rule out, at alpha 1e-5 a side."""
    low = stats.beta.ppf(1e-5, hits, RUNS - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - 1e-5, misses + 1, RUNS - misses) if misses < RUNS else 1.0
    return math.log(low / high) if low > 0 else -math.inf


def audited(protocol):
    """The best lower bound over six events: three thresholds in either direction."""
    ratios = [
        log_ratio(protocol, *transcripts(protocol, truth, seed)) for seed, truth in ((1, WORLDS[0]), (2, WORLDS[1]))
    ]
    best = -math.inf
    for cut in (0.0, 0.5 * protocol.epsilon, 0.9 * protocol.epsilon):
        for sign in (1, -1):
            events = [int((sign * ratio >= cut - 1e-9).sum()) for ratio in ratios]
            best = max(best, lower_bound(*(events[::-1] if sign == 1 else events)))
    return best


@pytest.mark.parametrize(
    "asked, tightness",
    [
        (PairBits(epsilon=1.2), 0.8),
        (BinaryList(epsilon=1.2), 0.6),
        (PairBits(epsilon=1.2, count_share=0.4), 0.4),
        (BlinkReports(epsilon=1.2, delta=0.3, evidence="single-bit"), 0.4),
        (BlinkReports(epsilon=1.2, delta=0.3, evidence="two-list"), 0.3),
    ],
    ids=["pair-bits", "binary-list", "pair-bits with counts", "blink single-bit", "blink two-list"],
)
def test_one_tie_costs_the_undirected_budget_and_no_more(asked, tightness):
    bound = audited(asked.localised("undirected-tie", 6, 1.0))
    assert tightness * asked.epsilon < bound <= asked.epsilon


def test_the_audit_catches_a_budget_that_was_not_halved():
    """Two lists at the whole epsilon each spend twice of it: the bound passes epsilon."""
    assert audited(BinaryList(epsilon=1.2)) > 1.2


@pytest.mark.parametrize("kind", [PairBits, BinaryList])
def test_the_rest_of_the_transcript_does_not_move(kind):
    """Each entry about another pair is one with the same probability in both worlds (alpha 1e-4 over all of them)."""
    made = [
        transcripts(kind(epsilon=1.0), truth, seed)[0].sum(axis=0) for seed, truth in ((5, WORLDS[0]), (6, WORLDS[1]))
    ]
    u, v = DIFFERENT
    others = [c for c in range(36) if c not in (u * 6 + v, v * 6 + u)]
    for cell in others:
        table = [[made[w][cell], RUNS - made[w][cell]] for w in (0, 1)]
        if sum(table[0]) and table[0][0] + table[1][0]:
            assert stats.fisher_exact(table).pvalue > 1e-4 / len(others)
