"""The ready populations do to the server's inbox what their descriptions say. 1,000 honest users, 200 features."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from coalitions import opened, public

from agents.coalition import Coalition
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Feedback
from agents.strategies.base import AttackerGroup
from sim.kernel.component import build
from sim.kernel.randomness import Streams

FOLDER = Path(__file__).parents[2] / "scenarios" / "populations"
HONEST = 1000
NAMES = ["camouflage", "collusion", "devils-hand", "framing", "mixed", "none", "sleepers", "stealth"]


class Inbox:
    """Plans and reports of each group, round by round."""

    def __init__(self, name, rounds=None):
        scenario = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
        problems = []
        groups = [build(AttackerGroup, data, (), problems) for data in scenario["population"]["attackers"]]
        assert not problems
        participants = HONEST + sum(group.size(HONEST) for group in groups)
        self.protocol = public(participants, 200, Piecewise(epsilon=0.1), VerificationList(epsilon=5.0, levels=5), 4.0)
        self.plans, self.batches, first = {}, {}, HONEST
        for group in groups:
            members = np.arange(first, first + group.size(HONEST))
            first += len(members)
            attackers, learnt = Coalition(group, members, Streams(3)), {}
            plans, batches = [], []
            for round in range(1, (rounds or scenario["rounds"]) + 1):
                call = opened(round, protocol=self.protocol)
                plans.append(attackers.plan(call, learnt))
                batches.append(attackers.encode(plans[-1], call))
                learnt = {m: Feedback(False, plans[-1].asked[1][plans[-1].asked[0] == m]) for m in members.tolist()}
            self.plans[group.name], self.batches[group.name] = plans, batches

    def only(self):
        ((plans, batches),) = zip(self.plans.values(), self.batches.values())
        return plans, batches


BOUND = (np.exp(0.05) + 1) / (np.exp(0.05) - 1)
NOISE = 5 / (np.exp(5) + 5)  # chance that an entry about nobody is reported above zero


def is_loud(batch):
    """Every report holds the largest legal value, on one coordinate that all share."""
    return len(set(batch.features.indices.tolist())) == 1 and np.allclose(batch.features.data, BOUND, rtol=1e-5)


def test_every_population_file_is_listed_here():
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_population_describes_itself_and_is_named_after_its_file(name):
    text = (FOLDER / f"{name}.yaml").read_text()
    head = text.split("\n\n")[0].splitlines()
    assert len(head) >= 1 and all(line.startswith("# ") for line in head)
    assert yaml.safe_load(text)["name"] == name


def test_none_sends_nothing():
    assert Inbox("none").plans == {}


def test_devils_hand_gives_each_victim_one_fake_and_hides_in_the_noise():
    plans, batches = Inbox("devils-hand").only()
    assert len(plans[0].members) == 10
    assert len(plans[0].victims) == len(plans[0].asked[0]) == 120
    for batch in batches:
        assert is_loud(batch)
        entries = np.diff(batch.lists.indptr)
        assert abs(entries.sum() - 10 * (12 + 997 * NOISE)) < 5 * np.sqrt(10 * 997 * NOISE)
        assert len(set(entries.tolist())) > 1


def test_stealth_claims_one_low_level_a_fake_and_keeps_the_mean_degree():
    plans, batches = Inbox("stealth").only()
    plan = plans[0]
    assert len(plan.members) == 40 and len(plan.victims) == len(plan.asked[0]) == 40
    assert set(plan.lists.data.tolist()) == {1}
    # published mean degree 4: 40 fakes bring 40 asked ties and about (4 - 2)/39 x 780 = 40 inner ones
    mean = (1000 * 4 + 2 * 40 + 2 * len(plan.partners[0])) / 1040
    assert mean == pytest.approx(4.0, rel=0.02)
    assert is_loud(batches[0])


def test_collusion_is_a_clique_of_top_levels_around_the_same_victims():
    plans, batches = Inbox("collusion").only()
    assert len(plans[0].members) == 10 and len(plans[0].victims) == 12
    assert len(plans[0].asked[0]) == 120 and len(plans[0].partners[0]) == 45
    inside = batches[0].lists[:, plans[0].members].toarray()
    assert (inside == 5).sum() >= 77  # 90 entries kept with probability 0.967: 87 +- 1.7, less 6 of those
    about_victims = batches[0].lists[:, plans[0].victims].toarray()
    assert (about_victims == 5).sum() >= 104  # 120 kept: 116 +- 2, less 6 of those


def test_framing_is_friendly_first_and_hostile_later():
    plans, batches = Inbox("framing").only()
    asked = plans[0].asked[0] - HONEST, plans[0].asked[1]
    assert len(plans[0].members) == 20 and len(asked[1]) == 240
    assert plans[0].earned.min() >= 3
    levels = [batch.lists[asked].astype(float) for batch in batches]
    assert 3.5 < levels[0].mean() < 4.5  # 3, 4 and 5 evenly: 4 +- 0.06, less what noise replaces
    for later in levels[1:]:
        assert later.mean() < 1.3 and np.median(later) == 1
    assert all((plan.earned == plans[0].earned).all() for plan in plans)
    assert not is_loud(batches[0])


def test_sleepers_look_ordinary_until_they_wake():
    plans, batches = Inbox("sleepers").only()
    for plan, batch in zip(plans[:2], batches[:2]):
        assert len(batch.senders) == 10 and not plan.lists.nnz and not len(plan.asked[0])
        assert not is_loud(batch)
        assert abs(batch.lists.nnz - 10 * 1009 * NOISE) < 5 * np.sqrt(10 * 1009 * NOISE)
    for plan, batch in zip(plans[2:], batches[2:]):
        assert len(plan.victims) == 120 and is_loud(batch)
        assert (batch.lists[plan.asked[0] - HONEST, plan.asked[1]] == 5).mean() > 0.9


def test_camouflage_has_the_right_number_of_entries_and_too_regular_levels():
    plans, batches = Inbox("camouflage").only()
    assert np.diff(batches[0].lists.indptr).tolist() == [12 + round(997 * NOISE)] * 10
    assert set(batches[0].lists.data.tolist()) == {5}
    assert set(batches[0].lists.indices.tolist()) <= set(plans[0].victims.tolist())


def test_mixed_runs_three_coalitions_that_do_different_things():
    inbox = Inbox("mixed")
    assert {name: len(plans[0].members) for name, plans in inbox.plans.items()} == {
        "fakes": 10,
        "ring": 5,
        "learners": 10,
    }
    assert is_loud(inbox.batches["fakes"][0])
    ring = inbox.batches["ring"]
    assert [len(batch.senders) for batch in ring] == [5, 0, 5, 0]
    assert np.diff(ring[0].lists.indptr).tolist() == [22] * 5 and set(ring[0].lists.data.tolist()) == {5}
    first, *_, last = inbox.plans["learners"]
    assert len(set(np.bincount(first.asked[0] - 1015, minlength=10).tolist())) == 3  # 3, 6 and 12 targets are tried
    # everything asked for was published, so asking for everything pays best: at least half have settled on it
    assert (np.bincount(last.asked[0] - 1015, minlength=10) == 12).sum() >= 5
    taken = [plan.victims for plan in (inbox.plans["fakes"][0], inbox.plans["ring"][0])]
    assert taken[0].tolist() != taken[1].tolist()


def test_no_two_populations_fill_the_inbox_alike():
    seen = set()
    for name in NAMES:
        inbox = Inbox(name, rounds=3)
        seen.add(
            tuple(
                (len(batch.senders), batch.lists.nnz, int(batch.lists.data.sum(dtype=np.int64)), batch.features.nnz)
                for batches in inbox.batches.values()
                for batch in batches
            )
        )
    assert len(seen) == len(NAMES)
