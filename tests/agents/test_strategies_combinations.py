"""Any combination of the six dimensions makes a well-formed round."""

import itertools

import numpy as np
import pytest
from coalitions import HONEST, coalition, opened, public
from combinations import DIMENSIONS, covering
from scipy import sparse

from agents.protocol import Feedback
from agents.strategies.base import Granted


def ring(size):
    ends = np.arange(size)
    near = sparse.csr_array((np.ones(size, dtype=np.int8), (ends, (ends + 1) % size)), shape=(size, size))
    return sparse.csr_array(near + near.T)


EVERYTHING = Granted(degrees=np.full(HONEST, 2), labels=np.arange(60) % 3, graph=ring(HONEST))
KNOWLEDGE = ["protocol", "degrees", "feedback", "labels", "graph"]
# published: every level is legal, m = 3 of 20 features are sampled
LOW, HIGH = public().features.output_range(20)


def play(combination, rounds=2):
    """Two rounds of one coalition; every report is checked for its form."""
    features, targets, ties, claims, channel, timing = combination
    attackers = coalition(
        granted=EVERYTHING,
        features={"kind": features},
        targets={"kind": targets},
        ties={"kind": ties},
        claims={"kind": claims, "channel": channel},
        timing={"kind": timing},
        knowledge=KNOWLEDGE,
    )
    learnt: dict[int, Feedback] = {}
    for round in range(1, rounds + 1):
        call = opened(round)
        plan = attackers.plan(call, learnt)
        batch = attackers.encode(plan, call)
        assert batch.senders.tolist() == plan.members[plan.active].tolist()
        stored = np.diff(batch.features.indptr)
        assert (stored == 20 if features == "illegal-dense" else stored <= 3).all()
        assert ((batch.features.data >= LOW) & (batch.features.data <= HIGH)).all()
        assert batch.lists.has_sorted_indices and batch.lists.dtype == np.int8
        assert ((batch.lists.data >= 1) & (batch.lists.data <= 5)).all()
        assert batch.lists.shape == (len(batch.senders), 60)
        rows = np.repeat(batch.senders, np.diff(batch.lists.indptr))
        assert (rows != batch.lists.indices).all()
        assert len(plan.earned) == len(plan.asked[0]) == len(plan.asked[1])
        assert not np.isin(plan.asked[1], plan.members).any()
        assert np.isin(np.concatenate(plan.partners), plan.members).all()
        learnt = {m: Feedback(m % 2 == 0, plan.asked[1][plan.asked[0] == m][:2]) for m in plan.members.tolist()}


def test_the_array_covers_every_pair():
    rows = covering(DIMENSIONS)
    assert len(rows) < 110  # 70 is the least that 10 target kinds and 7 feature or claim kinds allow
    for a, b in itertools.combinations(range(6), 2):
        assert {(row[a], row[b]) for row in rows} == set(itertools.product(DIMENSIONS[a], DIMENSIONS[b]))


def test_the_dimensions_hold_every_kind_that_is_promised():
    promised = [
        "honest-like random extreme illegal-dense constant mimic-class opposite",
        "random cyclic high-degree low-degree same-victims class community maximal-gain random-node random-value",
        "none degree-preserving clique ring star preferential",
        "maximal level-match minimal honest-like framing collusive adaptive",
        "compliant bypass camouflage",
        "always sleeper on-off ramp whitewash",
    ]
    assert all(set(names.split()) <= set(found) for names, found in zip(promised, DIMENSIONS))


@pytest.mark.parametrize("combination", covering(DIMENSIONS), ids="/".join)
def test_pairwise(combination):
    play(combination)


@pytest.mark.slow
@pytest.mark.parametrize("features", DIMENSIONS[0])
def test_full_product(features):
    for rest in itertools.product(*DIMENSIONS[1:]):
        play((features, *rest), rounds=1)
