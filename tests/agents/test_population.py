"""Honest users: trust, answers to strangers, and reports that anyone can make alone."""

import numpy as np
import pytest
from scipy import sparse

from agents.population import HonestUsers, Population
from agents.trust import CorrelatedTrust, IndependentTrust, MaximalTrust
from sim.kernel.randomness import Streams


def ring(n):
    rows = np.arange(n)
    one_way = sparse.csr_array((np.ones(n, dtype=np.int8), (rows, (rows + 1) % n)), shape=(n, n))
    return sparse.csr_array(one_way + one_way.T)


def found(n=200, extra=5, levels=5, **settings):
    features = sparse.csr_array(np.eye(n, 8, dtype=np.float32))
    return Population.found(HonestUsers(**settings), features, ring(n), n + extra, levels, Streams(2))


def test_lists_hold_the_graphs_ties_and_nothing_else():
    population = found()
    assert (population.lists[:, :200].astype(bool) != ring(200).astype(bool)).nnz == 0
    assert population.lists.shape == (200, 205) and population.lists.has_sorted_indices


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_trust_kinds(levels):
    generator = np.random.default_rng(3)
    assert (MaximalTrust().levels(50, levels, generator) == levels).all()
    independent = IndependentTrust().levels(60_000, levels, generator)
    assert independent.min() == 1 and independent.max() == levels
    joint = np.zeros((levels, levels))
    np.add.at(joint, (independent[:, 0] - 1, independent[:, 1] - 1), 1)
    assert np.abs(joint / 60_000 - 1 / levels**2).max() < 0.01


def test_correlated_levels_follow_their_law():
    """kappa = 5: the pair level is uniform; each side moves by one with 0.2, fair sign, clipped. Worked by hand:
    P(side = 1) = 1/5 * 0.9 + 1/5 * 0.1 = 0.2 and P(equal) = 3/5 (0.8^2 + 2 * 0.1^2) + 2/5 (0.9^2 + 0.1^2) = 0.724."""
    levels = CorrelatedTrust().levels(200_000, 5, np.random.default_rng(1))
    assert (levels[:, 0] == 1).mean() == pytest.approx(0.2, abs=0.005)
    assert (levels[:, 0] == levels[:, 1]).mean() == pytest.approx(0.724, abs=0.005)
    assert np.abs(levels[:, 0].astype(int) - levels[:, 1]).max() == 2


def test_trust_of_a_tie_does_not_depend_on_how_many_there_are():
    few = CorrelatedTrust().levels(10, 5, Streams(1).generator("trust"))
    many = CorrelatedTrust().levels(30, 5, Streams(1).generator("trust"))
    assert np.array_equal(few, many[:10])


def test_answers_to_strangers_follow_acceptance_and_vigilance():
    """acceptance .5, vigilance .9, maximal trust: 0 with .5, 1 with .45, kappa with .05."""
    population = found(trust=MaximalTrust())
    answers = np.array([population.answer(v, a) for v in range(200) for a in range(200, 300)])
    shares = [(answers == level).mean() for level in (0, 1, 5)]
    assert shares == pytest.approx([0.5, 0.45, 0.05], abs=0.012) and sum(shares) == pytest.approx(1)


def test_an_answer_is_given_once_and_good_behaviour_lifts_only_accepted_ones():
    population = found(extra=40)
    for victim in range(40):
        first = population.answer(victim, 201)
        assert population.answer(victim, 201) == first
        assert population.answer(victim, 201, earned=4) == (0 if first == 0 else max(first, 4))


def test_held_answers_enter_the_lists_and_can_be_lifted():
    population = found()
    before = population.lists.nnz
    population.hold([(3, 201, 1), (7, 200, 0), (7, 202, 2)])
    assert population.lists.nnz == before + 2 and population.lists[3, 201] == 1
    population.hold([(3, 201, 4)])
    assert population.lists[3, 201] == 4 and population.lists.nnz == before + 2
    assert population.lists.has_sorted_indices and population.answered[(7, 200)] == 0


def test_availability():
    assert found().available(1).all()
    population = found(availability=0.3)
    shares = [population.available(r).mean() for r in range(1, 30)]
    assert np.mean(shares) == pytest.approx(0.3, abs=0.03)
    assert not np.array_equal(population.available(1), population.available(2))
