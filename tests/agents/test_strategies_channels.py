"""How claims leave the device."""

import numpy as np
import pytest
from coalitions import HONEST, coalition, opened, public
from scipy import sparse

from agents.privacy.ties import TieProtocol, TieReports
from agents.privacy.ties.base import no_lists
from agents.privacy.ties.blink_reports import BlinkReports
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.pairing import reporter
from agents.privacy.ties.verification_list import VerificationList
from sim.kernel.component import FAMILIES, build
from sim.kernel.randomness import Streams

SPARSE = {"targets": {"kind": "cyclic", "per_attacker": 3}, "ties": {"kind": "ring"}}


def sent(channel, protocol=None, **more):
    attackers = coalition(claims={"kind": "maximal", "channel": channel, **more}, **SPARSE)
    call = opened(protocol=protocol)
    plan = attackers.plan(call)
    return plan, attackers.encode(plan, call)


def test_compliant_claims_go_through_the_protocols_client():
    plan, batch = sent("compliant")
    expected = public().ties.encode(plan.lists, plan.members, Streams(1), opened())
    assert (batch.lists != expected.lists).nnz == 0
    assert (batch.lists != plan.lists).nnz > 0


def test_bypass_sends_what_is_intended():
    plan, batch = sent("bypass")
    assert (batch.lists != plan.lists).nnz == 0
    assert np.diff(batch.lists.indptr).tolist() == [5] * 6  # three targets, two neighbours in the ring


@pytest.mark.parametrize("spurious", ["maximal", "uniform"])
def test_camouflage_adds_exactly_the_expected_number_of_spurious_entries(spurious):
    plan, batch = sent("camouflage", spurious=spurious)
    q0 = 5 / (np.exp(3.0) + 5)
    assert np.diff(batch.lists.indptr).tolist() == [5 + round(54 * q0)] * 6  # 59 entries, 5 of them meant
    claimed, reported = plan.lists.toarray(), batch.lists.toarray()
    assert (reported[claimed > 0] == 5).all()
    extra = np.where(claimed > 0, 0, reported)
    own = {m: set(plan.asked[1][plan.asked[0] == m].tolist()) for m in plan.members.tolist()}
    for row, member in enumerate(plan.members.tolist()):
        aimed = set(np.flatnonzero(extra[row]).tolist())
        assert aimed <= set(plan.victims.tolist()) - own[member]  # 15 other victims are more than the 11 wanted
    assert set(extra[extra > 0].tolist()) == ({5} if spurious == "maximal" else {1, 2, 3, 4, 5})


def test_camouflage_falls_back_on_anybody_when_victims_run_out():
    attackers = coalition(
        targets={"kind": "cyclic", "per_attacker": 1},
        ties={"kind": "none"},
        claims={"kind": "maximal", "channel": "camouflage"},
    )
    call = opened()
    plan = attackers.plan(call)
    batch = attackers.encode(plan, call)
    others = [set(plan.victims.tolist()) <= set(batch.lists[[row]].indices.tolist()) for row in range(6)]
    assert all(others)
    assert np.diff(batch.lists.indptr).tolist() == [1 + round(58 * 5 / (np.exp(3.0) + 5))] * 6
    assert not (batch.lists.toarray()[np.arange(6), plan.members]).any()


def test_camouflage_moves_with_the_epoch_as_honest_noise_does():
    attackers = coalition(claims={"kind": "maximal", "channel": "camouflage"}, **SPARSE)
    kept = [attackers.encode(attackers.plan(opened(round)), opened(round)).lists for round in (1, 2)]
    assert (kept[0] != kept[1]).nnz == 0
    calls = [opened(round, memoized=False) for round in (3, 4)]
    fresh = [attackers.encode(attackers.plan(call), call).lists for call in calls]
    assert (fresh[0] != fresh[1]).nnz > 0


def test_bypass_and_camouflage_keep_to_the_pairs_that_a_sender_speaks_for():
    protocol = public(ties=PairBits(epsilon=2.0))
    for channel in ("bypass", "camouflage"):
        plan, batch = sent(channel, protocol)
        rows = np.repeat(plan.members, np.diff(batch.lists.indptr))
        assert len(rows) and (reporter(rows, batch.lists.indices) == rows).all()
    spoken = [(reporter(np.full(60, m), np.arange(60)) == m).sum() - 1 for m in plan.members]  # but for itself
    meant = np.array([sum(reporter(m, ids) == m) for m, ids in zip(plan.members, np.split(plan.lists.indices, 6))])
    expected = meant + np.round((np.array(spoken) - meant) / (1 + np.exp(2.0)))
    found = np.diff(batch.lists.indptr)
    # an intended entry of a pair that the other end speaks for is dropped, and is none of the spurious ones
    assert found.tolist() == expected.tolist()


