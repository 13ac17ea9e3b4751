"""A run continued from a checkpoint is the unbroken run, whatever there is to remember."""

import pickle

import numpy as np
import pandas as pd
import pytest
from tiny_worlds import scenario

from sim.columns import TIMING
from sim.engine import Simulation
from sim.scenario import load_scenario

USERS, ROUNDS = 40, 5
SOME = {"name": "fakes", "count": 4, "targets": {"kind": "cyclic", "per_attacker": 4}}
SERVER = {
    "suspicion": {"kind": "mean-gap"},
    "pruning": {"kind": "threshold", "gamma": 0.5},
    "refinement": {"kind": "attested"},
    "denoising": {"kind": "dual"},
    "training": {"kind": "gnn", "epochs": 4},
}
PRIVACY = {"features": {"kind": "piecewise", "epsilon": 2.0}, "ties": {"kind": "verification-list", "epsilon": 4.0}}
PATCHY = {"honest": {"availability": 0.6, "acceptance": 0.9}}


def attackers(**parts):
    return {"population": {**PATCHY, "attackers": [{**SOME, **parts}]}}


def across(mode, **more):
    return {"privacy": {**PRIVACY, "across_rounds": mode, **more}}


CASES = {
    "memoized": across("memoized"),
    "fresh": across("fresh"),
    "split": across("split"),
    "no memory": {**across("fresh"), "server": {**SERVER, "memory": "none"}},
    "sleepers": {**attackers(timing={"kind": "sleeper", "wake": 4}), **across("memoized")},
    "on and off": attackers(timing={"kind": "on-off", "attacks": 1, "pauses": 2, "idle": "harmless"}),
    "ramp, camouflage": attackers(timing={"kind": "ramp", "over": 4}, claims={"channel": "camouflage"}),
    "framing": attackers(claims={"kind": "framing", "camouflage_rounds": 3}),
    "adaptive": {**attackers(claims={"kind": "adaptive"}, knowledge=["protocol", "feedback"]), **across("fresh")},
    "whitewash": attackers(timing={"kind": "whitewash"}, knowledge=["protocol", "feedback"]),
    "warm start": {"server": {**SERVER, "training": {"kind": "gnn", "epochs": 4, "warm_start": True}}},
    "gamma auto, once": {"server": {**SERVER, "pruning": {"kind": "threshold"}}, **across("memoized")},
    "gamma auto, each round": {"server": {**SERVER, "pruning": {"kind": "threshold"}}, **across("fresh")},
    "permanent": {"server": {**SERVER, "pruning": {"kind": "threshold", "gamma": 0.5, "permanent": True}}},
    "two phases": {
        "privacy": {**PRIVACY, "ties": {"kind": "group-degrees", "epsilon": 4.0}},
        "server": {
            **SERVER,
            "suspicion": {"kind": "none"},
            "pruning": {"kind": "none"},
            "refinement": {"kind": "ldpgen"},
        },
    },
    "a curator": {
        "privacy": {**PRIVACY, "ties": {"kind": "trusted-curator", "epsilon": 4.0}},
        "server": {
            **SERVER,
            "suspicion": {"kind": "none"},
            "pruning": {"kind": "none"},
            "refinement": {"kind": "lapgraph"},
        },
    },
    "blink": {
        "privacy": {**PRIVACY, "ties": {"kind": "auto", "epsilon": 4.0}},
        "server": {
            **SERVER,
            "suspicion": {"kind": "none"},
            "pruning": {"kind": "none"},
            "refinement": {"kind": "blink"},
        },
    },
    "private labels, anchors": {
        **across("fresh", labels={"kind": "randomized-response", "epsilon": 2.0}, unit="undirected-tie"),
        "anchors": "each",
    },
    "a lifetime": across("fresh", lifetime_epsilon=20.0),
    "a bad network": {"network": {"latency": {"kind": "exponential", "mean": 1.0}, "loss": 0.2, "deadline": 1.5}},
}


def loaded(case):
    rng = np.random.default_rng(3)
    upper = np.stack(np.triu_indices(USERS, 1), axis=1)
    ties = upper[rng.choice(len(upper), 90, replace=False)].tolist()
    graph = {"rows": rng.integers(0, 2, (USERS, 8)).astype(float).tolist()}
    sections = {"privacy": PRIVACY, "server": SERVER, **attackers(), "rounds": ROUNDS, "seed": 9, **CASES[case]}
    return load_scenario(scenario(ties, USERS, graph=graph, **sections))


def finished(run):
    while run.round < ROUNDS:
        run.step()
    return run


@pytest.mark.parametrize("case", CASES)
def test_a_run_from_a_checkpoint_is_the_unbroken_run(case):
    whole = finished(Simulation(loaded(case)))
    first, second = Simulation(loaded(case)), Simulation(loaded(case))
    for _ in range(2):
        first.step()
    kept = pickle.dumps(first.checkpoint())
    first.step()  # what happens after a checkpoint does not reach it
    second.restore(pickle.loads(kept))
    same(whole, finished(second))


def same(one, two):
    rows = [pd.DataFrame(run.observer.rows).drop(columns=[*TIMING]) for run in (one, two)]
    pd.testing.assert_frame_equal(*rows)
    pd.testing.assert_frame_equal(pd.DataFrame(one.observer.groups), pd.DataFrame(two.observer.groups))
    pd.testing.assert_frame_equal(one.observer.fates, two.observer.fates)
    assert one.observer.notes == two.observer.notes and one.environment.now == two.environment.now
    assert (one.population.lists != two.population.lists).nnz == 0
    assert one.population.answered == two.population.answered
    mine, theirs = one.outcome, two.outcome
    assert np.array_equal(mine.decision.flagged, theirs.decision.flagged)
    assert mine.learned.result.probabilities.tobytes() == theirs.learned.result.probabilities.tobytes()
    for a, b in zip(one.users, two.users):
        assert np.array_equal(a.feedback.confirmed, b.feedback.confirmed) and a.feedback.flagged == b.feedback.flagged
    for a, b in zip(one.coalitions, two.coalitions):
        pasts = list(zip(a.state()["history"], b.state()["history"]))
        assert len(pasts) == ROUNDS and all((x.lists != y.lists).nnz == 0 for x, y in pasts)


def test_the_cases_remember_something():
    """Each case ends elsewhere when it forgets what it has to carry: the second half alone is not the whole run."""
    moved = 0
    for case in ("memoized", "sleepers", "adaptive", "warm start", "permanent", "two phases"):
        whole, torn = finished(Simulation(loaded(case))), Simulation(loaded(case))
        torn.round = 3
        rows = [pd.DataFrame(run.observer.rows[-1:]).drop(columns=[*TIMING]) for run in (whole, finished(torn))]
        moved += not rows[0].equals(rows[1])
    assert moved == 6
