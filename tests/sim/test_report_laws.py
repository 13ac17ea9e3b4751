"""The law of what leaves a device, through the whole client path of the engine, in two neighbouring worlds of 32 users.

In both worlds user i is tied to i + 2 and i - 2; in one of them also to its partner i ^ 1. So every user holds a list
that differs in one entry between the worlds, and its report is one draw. Each test bounds epsilon from below by fresh
draws (Clopper-Pearson, false alarm 1e-6 a test, fixed seeds) and asks that the bound stays under what is claimed, and
that the same draws refute a smaller claim: a test that could not tell the worlds apart would prove nothing.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from tiny_worlds import simulation

from agents.privacy.audit.epsilon import Effort, audit_epsilon
from agents.privacy.audit.rows import NO_VIOLATION, VIOLATES
from sim.kernel.randomness import Streams

USERS = 32
RING = [[i, (i + 2) % USERS] for i in range(USERS)]
PARTNERS = [[i, i + 1] for i in range(0, USERS, 2)]
EPSILON = 1.0
EFFORT = Effort(pilot=5_000, most=8_000, chunk=8_000)


class EngineWorld:
    """Draws of a run's reports, a row a user: the entry about the partner, the nearest other entries in order of
    distance, how many entries there are, all numbers of all phases, and the features if they are private.

    `tied` says round by round whether the partner is held. One round: fresh noise, a draw a round. Several: memoized
    noise, a draw a seed, the observations of all rounds side by side.
    """

    def __init__(self, tied, privacy, seed=1, **graph):
        across = "fresh" if len(tied) == 1 else "memoized"
        server = {"refinement": {"kind": "ldpgen" if privacy["ties"]["kind"] == "group-degrees" else "none"}}
        privacy = {**privacy, "across_rounds": across}
        runs = [
            simulation(RING + PARTNERS * held, USERS, graph=graph, privacy=privacy, server=server, seed=seed)
            for held in tied
        ]
        self.run, self.lists, self.label = runs[0], [run.population.lists for run in runs], str(tied)
        self.places = np.array(
            [[u ^ 1, *((u + (1 - 2 * (u % 2)) * step) % USERS for step in range(2, 6))] for u in range(USERS)]
        )
        partners = self.places[:, 0]
        self.who = np.flatnonzero(
            self.run.protocol.ties.speaks_for(np.arange(USERS), partners) & (np.arange(USERS) < USERS - 2)
        )
        self.drawn = 0

    def draw(self, count):
        found = []
        while sum(map(len, found)) < count:
            self.drawn += 1
            if len(self.lists) > 1:
                self.run.population.streams = Streams(self.drawn).child("honest")
            found.append(np.hstack([self.round(turn, lists) for turn, lists in enumerate(self.lists)])[self.who])
        whole = np.vstack(found)[:count]
        return list(np.hsplit(whole, whole.shape[1]))

    def round(self, turn, lists):
        self.run.round = 1 + turn if len(self.lists) > 1 else self.drawn
        self.run.population.lists = lists
        columns = []
        for phase in range(self.run.protocol.ties.phases):
            call = self.run._call(phase)
            if phase:
                call.broadcast["groups"] = (np.arange(USERS) + 1) // 2 % 2  # partners apart
            batch = self.run._reports(call, np.arange(USERS), [])
            assert batch.senders.tolist() == list(range(USERS))
            entries = batch.lists.toarray()
            assert not entries.diagonal().any()
            near = np.take_along_axis(entries, self.places, axis=1)
            columns += [near, (entries > 0).sum(axis=1)[:, None], self.numbers(call, batch)]
            if self.run.protocol.features.kind != "none" and phase == 0:
                columns.append(batch.features.toarray())
        return np.hstack(columns).astype(float)

    def numbers(self, call, batch):
        """The numbers of a phase, that of the partner's group first."""
        ties = self.run.protocol.ties
        if not hasattr(ties, "groups"):
            return batch.numbers
        first = ties.groups(call, USERS)[self.places[:, 0]]
        return np.where(first[:, None] == 0, batch.numbers, batch.numbers[:, ::-1])


def audited(worlds, claimed, effort=EFFORT):
    return audit_epsilon("reports", worlds, claimed, effort=effort)


KINDS = [  # and a claim below the truth, which the same draws refute
    ({"kind": "verification-list", "levels": 1}, 0.6),
    ({"kind": "verification-list", "levels": 3}, 0.6),
    ({"kind": "binary-list"}, 0.6),
    ({"kind": "pair-bits"}, 0.6),
    ({"kind": "pair-bits", "count_share": 0.4}, 0.5),
    ({"kind": "blink-reports", "delta": 0.4}, 0.5),
    ({"kind": "blink-reports", "delta": 0.4, "evidence": "single-bit"}, 0.5),
    ({"kind": "sampled-list"}, 0.2),  # two of 31 entries are reported: the list shows little of its epsilon
    ({"kind": "group-degrees"}, 0.4),
]


