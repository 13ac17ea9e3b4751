"""The ledger against budgets worked by hand."""

import math
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from agents.privacy.features.gaussian import Gaussian
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.labels import PublicLabels, RandomizedResponseLabels
from agents.privacy.ledger import Ledger, largest_of_others
from agents.privacy.ties.group_degrees import GroupDegrees
from agents.privacy.ties.pair_bits import PairBits
from agents.privacy.ties.pairing import reporter
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Protocol, RoundCall
from sim.kernel.errors import InputError

HONEST, PARTICIPANTS = 4, 5


@dataclass
class Users:
    """Four honest users; the fifth participant is injected."""

    lists: sparse.csr_array
    names: np.ndarray = field(default_factory=lambda: np.arange(HONEST, dtype=np.uint64))
    size: int = HONEST

    def digests(self) -> np.ndarray:
        return self.names


def lists_of(*entries: tuple[int, int, int]) -> sparse.csr_array:
    dense = np.zeros((HONEST, PARTICIPANTS), dtype=np.int8)
    for row, column, level in entries:
        dense[row, column] = level
    return sparse.csr_array(dense)


def protocol(ties=None, features=None, unit="list-entry", rounds=3, share=1.0):
    ties = ties or VerificationList(epsilon=4.0, levels=5)
    features = features or Piecewise(epsilon=0.5)
    return Protocol(PARTICIPANTS, 10, 3, features, ties.localised(unit, PARTICIPANTS, share), unit, rounds, 2.0)


def call(of: Protocol, round: int, memoized: bool, phase: int = 0, **broadcast) -> RoundCall:
    return RoundCall(round, phase, 0 if memoized else round, memoized, of, broadcast)


def ledger(of: Protocol, memoized: bool, lifetime=None, label=0.0, rounds=3) -> Ledger:
    return Ledger(of, PARTICIPANTS, rounds, memoized, label, lifetime)


def test_fresh_noise_adds_up_over_rounds_and_kinds():
    of, users = protocol(), Users(lists_of((0, 1, 3)))
    book = ledger(of, memoized=False, label=0.25)
    book.charge_labels(np.array([0, 2]))
    book.charge(1, call(of, 1, False), np.array([0, 1, 4]), users)
    book.charge(2, call(of, 2, False), np.array([0, 3, 4]), users)
    totals = book.totals()
    assert totals.epsilon_features == pytest.approx([1.0, 0.5, 0, 0.5, 0])
    assert totals.epsilon_ties == pytest.approx([8, 4, 0, 4, 0])
    assert totals.epsilon_labels == pytest.approx([0.25, 0, 0.25, 0, 0])
    assert totals.epsilon == pytest.approx([9.25, 4.5, 0.25, 4.5, 0])


def test_split_rounds_cost_the_whole_budget_once():
    of = protocol(features=Piecewise(epsilon=0.5 / 3), share=1 / 3)
    book, users = ledger(of, memoized=False), Users(lists_of())
    for round in (1, 2, 3):
        book.charge(round, call(of, round, False), np.arange(HONEST), users)
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx(np.full(HONEST, 4.0))
    assert book.totals().epsilon_features[:HONEST] == pytest.approx(np.full(HONEST, 0.5))


def test_deltas_add_up():
    of, users = protocol(features=Gaussian(epsilon=1.0, delta=1e-6)), Users(lists_of())
    book = ledger(of, memoized=False)
    for round in (1, 2):
        book.charge(round, call(of, round, False), np.arange(HONEST), users)
    assert book.totals().delta[:HONEST] == pytest.approx(np.full(HONEST, 2e-6))


