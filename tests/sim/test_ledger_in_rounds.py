"""The ledger in whole runs, against sums worked by hand: every kind of noise over rounds, every unit, every protocol."""

import numpy as np
import pytest
from tiny_worlds import scenario, simulation

from agents.privacy.ties.pairing import reporter
from sim.engine import Simulation
from sim.scenario import load_scenario

USERS, ROUNDS = 10, 3
TIES = [[i, (i + 1) % USERS] for i in range(USERS)]
SLEEPERS = {
    "name": "late",
    "count": 2,
    "targets": {"kind": "same-victims", "per_attacker": 3},
    "ties": {"kind": "none"},
    "timing": {"kind": "sleeper", "wake": 2},
}
WELCOMING = {"trust": {"kind": "maximal"}, "acceptance": 1.0, "vigilance": 0.0}
PROTOCOLS = {
    "verification-list": {"kind": "verification-list", "levels": 3},
    "binary-list": {"kind": "binary-list"},
    "pair-bits": {"kind": "pair-bits"},
    "pair-bits and a count": {"kind": "pair-bits", "count_share": 0.25},
    "blink, two lists": {"kind": "blink-reports", "delta": 0.25},
    "blink, one bit": {"kind": "blink-reports", "delta": 0.25, "evidence": "single-bit"},
    "sampled-list": {"kind": "sampled-list"},
    "group-degrees": {"kind": "group-degrees"},
    "trusted-curator": {"kind": "trusted-curator"},
    "none": {"kind": "none"},
}


def played(ties, rounds=ROUNDS, privacy=None, **sections):
    """A run's honest ledger totals after its last round, and the run."""
    ties = {**ties, **({} if ties["kind"] == "none" else {"epsilon": 4.0})}
    server = {"refinement": {"kind": "ldpgen" if ties["kind"] == "group-degrees" else "none"}}
    run = simulation(
        TIES, USERS, rounds=rounds, privacy={**(privacy or {}), "ties": ties}, server=server, observer=False, **sections
    )
    for _ in range(rounds):
        run.step()
    totals = run.ledger.totals()
    assert (totals.epsilon[USERS:] == 0).all(), "injected users have nothing to lose"
    return totals, run


