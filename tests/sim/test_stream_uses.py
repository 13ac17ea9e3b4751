"""No stream of random numbers serves two purposes: who opens which, in whole runs."""

import sys
from collections import defaultdict

import numpy as np
import pytest
from tiny_worlds import scenario

from sim.engine import Simulation
from sim.kernel import randomness
from sim.kernel.randomness import Streams
from sim.scenario import load_scenario

USERS, ROUNDS = 24, 3
RING = [[i, (i + 1) % USERS] for i in range(USERS)]


def opened(monkeypatch, data):
    """{(seed, purpose): places in the code that took its key} over a whole run, and the run."""
    places, plain_key = defaultdict(set), Streams.key

    def key(self, purpose):
        frame = sys._getframe(1)
        while frame.f_code.co_filename == randomness.__file__:
            frame = frame.f_back
        while frame.f_code.co_name in ("random", "draw", "noisy_bits"):  # helpers that draw for their caller
            frame = frame.f_back
        places[self.seed, purpose].add((frame.f_code.co_filename, frame.f_code.co_name))
        return plain_key(self, purpose)

    with monkeypatch.context() as patch:
        patch.setattr(Streams, "key", key)
        run = Simulation(load_scenario(data))
        for _ in range(ROUNDS):
            run.step()
    return places, run


def group(name, **parts):
    return {"name": name, "count": 3, "targets": {"kind": "cyclic", "per_attacker": 3}, **parts}


GROUPS = [
    group(
        "one", features={"kind": "random"}, claims={"kind": "honest-like"}, timing={"kind": "ramp", "idle": "harmless"}
    ),
    group(
        "two", features={"kind": "honest-like"}, claims={"kind": "maximal", "channel": "camouflage"}, labels="random"
    ),
    group("three", targets={"kind": "maximal-gain"}, claims={"kind": "framing"}, ties={"kind": "preferential"}),
    group(
        "four",
        claims={"kind": "adaptive"},
        knowledge=["protocol", "feedback"],
        features={"kind": "extreme", "sign": "mixed"},
    ),
]
KINDS = {
    "verification-list": "attested",
    "binary-list": "randomized-response",
    "pair-bits": "randomized-response",
    "blink-reports": "blink",
    "sampled-list": "dprr",
    "group-degrees": "ldpgen",
    "trusted-curator": "lapgraph",
}


@pytest.mark.parametrize("across", ["fresh", "memoized"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_stream_has_one_user(monkeypatch, kind, across):
    ties = {"kind": kind, "epsilon": 3.0, **({"count_share": 0.2} if kind == "pair-bits" else {})}
    data = scenario(
        RING,
        USERS,
        rounds=ROUNDS,
        privacy={
            "features": {"kind": "laplace", "epsilon": 2.0},
            "labels": {"kind": "randomized-response", "epsilon": 2.0},
            "ties": ties,
            "across_rounds": across,
        },
        population={"honest": {"availability": 0.8}, "attackers": GROUPS},
        network={"latency": {"kind": "lognormal"}, "stragglers": {"share": 0.1}, "loss": 0.1},
        server={"refinement": {"kind": KINDS[kind]}, "training": {"kind": "gnn", "epochs": 2}},
        anchors="last",
    )
    places, run = opened(monkeypatch, data)
    purposes = {purpose for _, purpose in places}
    assert {"trust", "answer", "availability", "directory", "split", "network/loss", "privacy.labels"} <= purposes
    drawn = {
        stream: users for stream, users in places.items() if not stream[1].startswith("child/")
    }  # rooms, not draws
    assert not {stream: users for stream, users in drawn.items() if len(users) > 1}
    seeds = {seed for seed, _ in places}
    assert len({tuple(Streams(seed).key(purpose).tolist()) for seed, purpose in places}) == len(places)
    rooms = [run.population.streams, run.server.pipeline.streams]
    rooms += [side for coalition in run.coalitions for side in (coalition._streams, coalition._secret)]
    assert len({room.seed for room in rooms} | {data.get("seed", 0)}) == len(rooms) + 1 and len(seeds) >= len(rooms)


def test_counters_of_different_rounds_senders_and_blocks_never_meet(monkeypatch):
    """The 256-bit counter starts at (0, block, id, epoch): a draw would meet another's only after 2^64 of its own."""
    words = set()
    for ident in (0, 1, 2, 255, 256, 2**31):
        for epoch in (0, 1, 255, 256, 2**63 + 5):
            for block in (0, 1, 2):
                words.add(tuple(Streams(3).generator("x", ident, epoch, block).bit_generator.random_raw(2).tolist()))
    assert len(words) == 6 * 5 * 3


def test_levels_and_epochs_of_a_held_entry_never_share_a_counter():
    """A held entry's word is at epoch * 256 + level: levels stay under 256, epochs under 2^56."""
    from agents.privacy.ties.verification_list import VerificationList
    from sim.scenario import Scenario

    most_levels = max(item.le for item in VerificationList.model_fields["levels"].metadata if hasattr(item, "le"))
    most_rounds = max(item.le for item in Scenario.model_fields["rounds"].metadata if hasattr(item, "le"))
    assert most_levels < 256 and most_rounds * 256 + 255 < 2**63
    places = np.array([[epoch * 256 + level for level in range(most_levels + 1)] for epoch in range(400)])
    assert len(np.unique(places)) == places.size
