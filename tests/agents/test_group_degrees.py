"""Group degrees (LDPGen's reports) and raw lists: exact counts, noise law, phases, and cost in privacy."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats

from agents.privacy.ties.group_degrees import GroupDegrees, group_counts
from agents.privacy.ties.trusted_curator import TrustedCurator
from sim.kernel.randomness import Streams


def call(phase=0, epoch=0, memoized=False, **broadcast):
    return SimpleNamespace(epoch=epoch, phase=phase, memoized=memoized, broadcast=broadcast)


TRUTH = sparse.csr_array(np.array([[0, 2, 1, 0, 5, 0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]], np.int8))


def test_counts_by_hand():
    groups = np.array([0, 1, 1, 2, -1, 0])
    # user 0 is tied to 1, 2 (group 1) and 4 (no group); user 1 to 0 (group 0); user 2 to nobody
    assert group_counts(TRUTH, groups, 3).tolist() == [[0, 2, 0], [1, 0, 0], [0, 0, 0]]


def test_phases_ask_about_random_groups_then_published_ones():
    protocol, streams = GroupDegrees(epsilon=1e6), Streams(1)
    partition = protocol.groups(call(0), 6)
    first = protocol.encode(TRUTH, np.array([0, 1, 2]), streams, call(0))
    assert np.rint(first.numbers).tolist() == group_counts(TRUTH, partition, 2).tolist()
    assert first.lists.nnz == 0 and first.lists.shape == (3, 6)
    second = protocol.encode(TRUTH, np.array([0, 1, 2]), streams, call(1, groups=np.array([3, 0, 1, 2, 1, 0])))
    assert np.rint(second.numbers).tolist() == [[1, 2, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]


def test_the_first_partition_is_public_balanced_and_the_same_for_everybody():
    groups = GroupDegrees(epsilon=1.0, first_groups=3).groups(call(0), 100)
    assert sorted(np.bincount(groups)) == [33, 33, 34]
    assert np.abs(np.diff(groups)).max() == 2 and (groups != np.arange(100) % 3).any()


def test_who_skips_the_noise_sends_exact_numbers():
    sent = GroupDegrees(epsilon=1.0).verbatim(TRUTH, np.array([0, 1, 2]), call(1, groups=np.array([3, 0, 1, 2, 1, 0])))
    assert sent.numbers.tolist() == [[1, 2, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]] and sent.lists.nnz == 0


def test_each_phase_costs_half():
    protocol = GroupDegrees(epsilon=3.0)
    assert [protocol.spent(phase) for phase in range(3)] == [1.5, 1.5, 0.0]
    assert protocol.localised("undirected-tie", 10, 1.0).epsilon == 1.5


def test_noise_has_its_law_and_belongs_to_its_sender():
    protocol, streams = GroupDegrees(epsilon=0.5, first_groups=50), Streams(9)
    truth = sparse.csr_array((400, 60), dtype=np.int8)
    whole = protocol.encode(truth, np.arange(400), streams, call(0, epoch=4)).numbers
    assert stats.kstest(whole.ravel(), stats.laplace(scale=4.0).cdf).pvalue > 1e-4
    alone = protocol.encode(truth[[17]], np.array([17]), streams, call(0, epoch=4)).numbers
    assert (alone[0] == whole[17]).all()
    later = protocol.encode(truth, np.arange(400), streams, call(0, epoch=5)).numbers
    assert abs(np.corrcoef(whole.ravel(), later.ravel())[0, 1]) < 0.05


def test_a_memoized_answer_holds_for_the_same_list_and_grouping_only():
    protocol, streams = GroupDegrees(epsilon=1.0), Streams(9)
    senders, groups = np.array([0, 1, 2]), np.array([0, 1, 1, 0, 1, 0])

    def ask(truth, groups):
        return protocol.encode(truth, senders, streams, call(1, 0, True, groups=groups)).numbers

    first = ask(TRUTH, groups)
    assert (ask(TRUTH, groups) == first).all()
    moved = TRUTH.tolil()
    moved[0, 3] = 1
    after = ask(sparse.csr_array(moved.tocsr()), groups)
    assert (after[1:] == first[1:]).all() and not np.isin(after[0] - first[0], [0.0, 1.0]).any()
    other = ask(TRUTH, 1 - groups)
    assert not np.isin(np.rint((other[:, ::-1] - first) * 1e9), [0]).any()


@pytest.mark.parametrize("phase", [0, 1])
def test_audit_one_entry_costs_at_most_half_of_epsilon_a_phase(phase):
    """Six users, two neighbouring lists ({1} and {1, 2}) of user 0, 20,000 reports of each. For 41 thresholds on the
    number that the lists differ in, Clopper-Pearson bounds (level 1e-5, 164 tests) must not contradict the ratio
    e^(epsilon/2)."""
    protocol, trials = GroupDegrees(epsilon=1.0), 20_000
    groups = np.array([0, 0, 1, 0, 1, 0])
    samples, epochs = [], np.arange(trials, dtype=np.uint64)  # row r is user 0's report in perturbation epoch r
    for world, partners in enumerate([[1], [1, 2]]):
        dense = np.zeros((1, 6), np.int8)
        dense[0, partners] = 1
        truth = sparse.csr_array(sparse.vstack([sparse.csr_array(dense)] * trials))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("agents.privacy.ties.group_degrees.row_epochs", lambda *_: epochs)
            ask = call(phase, groups=groups)
            numbers = protocol.encode(truth, np.zeros(trials, np.int64), Streams(50 + world), ask).numbers
        samples.append(numbers)
    differing = np.flatnonzero(np.abs(samples[0].mean(axis=0) - samples[1].mean(axis=0)) > 0.5)
    assert len(differing) == 1
    x, y = samples[0][:, differing[0]], samples[1][:, differing[0]]
    rejected_at_a_third = False
    for threshold in np.linspace(-4, 6, 41):
        for a, b in [(x, y), (y, x), (-x, -y), (-y, -x)]:
            hits, others = int((a > threshold).sum()), int((b > threshold).sum())
            low = stats.beta.ppf(1e-5, hits, trials - hits + 1) if hits else 0.0
            high = stats.beta.ppf(1 - 1e-5, others + 1, trials - others) if others < trials else 1.0
            assert low <= math.exp(0.5) * high
            rejected_at_a_third |= bool(low > math.exp(0.33) * high)
    assert rejected_at_a_third  # so the test can tell epsilon/2 from epsilon/3


def test_a_trusted_curator_gets_the_list_as_it_is():
    reports = TrustedCurator(epsilon=1.0).encode(TRUTH, np.array([0, 1, 2]), Streams(0), call())
    assert (reports.lists.toarray() == (TRUTH.toarray() > 0)).all() and reports.lists.data.max() == 1
    assert TrustedCurator(epsilon=2.0).localised("undirected-tie", 10, 0.5).epsilon == 1.0
    assert TrustedCurator.curator == "trusted" and not TrustedCurator.two_ended