def test_memoized_noise_is_charged_per_distinct_value():
    of, users = protocol(), Users(lists_of((0, 1, 3), (1, 0, 3), (2, 4, 1)))
    book, everybody = ledger(of, memoized=True), np.arange(HONEST)
    book.charge(1, call(of, 1, True), everybody, users)
    book.charge(2, call(of, 2, True), everybody, users)
    assert not book.moved and book.notes() == []
    assert book.totals().epsilon_features[:HONEST] == pytest.approx(np.full(HONEST, 0.5))
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx(np.full(HONEST, 4.0))
    # User 0 moves entry 1 from 3 to 2 and back to 3 (two values), and entry 2 through 0, 1, 2 (three values).
    # User 2 drops entry 4 (two values). User 1 changes its features.
    users.names = np.array([0, 77, 2, 3], dtype=np.uint64)
    for round, entries in ((3, [(0, 1, 2), (0, 2, 1), (1, 0, 3)]), (4, [(0, 1, 3), (0, 2, 2), (1, 0, 3)])):
        users.lists = lists_of(*entries)
        book.charge(round, call(of, round, True), everybody, users)
    assert book.moved and "not epsilon-LDP" in book.notes()[0]
    assert book.totals().epsilon_features[:HONEST] == pytest.approx([0.5, 1.0, 0.5, 0.5])
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx([12.0, 4.0, 8.0, 4.0])
    users.names = np.arange(HONEST, dtype=np.uint64)
    book.charge(5, call(of, 5, True), everybody, users)
    assert book.totals().epsilon_features[1] == pytest.approx(1.0), "an old value gets its old answer"


def test_a_change_while_a_user_is_silent_counts_when_it_reports_again():
    of, users = protocol(), Users(lists_of((0, 1, 3)))
    book = ledger(of, memoized=True)
    book.charge(1, call(of, 1, True), np.arange(HONEST), users)
    users.lists = lists_of((0, 1, 5))
    book.charge(2, call(of, 2, True), np.array([1, 2]), users)
    assert book.totals().epsilon_ties[0] == pytest.approx(4.0) and not book.moved
    book.charge(3, call(of, 3, True), np.array([0]), users)
    assert book.totals().epsilon_ties[0] == pytest.approx(8.0) and book.moved


def test_an_undirected_tie_is_paid_for_at_both_ends():
    of = protocol(unit="undirected-tie")
    assert of.ties.epsilon == 2.0
    users, book = Users(lists_of((0, 1, 3))), ledger(of, memoized=False)
    book.charge(1, call(of, 1, False), np.arange(HONEST), users)
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx(np.full(HONEST, 4.0))
    book.charge(2, call(of, 2, False), np.array([0]), users)
    # Ties of user 0: 2 rounds at its end and 1 at the other; ties of the others with user 0: the same 3 reports.
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx([6.0, 6.0, 6.0, 6.0])


def test_memoized_undirected_ties_add_the_values_held_at_both_ends():
    of, everybody = protocol(unit="undirected-tie"), np.arange(HONEST)
    book = ledger(of, memoized=True)
    for round, entries in enumerate([[(0, 1, 3), (1, 0, 3)], [(0, 1, 4), (1, 0, 2)]], start=1):
        book.charge(round, call(of, round, True), everybody, Users(lists_of(*entries)))
    # The tie of 0 and 1: two values at each end, 4 x 2.0; all other ties: one value at each end.
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx([8.0, 8.0, 4.0, 4.0])


def test_a_pair_bit_is_charged_to_both_users_of_the_pair_once():
    of, everybody = protocol(ties=PairBits(epsilon=4.0), unit="undirected-tie"), np.arange(HONEST)
    assert of.ties.epsilon == 4.0
    book = ledger(of, memoized=True)
    owner = int(reporter(0, 1))
    for round, level in ((1, 1), (2, 0)):
        book.charge(round, call(of, round, True), everybody, Users(lists_of((owner, 1 - owner, level))))
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx([8.0, 8.0, 4.0, 4.0])
    silent = ledger(of, memoized=True)
    for round, level in ((1, 1), (2, 0)):
        silent.charge(round, call(of, round, True), everybody, Users(lists_of((1 - owner, owner, level))))
    assert silent.totals().epsilon_ties[:HONEST] == pytest.approx(np.full(HONEST, 4.0)), "not its bit to report"


def test_a_noisy_count_is_charged_per_list_and_the_bits_per_entry():
    of, everybody = protocol(ties=PairBits(epsilon=4.0, count_share=0.25)), np.arange(HONEST)
    book = ledger(of, memoized=True)
    mine = next(v for v in range(1, PARTICIPANTS) if int(reporter(0, v)) == 0)
    for round, level in ((1, 0), (2, 1)):
        book.charge(round, call(of, round, True), everybody, Users(lists_of((0, mine, level))))
    # Entry `mine` of user 0: 3.0 for each of two bits, and 1.0 for each of two counts.
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx([8.0, 4.0, 4.0, 4.0])