def named(value):
    return "-".join(map(str, value.values())) if isinstance(value, dict) else ""


@pytest.mark.parametrize(("kind", "too_little"), KINDS, ids=named)
def test_one_report_keeps_its_epsilon_and_a_smaller_claim_is_refuted(kind, too_little):
    worlds = [EngineWorld((held,), {"ties": {**kind, "epsilon": EPSILON}}) for held in (False, True)]
    assert audited(worlds, EPSILON).verdict == NO_VIOLATION
    assert audited(worlds, too_little * EPSILON).verdict == VIOLATES


@pytest.mark.parametrize(("kind", "too_little"), KINDS, ids=named)
def test_memoized_reports_of_a_truth_that_stays_are_the_same_bits(kind, too_little):
    """So that all rounds together show what one of them shows; fresh rounds differ."""
    kept = np.hstack(EngineWorld((True,) * 2, {"ties": {**kind, "epsilon": EPSILON}}).draw(3 * USERS))
    assert np.array_equal(*np.hsplit(kept, 2))
    fresh = np.hstack(EngineWorld((True,), {"ties": {**kind, "epsilon": EPSILON}}).draw(3 * USERS))
    rows = np.array_split(fresh, 3)[0], np.array_split(fresh, 3)[1]
    assert not np.array_equal(*rows)


@pytest.mark.parametrize("place", [1, 3, 5, 8])
def test_a_truth_that_moves_costs_what_two_values_cost(place):
    """Worlds in which everybody's entry moves at the same time, but in opposite directions: the moment tells nothing,
    and two distinct values of everything are charged."""
    kind = KINDS[place][0]
    worlds = [EngineWorld(held, {"ties": {**kind, "epsilon": EPSILON}}) for held in ((False, True), (True, False))]
    assert audited(worlds, 2 * EPSILON).verdict == NO_VIOLATION
    if kind["kind"] in ("verification-list", "pair-bits"):
        assert audited(worlds, EPSILON).verdict == VIOLATES, "both values are on show: one charge is too little"


def test_in_the_unit_of_a_tie_both_ends_reports_share_one_budget():
    class Ends(EngineWorld):
        """Reports of the two ends of a pair side by side."""

        def draw(self, count):
            columns = np.hstack(super().draw(2 * count))
            return list(np.hsplit(np.hstack([columns[0::2], columns[1::2]]), 2 * columns.shape[1]))

    privacy = {"unit": "undirected-tie", "ties": {"kind": "verification-list", "levels": 2, "epsilon": 2.0}}
    worlds = [Ends((held,), privacy) for held in (False, True)]
    assert worlds[0].run.protocol.ties.epsilon == 1.0
    assert audited(worlds, 2.0).verdict == NO_VIOLATION
    assert audited(worlds, 1.0).verdict == VIOLATES


def test_a_report_with_features_costs_the_sum():
    privacy = {
        "features": {"kind": "multi-bit", "epsilon": 0.8, "dimensions": 2},
        "ties": {"kind": "verification-list", "levels": 1, "epsilon": 0.7},
    }
    rows = [
        [[float(world)] * 2] * (USERS - 2) + [[1.0 - world] * 2] * 2 for world in (0, 1)
    ]  # the last are not observed
    worlds = [EngineWorld((bool(world),), privacy, rows=rows[world]) for world in (0, 1)]
    assert audited(worlds, 1.5).verdict == NO_VIOLATION
    assert audited(worlds, 0.8).verdict == VIOLATES


def test_what_leaves_the_engine_is_independent_randomised_response_over_all_other_entries():
    """Chi-square over the joint law of four entries, two held and two not, at alpha 1e-4 (fixed seed)."""
    world = EngineWorld((True,), {"ties": {"kind": "verification-list", "levels": 2, "epsilon": EPSILON}})
    seen = np.hstack(world.draw(20_000))[:, :4].astype(int)  # the partner and the next one are held, two others are not
    p, q = math.e / (math.e + 2), 1 / (math.e + 2)
    true = (2, 2, 0, 0)
    expected = [
        math.prod(p if s == t else q for s, t in zip(symbols, true))
        for symbols in itertools.product(range(3), repeat=4)
    ]
    counts = np.bincount(seen @ [27, 9, 3, 1], minlength=81)
    assert stats.chisquare(counts, np.array(expected) * len(seen)).pvalue > 1e-4
