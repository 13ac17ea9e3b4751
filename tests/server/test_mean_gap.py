"""The printed suspicion: four users by hand, silent users, and Proposition 2's exact gap by Monte Carlo."""

import math

import numpy as np
import pytest
from scipy import sparse
from worlds import FOUR, evidence

from server.suspicion.mean_gap import MeanGap, MeanGapMutual
from sim.kernel.randomness import Streams


def score(kind, held):
    return kind().score(held, Streams(0)).score


def test_four_users_by_hand():
    # 0: (3-2)+(1-1) over {1,2}; 1: (2-3)+(1-3) over {0,3}; 2: (1-1)+(2-0) over {0,3}; 3: (3-1)+(0-2) over {1,2}.
    assert score(MeanGap, evidence(FOUR, 5.0, 3)) == pytest.approx([0.5, -1.5, 1.0, 0.0])
    # Mutual pairs only: 2 keeps {0}, 3 keeps {1}.
    assert score(MeanGapMutual, evidence(FOUR, 5.0, 3)) == pytest.approx([0.5, -1.5, 0.0, 2.0])


def test_a_silent_user_is_unknown_and_casts_no_shadow():
    lists = sparse.csr_array(FOUR.toarray() * np.array([[1], [1], [0], [1]], np.int8))
    held = evidence(lists, 5.0, 3, reported=np.array([True, True, False, True]))
    # 2 is silent: what 0 says about it (level 1) counts for neither.
    assert score(MeanGap, held) == pytest.approx([1.0, -1.5, np.nan, 2.0], nan_ok=True)
    assert score(MeanGapMutual, held) == pytest.approx([1.0, -1.5, np.nan, 2.0], nan_ok=True)


def test_no_neighbour_is_no_suspicion():
    assert score(MeanGap, evidence(sparse.csr_array((3, 3), dtype=np.int8), 5.0, 3)).tolist() == [0, 0, 0]


def test_equals_the_definition_on_dense_lists():
    rng = np.random.default_rng(4)
    dense = rng.integers(0, 6, (40, 40)) * ~np.eye(40, dtype=bool)
    dense[rng.random((40, 40)) < 0.6] = 0
    held = evidence(sparse.csr_array(dense.astype(np.int8)), 5.0, 5)
    either, both = (dense > 0) | (dense.T > 0), (dense > 0) & (dense.T > 0)
    gap = dense.astype(float) - dense.T
    assert score(MeanGap, held) == pytest.approx((gap * either).sum(1) / either.sum(1))
    assert score(MeanGapMutual, held) == pytest.approx((gap * both).sum(1) / np.maximum(both.sum(1), 1))


@pytest.mark.parametrize(("epsilon", "levels"), [(3.0, 5), (5.0, 5), (3.0, 2), (1.0, 3)])
def test_exact_gap_of_proposition_2(epsilon, levels):
    """Attackers claim kappa to targets that answer 1, noise on these entries only: gap (p - q)(kappa - 1), not the
    printed (2p - 1)(kappa - 1). Pairs that noise empties on both sides leave the neighbourhood, hence / (1 - P(0,
    0)). Tolerance 4.5 standard errors: a false alarm in 10^5."""
    q = 1 / (math.exp(epsilon) + levels)
    p = 1 - levels * q
    rng, attackers, targets = np.random.default_rng(8), 120, 100

    def report(level, size):
        return np.where(rng.random(size) < (levels + 1) * q, rng.integers(0, levels + 1, size), level)

    n = attackers + targets
    dense = np.zeros((n, n), np.int8)
    dense[:attackers, attackers:] = report(levels, (attackers, targets))
    dense[attackers:, :attackers] = report(1, (targets, attackers))
    found = score(MeanGap, evidence(sparse.csr_array(dense), epsilon, levels))[:attackers]
    exact = (p - q) * (levels - 1) / (1 - q * q)
    error = found.std(ddof=1) / math.sqrt(attackers)
    assert abs(found.mean() - exact) < 4.5 * error
    if epsilon <= 3.0 and levels > 2:
        assert abs(found.mean() - (2 * p - 1) * (levels - 1)) > 10 * error
