"""Names do not matter, and a newcomer changes nothing: relabelling users, and adding an isolated one."""

import numpy as np
import pytest
from worlds import block_graph, evidence, make_world, noisy_lists, relabelled

from server.pruning.base import PruningContext
from server.pruning.benjamini_hochberg import BenjaminiHochberg
from server.refinement.base import Refinement
from server.suspicion.base import SuspicionScore
from server.suspicion.combined import Combined
from sim.kernel.component import Component
from sim.kernel.randomness import Streams

SCORES = ["mean-gap", "mean-gap-mutual", "gap-sum", "gated-sum", "likelihood-ratio", "row-conformity", "typed-mixture",
          "combined"]  # fmt: skip


def made(family: type[Component], kind: str):
    return family._family.resolve(kind)()


@pytest.fixture(scope="module")
def attacked():
    rng = np.random.default_rng(31)
    ties, labels = block_graph(500, 4.0, rng)
    world = make_world(ties, labels, 5, "correlated", rng, "9", 20, 12)
    return world, evidence(noisy_lists(world, 4.5, rng), 4.5, 5, labels, rng.random(500) < 0.5)


@pytest.mark.parametrize("kind", SCORES)
def test_relabelling_users_relabels_scores(attacked, kind):
    _, held = attacked
    order = np.random.default_rng(1).permutation(held.n)
    one, other = (made(SuspicionScore, kind).score(e, Streams(0)) for e in (held, relabelled(held, order)))
    assert other.score == pytest.approx(one.score[order], abs=1e-7)
    if one.p_value is not None:
        assert other.p_value == pytest.approx(one.p_value[order], rel=1e-6)


@pytest.mark.parametrize("kind", ["attested", "equal-levels", "posterior"])
def test_relabelling_users_relabels_ties(attacked, kind):
    _, held = attacked
    order = np.random.default_rng(2).permutation(held.n)
    kept = np.arange(held.n) % 17 > 0
    one = made(Refinement, kind).refine(held, kept, Streams(0))
    other = made(Refinement, kind).refine(relabelled(held, order), kept[order], Streams(0))

    def by_pair(found, names):
        ends = names[np.column_stack([found.u, found.v])]
        chance = found.probability if found.probability is not None else np.ones(len(found.u))
        return {(min(a, b), max(a, b)): p for (a, b), p in zip(ends.tolist(), chance.tolist())}

    first, second = by_pair(one, np.arange(held.n)), by_pair(other, order)
    assert first.keys() == second.keys()
    assert [second[pair] for pair in first] == pytest.approx(list(first.values()), abs=1e-6)


def test_relabelling_users_relabels_flags(attacked):
    _, held = attacked
    order = np.random.default_rng(3).permutation(held.n)
    flags = []
    for given in (held, relabelled(held, order)):
        scored = Combined().score(given, Streams(0))
        context = PruningContext(given, Combined(), Streams(0), lambda gone: 0.0, {}, 0)
        flags.append(BenjaminiHochberg().decide(scored, context).flagged)
    assert flags[1].tolist() == flags[0][order].tolist() and flags[0].any()


@pytest.mark.parametrize("kind", SCORES)
def test_an_isolated_user_changes_hardly_anything(attacked, kind):
    """One more honest user, whose noise and the noise about it are all that is new: scores keep their order."""
    world, _ = attacked
    rng = np.random.default_rng(4)
    base = noisy_lists(world, 4.5, rng)
    n = world.n
    grown = np.zeros((n + 1, n + 1), np.int8)
    grown[:n, :n] = base.toarray()
    q0 = 5 / (np.exp(4.5) + 5)
    grown[n, :n] = rng.integers(1, 6, n) * (rng.random(n) < q0)
    grown[:n, n] = rng.integers(1, 6, n) * (rng.random(n) < q0)
    rows, columns = grown.nonzero()
    larger = type(base)((grown[rows, columns], (rows, columns)), shape=grown.shape)
    larger.sort_indices()
    one = made(SuspicionScore, kind).score(evidence(base, 4.5, 5), Streams(0))
    other = made(SuspicionScore, kind).score(evidence(larger, 4.5, 5), Streams(0))
    assert np.corrcoef(one.score, other.score[:n])[0, 1] > 0.95
    if one.p_value is not None:
        strong = one.p_value < 1e-6
        assert (other.p_value[:n][strong] < 1e-3).all()
