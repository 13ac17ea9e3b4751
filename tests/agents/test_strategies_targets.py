"""Whom attackers ask for ties."""

import numpy as np
import pytest
from coalitions import HONEST, MEMBERS, public, view
from scipy import sparse

from agents.strategies import targets as kinds
from agents.strategies.base import Granted


def by_member(pairs, members=MEMBERS):
    rows, ids = pairs
    assert rows.shape == ids.shape
    return [set(ids[rows == member].tolist()) for member in range(members)]


def test_cyclic_gives_each_victim_to_exactly_one_member_in_turn():
    rows, ids = kinds.Cyclic(per_attacker=4).choose(view())
    assert rows.tolist() == [0, 1, 2, 3, 4, 5] * 4
    assert len(set(ids.tolist())) == 24
    assert set(ids.tolist()) <= set(range(HONEST))


def test_cyclic_with_fewer_users_than_places_takes_everybody_once():
    rows, ids = kinds.Cyclic(per_attacker=12).choose(view())
    assert sorted(ids.tolist()) == list(range(HONEST))
    assert np.bincount(rows).tolist() == [9] * 6


def test_random_draws_distinct_victims_for_each_member():
    drawn = by_member(kinds.Random(per_attacker=9).choose(view()))
    assert [len(each) for each in drawn] == [9] * 6
    assert len(set(map(frozenset, drawn))) == 6
    assert set.union(*drawn) <= set(range(HONEST))


def test_same_victims_are_shared_by_all():
    drawn = by_member(kinds.SameVictims(per_attacker=5).choose(view()))
    assert len(drawn[0]) == 5
    assert all(each == drawn[0] for each in drawn)


def test_degree_kinds_take_the_extremes_and_deal_them_out():
    degrees = np.arange(HONEST)[::-1] // 2  # ids 0 and 1 have 26, ..., ids 52 and 53 have 0
    seen = view(granted=Granted(degrees=degrees), knowledge=["protocol", "degrees"])
    rows, ids = kinds.HighDegree(per_attacker=1).choose(seen)
    assert sorted(rows.tolist()) == [0, 1, 2, 3, 4, 5]
    assert sorted(ids.tolist()) == [0, 1, 2, 3, 4, 5]
    assert degrees[ids].tolist() == [26, 26, 25, 25, 24, 24]
    rows, ids = kinds.LowDegree(per_attacker=2).choose(seen)
    assert sorted(ids.tolist()) == list(range(42, 54))
    assert np.bincount(rows).tolist() == [2] * 6


def test_class_asks_only_users_of_that_class():
    labels = np.concatenate([np.repeat([0, 1, 2], 18), np.full(6, 1)])  # the members' own labels do not count
    seen = view(granted=Granted(labels=labels), knowledge=["protocol", "labels"])
    drawn = by_member(kinds.ByClass(per_attacker=4, label=1).choose(seen))
    assert [len(each) for each in drawn] == [4] * 6
    assert set.union(*drawn) <= set(range(18, 36))
    with pytest.raises(ValueError, match="nobody outside the coalition has label 7"):
        kinds.ByClass(label=7).choose(seen)


def two_cliques(size, bridges):
    """Ids 0..size-1 and size..2 size - 1 are cliques, with a few ties between them; others have no ties."""
    dense = np.zeros((HONEST, HONEST), dtype=np.int8)
    dense[:size, :size] = dense[size : 2 * size, size : 2 * size] = 1
    np.fill_diagonal(dense, 0)
    for k in range(bridges):
        dense[k, size + k] = dense[size + k, k] = 1
    return sparse.csr_array(dense)


def test_community_finds_the_clique_that_it_starts_in():
    graph = two_cliques(10, bridges=2)
    strategy = kinds.Community(per_attacker=4)
    assert sorted(strategy.around(graph, pick=3).tolist()) == list(range(10))
    assert sorted(strategy.around(graph, pick=13).tolist()) == list(range(10, 20))
    drawn = by_member(strategy.choose(view(granted=Granted(graph=graph), knowledge=["protocol", "graph"])))
    assert [len(each) for each in drawn] == [4] * 6
    together = set.union(*drawn)
    assert together <= set(range(10)) or together <= set(range(10, 20))


def test_community_of_a_path_is_a_stretch_of_it():
    path = sparse.diags_array([np.ones(19), np.ones(19)], offsets=[-1, 1], format="csr")
    found = np.sort(kinds.Community(per_attacker=3).around(path, pick=0))
    # from an end, each prefix cuts one tie: the longest with at most half of the ties (2 k - 1 <= 19) is best
    assert found.tolist() == list(range(10))
    with pytest.raises(ValueError, match="no ties"):
        kinds.Community().around(sparse.csr_array((5, 5)), pick=0)


def test_maximal_gain_fills_an_ordinary_noisy_degree_with_the_target_set_first():
    protocol = public()
    q0 = 5 / (np.exp(3.0) + 5)
    links = int(4 + 55 * q0)  # 59 entries, 4 of them true
    strategy = kinds.MaximalGain(target_share=0.1)
    seen = view(protocol=protocol)
    victims = set(strategy.victims(seen).tolist())
    assert len(victims) == 5
    drawn = by_member(strategy.choose(seen))
    assert [len(each) for each in drawn] == [links] * 6 == [strategy.links(seen)] * 6
    assert all(victims <= each for each in drawn)
    many = kinds.MaximalGain(target_share=0.9)
    assert set.union(*by_member(many.choose(seen))) <= set(many.victims(seen).tolist())


def test_random_node_asks_one_user_of_the_target_set():
    strategy, seen = kinds.RandomNode(target_share=0.1), view(members=40, protocol=public(participants=94))
    drawn = by_member(strategy.choose(seen), 40)
    assert [len(each) for each in drawn] == [1] * 40
    assert set.union(*drawn) == set(
        strategy.victims(seen).tolist()
    )  # 40 draws from 5: each missed with probability 1e-4


def test_random_value_names_as_many_users_as_a_noisy_report():
    strategy, seen = kinds.RandomValue(), view()
    drawn = by_member(strategy.choose(seen))
    assert [len(each) for each in drawn] == [int(4 + 55 * 5 / (np.exp(3.0) + 5))] * 6
    assert len(set(map(frozenset, drawn))) == 6
