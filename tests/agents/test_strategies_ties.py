"""Which attackers are tied to each other."""

import numpy as np
import pytest
from coalitions import coalition, opened, public, view

from agents.strategies import ties as kinds


def pairs(strategy, members=6, targets=0.0):
    i, j = strategy.connect(view(members=members, protocol=public(participants=54 + members)), targets)
    assert (i < j).all()
    found = set(zip(i.tolist(), j.tolist()))
    assert len(found) == len(i)
    return found


def test_none_clique_ring_and_star():
    assert pairs(kinds.NoTies()) == set()
    assert pairs(kinds.Clique(), 4) == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert pairs(kinds.Ring(), 4) == {(0, 1), (1, 2), (2, 3), (0, 3)}
    star = pairs(kinds.Star(), 5)
    hub = set.intersection(*map(set, star))
    assert len(star) == 4 and len(hub) == 1
    assert set().union(*star) == set(range(5))


@pytest.mark.parametrize("kind", [kinds.Clique(), kinds.Ring(), kinds.Star(), kinds.Preferential()])
def test_two_members_are_tied_and_one_is_alone(kind):
    assert pairs(kind, 2) == {(0, 1)}
    assert pairs(kind, 1) == set()


def test_preferential_ties_each_newcomer_to_earlier_members_and_makes_hubs():
    found = pairs(kinds.Preferential(links=2), 200)
    assert len(found) == 1 + 2 * 198  # the second member finds one, all later ones two
    degree = np.bincount(np.array(list(found)).ravel(), minlength=200)
    assert degree.min() >= 1
    assert degree.max() > 5 * np.median(degree)  # uniform attachment would stop near three times the median


def test_probability_of_degree_preserving_ties():
    q = kinds.DegreePreserving().probability
    assert q(mean_degree=4.0, members=11, targets_per_member=1.0) == pytest.approx(0.2)  # (4 - 2)/10
    assert q(4.0, 11, 2.0) == 0.0
    assert q(4.0, 11, 12.0) == 0.0  # clipped: more targets than the mean degree can hide
    assert q(40.0, 5, 1.0) == 1.0  # clipped: too few fellows
    assert q(4.0, 1, 1.0) == 0.0


@pytest.mark.parametrize("targets", [1, 2, 3])
def test_degree_preserving_keeps_the_mean_degree_where_targets_are_at_most_half_of_it(targets):
    """2,000 honest users of degree 6, 100 members: the number of inner ties has an sd below 14, the mean below .014."""
    attackers = coalition(
        100, 2000, targets={"kind": "cyclic", "per_attacker": targets}, ties={"kind": "degree-preserving"}
    )
    plan = attackers.plan(opened(protocol=public(participants=2100, mean_degree=6.0)))
    assert len(plan.asked[0]) == 100 * targets
    mean = (2000 * 6 + 2 * len(plan.asked[0]) + 2 * len(plan.partners[0])) / 2100
    assert mean == pytest.approx(6.0, rel=0.02)
