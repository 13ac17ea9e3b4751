"""Without attackers: how often anybody is flagged, and whether p-values keep their promise.

An any-flag rate above q = 5 % must not be significant (exact 99.9 % lower limit at most 5 %); the distribution
of p-values may exceed the uniform one by at most 0.04 anywhere (Kolmogorov-Smirnov, one-sided: small p-values
are the danger).
"""

import numpy as np
import pytest
from scipy.stats import binomtest
from worlds import block_graph, evidence, make_world, noisy_lists

from server.pruning.base import PruningContext
from server.pruning.benjamini_hochberg import BenjaminiHochberg
from server.suspicion.combined import Combined
from sim.kernel.randomness import Streams

TRUSTS = ["maximal", "correlated", "independent"]


def clean_runs(trust: str, seeds: int, n: int, epsilon: float = 5.0) -> tuple[int, float, np.ndarray]:
    """(runs with a flag, share of users flagged, all p-values of the mixture) over attacker-free worlds."""
    flagged, users, p_values = 0, 0.0, []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, TRUSTS.index(trust)])
        ties, labels = block_graph(n, 5.0, rng)
        held = evidence(noisy_lists(make_world(ties, labels, 5, trust, rng), epsilon, rng), epsilon, 5)
        scored = Combined().score(held, Streams(seed))
        context = PruningContext(held, Combined(), Streams(seed), lambda gone: 0.0, {}, 0)
        found = BenjaminiHochberg().decide(scored, context).flagged
        flagged, users = flagged + int(found.any()), users + found.mean() / seeds
        p_values.append(scored.details["pairs_p_value"])
    return flagged, users, np.concatenate(p_values)


def excess_over_uniform(p_values: np.ndarray) -> float:
    """Largest amount by which the distribution of p-values lies above the uniform one."""
    ordered = np.sort(p_values)
    return float((np.arange(1, len(ordered) + 1) / len(ordered) - ordered).max())


def check(trust: str, seeds: int, n: int, epsilon: float = 5.0) -> None:
    flagged, share, p_values = clean_runs(trust, seeds, n, epsilon)
    interval = binomtest(flagged, seeds).proportion_ci(0.998, method="exact")
    assert interval.low <= 0.05, f"{flagged} of {seeds} clean runs flagged somebody"
    assert share < 0.002
    assert excess_over_uniform(p_values) < 0.04
    assert (p_values < 1e-3).mean() < 3e-3


@pytest.mark.parametrize("trust", TRUSTS)
def test_clean_populations_are_left_alone(trust):
    check(trust, seeds=20, n=250)


@pytest.mark.slow
@pytest.mark.parametrize("trust", TRUSTS)
def test_clean_populations_are_left_alone_200_seeds(trust):
    check(trust, seeds=200, n=300)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [3.0, 7.0])
def test_calibration_holds_at_other_budgets(epsilon):
    check("correlated", seeds=100, n=300, epsilon=epsilon)


def test_p_values_would_betray_a_bad_null():
    """The check itself can fail: p-values that are three times too small are caught."""
    honest = np.random.default_rng(0).random(20_000)
    assert excess_over_uniform(honest) < 0.04 < excess_over_uniform(honest / 3)