def test_a_whole_list_adds_its_entries():
    of, everybody = protocol(unit="whole-list"), np.arange(HONEST)
    assert of.ties.epsilon == 1.0
    book = ledger(of, memoized=True)
    book.charge(1, call(of, 1, True), everybody, Users(lists_of((0, 1, 3))))
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx(np.full(HONEST, 4.0))
    book.charge(2, call(of, 2, True), everybody, Users(lists_of((0, 1, 2), (0, 2, 2), (0, 3, 1))))
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx([7.0, 4.0, 4.0, 4.0])


def test_numbers_about_a_list_are_charged_per_list_and_question():
    of, everybody = protocol(ties=GroupDegrees(epsilon=4.0)), np.arange(HONEST)
    book, users, groups = ledger(of, memoized=True), Users(lists_of((0, 1, 1))), np.array([0, 0, 1, 1, 1])
    for round in (1, 2):
        book.charge(round, call(of, round, True), everybody, users)
        book.charge(round, call(of, round, True, 1, groups=groups), everybody, users)
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx(np.full(HONEST, 4.0))
    book.charge(3, call(of, 3, True, 1, groups=1 - groups), everybody, users)
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx(np.full(HONEST, 6.0)), "a new question, a new answer"
    assert not book.moved
    users.lists = lists_of((0, 1, 1), (0, 2, 1))
    book.charge(4, call(of, 4, True), everybody, users)
    assert book.totals().epsilon_ties[:HONEST] == pytest.approx([8.0, 6.0, 6.0, 6.0]) and book.moved


@pytest.mark.parametrize(("lifetime", "memoized", "rounds"), [(13.5, False, 3), (13.4, False, 2), (4.4, True, 0)])
def test_abstention_follows_a_schedule_known_in_advance(lifetime, memoized, rounds):
    book = ledger(protocol(), memoized, lifetime)  # 4.5 a round, 13.5 for three
    assert [bool(book.allowed(r).all()) for r in (1, 2, 3)] == [r <= rounds for r in (1, 2, 3)]
    book.charge(1, call(book.protocol, 1, memoized), np.arange(HONEST), Users(lists_of()))
    assert book.affordable == rounds, "what was really spent changes nothing"


def test_the_worst_case_of_a_memoized_entry_is_every_level():
    of = protocol(ties=VerificationList(epsilon=4.0, levels=1))
    # Two levels, so entries cost at most 8; r rounds cost 0.5 r + 4 min(r, 2).
    assert ledger(of, memoized=True, lifetime=13.0, rounds=50).affordable == 10
    assert ledger(of, memoized=False, lifetime=13.0, rounds=50).affordable == 2


def test_a_label_that_costs_more_than_a_lifetime_is_explained():
    privacy = SimpleNamespace(
        across_rounds="fresh", labels=RandomizedResponseLabels(epsilon=2.0), lifetime_epsilon=1.0, unit="list-entry"
    )
    with pytest.raises(InputError, match=r"privacy.lifetime_epsilon: found 1; allowed: at least 2"):
        Ledger.open(privacy, protocol(), PARTICIPANTS, 3)
    privacy.labels, privacy.lifetime_epsilon = PublicLabels(), None
    assert Ledger.open(privacy, protocol(), PARTICIPANTS, 3).affordable == 3


def test_a_restored_ledger_goes_on_as_before():
    of, everybody = protocol(), np.arange(HONEST)
    whole, first, second = (ledger(of, memoized=True) for _ in range(3))
    steps = [lists_of((0, 1, 3)), lists_of((0, 1, 2)), lists_of((0, 1, 1), (2, 3, 4))]
    for round, lists in enumerate(steps, start=1):
        whole.charge(round, call(of, round, True), everybody, Users(lists))
        (first if round < 3 else second).charge(round, call(of, round, True), everybody, Users(lists))
        if round == 2:
            second.restore(first.state())
    assert second.totals().epsilon.tolist() == whole.totals().epsilon.tolist()
    assert whole.totals().epsilon_ties[:HONEST] == pytest.approx([12.0, 4.0, 8.0, 4.0])


def test_largest_of_others():
    assert largest_of_others(np.array([3.0, 1.0, 2.0])).tolist() == [2.0, 3.0, 3.0]
    assert largest_of_others(np.array([3.0, 3.0])).tolist() == [3.0, 3.0]
    assert largest_of_others(np.array([3.0])).tolist() == [0.0]
    assert math.isclose(largest_of_others(np.zeros(4)).sum(), 0.0)