@pytest.mark.parametrize("unit", ["list-entry", "undirected-tie", "whole-list"])
@pytest.mark.parametrize("across", ["fresh", "split", "memoized"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_truths_that_stay_cost_what_the_scenario_says(name, across, unit):
    """4.0 in the scenario's own unit: once a round when fresh, once a run when split or memoized; a trusted curator
    publishes anew in every round. Features cost 0.5 likewise."""
    privacy = {"unit": unit, "across_rounds": across, "features": {"kind": "piecewise", "epsilon": 0.5}}
    totals, _ = played(PROTOCOLS[name], privacy=privacy)
    times = ROUNDS if across == "fresh" else 1
    if name == "trusted-curator" and across == "memoized":
        times = ROUNDS
    assert totals.epsilon_ties[:USERS] == pytest.approx(np.full(USERS, 0.0 if name == "none" else 4.0 * times))
    features = ROUNDS * 0.5 if across == "fresh" else 0.5
    assert totals.epsilon_features[:USERS] == pytest.approx(np.full(USERS, features))


@pytest.mark.parametrize(
    ("name", "unit", "victim", "other"),
    [
        # Two strangers are taken in before round 2. An entry costs 4 for each of the two levels that it held.
        ("verification-list", "list-entry", 8.0, 4.0),
        # A tie between honest users: 2 at either end. One with a stranger: 2 for each of two levels, at one end.
        ("verification-list", "undirected-tie", 4.0, 4.0),
        # 4/11 an entry, 11 entries, two of them twice.
        ("verification-list", "whole-list", 4.0 + 2 * 4 / 11, 4.0),
        ("binary-list", "list-entry", 8.0, 4.0),
        # The whole list is answered anew when one entry moves, so every entry costs 4 twice.
        ("sampled-list", "list-entry", 8.0, 4.0),
        ("sampled-list", "whole-list", 8.0, 4.0),
        ("sampled-list", "undirected-tie", 8.0, 6.0),  # 2 x 2 at the end of any victim, 2 at that of anybody else
        ("trusted-curator", "list-entry", 12.0, 12.0),
    ],
)
def test_strangers_taken_in_later_are_charged_to_their_victims(name, unit, victim, other):
    privacy = {"unit": unit, "across_rounds": "memoized"}
    totals, run = played(PROTOCOLS[name], privacy=privacy, population={"honest": WELCOMING, "attackers": [SLEEPERS]})
    victims = np.unique([v for v, a in run.population.answered])
    assert len(victims) == 3 and len(run.population.answered) == 6
    held = totals.epsilon_ties[:USERS]
    assert held[victims] == pytest.approx(np.full(3, victim))
    assert np.delete(held, victims) == pytest.approx(np.full(USERS - 3, other))
    assert run.ledger.moved == (name != "trusted-curator")


def test_a_pair_bit_and_a_count_are_charged_apart():
    """3 for a bit and 1 for a count. A victim's count is drawn again with its list, a bit only where it is its own."""
    attackers = [{**SLEEPERS, "count": 1}]
    totals, run = played(
        PROTOCOLS["pair-bits and a count"],
        privacy={"across_rounds": "memoized"},
        population={"honest": WELCOMING, "attackers": attackers},
    )
    owners = {v: int(reporter(v, a)) == v for v, a in run.population.answered}
    expected = [4.0 if v not in owners else 8.0 if owners[v] else 5.0 for v in range(USERS)]
    assert len(owners) == 3 and totals.epsilon_ties[:USERS] == pytest.approx(expected)


@pytest.mark.parametrize("across", ["fresh", "memoized"])
def test_users_pay_for_what_they_send_lost_or_not_and_for_nothing_else(across):
    """The unit is one entry of one list: a report a round online costs 4.5, or once in all when memoized."""
    privacy = {"across_rounds": across, "features": {"kind": "piecewise", "epsilon": 0.5}}
    online = []
    for loss in (0.0, 1.0):
        totals, run = played(
            PROTOCOLS["binary-list"],
            privacy=privacy,
            population={"honest": {**WELCOMING, "availability": 0.4}},
            network={"loss": loss},
        )
        online = sum(run.population.available(round).astype(int) for round in range(1, ROUNDS + 1))
        assert {0, 1} < set(online.tolist())
        times = online if across == "fresh" else np.minimum(online, 1)
        assert totals.epsilon[:USERS] == pytest.approx(4.5 * times)
    assert run.outcome.learned.structure.u.size == 0


def test_in_the_unit_of_a_tie_a_silent_user_pays_for_its_partners_reports():
    """2 for each report of either end: a user pays its own and those of the most talkative other one."""
    totals, run = played(
        PROTOCOLS["binary-list"],
        privacy={"unit": "undirected-tie", "across_rounds": "fresh"},
        population={"honest": {**WELCOMING, "availability": 0.4}},
    )
    online = sum(run.population.available(round).astype(int) for round in range(1, ROUNDS + 1))
    others = [np.delete(online, user).max() for user in range(USERS)]
    assert 0 in online.tolist() and totals.epsilon_ties[:USERS] == pytest.approx(2.0 * (online + others))


@pytest.mark.parametrize("unit", ["list-entry", "undirected-tie", "whole-list"])
@pytest.mark.parametrize("across", ["fresh", "split", "memoized"])
@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name != "none"])
def test_nobody_outspends_its_lifetime_whatever_moves(name, across, unit):
    """Victims' lists move in every round; one round costs 4.5 (1.5 when split), and 9.3 is there to spend."""
    attackers = [{**SLEEPERS, "name": f"wave {wake}", "timing": {"kind": "sleeper", "wake": wake}} for wake in (2, 3)]
    totals, run = played(
        PROTOCOLS[name],
        privacy={
            "unit": unit,
            "across_rounds": across,
            "features": {"kind": "piecewise", "epsilon": 0.5},
            "lifetime_epsilon": 9.3,
        },
        population={"honest": WELCOMING, "attackers": attackers},
    )
    assert totals.epsilon.max() <= 9.3 * (1 + 1e-9)
    assert run.ledger.affordable == (3 if across == "split" else 2)
    assert totals.epsilon.max() >= 4.5


def test_a_ledger_of_a_checkpoint_knows_who_is_honest():
    first = simulation(TIES, USERS, rounds=2, population={"honest": WELCOMING, "attackers": [SLEEPERS]})
    first.step()
    second = Simulation(
        load_scenario(scenario(TIES, USERS, rounds=2, population={"honest": WELCOMING, "attackers": [SLEEPERS]}))
    )
    second.restore(first.checkpoint())
    assert second.ledger.totals().epsilon.tolist() == first.ledger.totals().epsilon.tolist()
    assert (first.ledger.totals().epsilon_ties[:USERS] > 0).all()