class Counted(TieProtocol):
    """Two phases: two noisy degrees, then the list and one more."""

    form = "counted"
    phases = 2

    def encode(self, truth, senders, streams, call):
        width = 2 if call.phase == 0 else 1
        noisy = np.diff(truth.indptr)[:, None] + np.full(width, 0.5)
        return TieReports(no_lists(*truth.shape) if call.phase == 0 else truth, noisy)


def test_bypass_answers_questions_for_numbers_with_the_intended_degree():
    protocol = public(ties=Counted(epsilon=1.0))
    attackers = coalition(claims={"kind": "maximal", "channel": "bypass"}, **SPARSE)
    plan = attackers.plan(opened(protocol=protocol))
    first, second = (attackers.encode(plan, opened(phase=phase, protocol=protocol)) for phase in (0, 1))
    assert first.numbers.tolist() == [[5.0, 5.0]] * 6
    assert first.lists.nnz == 0 and first.features.nnz == 18
    assert second.numbers.tolist() == [[5.0]] * 6
    assert (second.lists != plan.lists).nnz == 0
    assert second.features.nnz == 0  # features travel once


def test_a_count_sent_around_the_noise_is_that_of_the_claims_one_speaks_for():
    plan, batch = sent("bypass", public(ties=PairBits(epsilon=2.0, count_share=0.5)))
    owned = [
        sum(int(reporter(m, v)) == m for v in ids) for m, ids in zip(plan.members, np.split(plan.lists.indices, 6))
    ]
    assert batch.numbers[:, 0].tolist() == owned == np.diff(batch.lists.indptr).tolist()
    assert sum(owned) < plan.lists.nnz
    assert sent("bypass", public(ties=PairBits(epsilon=2.0)))[1].numbers.shape == (6, 0)


@pytest.mark.parametrize("ties", [BlinkReports(epsilon=2.0), PairBits(epsilon=2.0, count_share=0.5)])
def test_made_up_entries_are_not_counted_in_the_numbers_as_honest_noise_is_not(ties):
    _, plain = sent("bypass", public(ties=ties))
    _, batch = sent("camouflage", public(ties=ties))
    assert batch.lists.nnz > 2 * plain.lists.nnz
    assert batch.numbers.tolist() == plain.numbers.tolist()


def test_verbatim_by_hand():
    truth = sparse.csr_array(np.array([[0, 3, 0, 1], [0, 0, 0, 0]], dtype=np.int8))
    senders = np.array([0, 2])
    reports = VerificationList(epsilon=1.0, levels=5).verbatim(truth, senders, opened())
    assert reports.lists.toarray().tolist() == [[0, 3, 0, 1], [0, 0, 0, 0]]
    assert reports.lists.dtype == np.int8 and reports.numbers.shape == (2, 0)


def test_expected_false_positives_of_the_base_are_those_of_the_mechanism():
    mechanism = VerificationList(epsilon=2.0, levels=4)
    assert mechanism.false_positive == pytest.approx(4 / (np.exp(2) + 4))
    assert TieProtocol.false_positive.fget(mechanism) == pytest.approx(mechanism.false_positive)
    assert PairBits(epsilon=2.0, count_share=0.5).false_positive == pytest.approx(1 / (1 + np.e))


def test_victims_of_nobody_are_no_target_of_camouflage_when_there_are_enough():
    plan, batch = sent("camouflage")
    strangers = np.setdiff1d(np.arange(HONEST), plan.victims)
    assert batch.lists[:, strangers].nnz == 0


PROTOCOLS = sorted(
    kind.kind for kind in FAMILIES["privacy.ties"].classes() if kind.kind != "auto" and ":" not in kind.kind
)


@pytest.mark.parametrize("channel", ["compliant", "bypass", "camouflage"])
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_every_tie_protocol_takes_every_channel(kind, channel):
    """What an attacker sends has the shape of what an honest user sends in the same phase."""
    ties = build(TieProtocol, {"kind": kind, **({} if kind == "none" else {"epsilon": 3.0})}, (), [])
    protocol = public(ties=ties)
    attackers = coalition(claims={"kind": "maximal", "channel": channel}, **SPARSE)
    plan = attackers.plan(opened(protocol=protocol))
    for phase in range(ties.phases):
        call = opened(phase=phase, protocol=protocol, groups=np.arange(60) % 4)
        batch = attackers.encode(plan, call)
        honest = ties.encode(no_lists(1, 60), np.array([0]), Streams(1), call) if ties.form != "none" else None
        assert batch.lists.shape == (6, 60) and batch.lists.dtype == np.int8
        assert ((batch.lists.data >= 1) & (batch.lists.data <= ties.levels)).all()
        assert batch.numbers.shape == (6, honest.numbers.shape[1] if honest else 0)
        assert np.isfinite(batch.numbers).all()
        alone = attackers.encode(plan, call, only=plan.members[2:3])
        assert (alone.lists != batch.lists[[2]]).nnz == 0 and (alone.numbers == batch.numbers[2]).all()
