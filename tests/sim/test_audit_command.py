"""`graphwarden audit`: exit codes, the table, and a user's own mechanism."""

import textwrap

import pytest
from tiny_worlds import simulation

from agents.privacy.audit import Effort
from sim.audit import STILL, audit, headline, noticed, truth_may_move
from sim.cli import guarded
from sim.kernel.randomness import Streams
from sim.premises import public_protocol
from sim.scenario import load

LIGHT = Effort(pilot=20_000, most=200_000)

BASE = {
    "name": "small",
    "rounds": 3,
    "graph": {"source": "synthetic", "nodes": 130, "dimensions": 6, "words": 2, "classes": 3},
    "privacy": {
        "features": {"kind": "multi-bit", "epsilon": 2.0},
        "ties": {"kind": "verification-list", "epsilon": 3.0, "levels": 3},
        "labels": {"kind": "randomized-response", "epsilon": 2.0},
        "across_rounds": "memoized",
    },
    "population": {"attackers": [{"name": "fakes", "count": 3, "targets": {"kind": "cyclic", "per_attacker": 4}}]},
}

LEAKY = '''
    from agents.privacy.features.multi_bit import MultiBit


    class Louder(MultiBit):
        """Multi-bit that perturbs with twice the budget it says it spends."""

        def perturb(self, features, senders, epochs, streams):
            return MultiBit(epsilon=2 * self.epsilon).perturb(features, senders, epochs, streams)

        def rectify(self, reports):
            return MultiBit(epsilon=2 * self.epsilon).rectify(reports)

        def variance(self, value, dimensions):
            return MultiBit(epsilon=2 * self.epsilon).variance(value, dimensions)
'''


def scenario(**changes):
    return load(BASE, changes).scenario


def test_a_sound_scenario_passes():
    found = audit(scenario(), LIGHT)
    assert found.exit_code == 0
    subjects = {row.subject for row in found.rows}
    assert subjects == {
        "features: multi-bit", "ties: verification-list", "labels: randomized-response", "one whole report",
    }  # fmt: skip
    whole = next(row for row in found.rows if row.subject == "one whole report")
    assert whole.claimed == pytest.approx(7.0)
    assert "not a proof" in found.text and "would notice" in found.text and "proved" not in found.text
    assert all(len(line) <= 170 for line in found.text.splitlines() if not line.startswith(("note", "no viol")))


def test_the_split_budget_of_one_report_is_what_is_audited():
    found = audit(scenario(**{"privacy.across_rounds": "split"}), Effort(5_000, 20_000))
    claims = {row.subject: row.claimed for row in found.rows if row.quantity == "epsilon"}
    assert claims["ties: verification-list"] == pytest.approx(1.0)
    assert claims["features: multi-bit"] == pytest.approx(2 / 3)
    assert claims["labels: randomized-response"] == pytest.approx(2.0)


@pytest.mark.parametrize(("part", "kind"), [(part, kind) for part, kinds in STILL.items() for kind in kinds])
def test_kinds_that_are_said_to_keep_still_move_no_list(part, kind):
    """Three rounds in which every victim accepts: no list that was reported once is ever another."""
    group = {
        "name": "fakes",
        "count": 3,
        "targets": {"kind": "cyclic", "per_attacker": 4},
        "knowledge": ["protocol", "degrees", "feedback", "labels", "graph"],
        part: {"kind": kind},
    }
    ring = [[i, (i + 1) % 24] for i in range(24)]
    run = simulation(ring, 24, rounds=3, population={"honest": {"acceptance": 1.0}, "attackers": [group]})
    for _ in range(3):
        run.step()
    assert run.population.answered and not run.ledger.moved and not truth_may_move(run.spec)


def test_memoized_reports_of_lists_that_move_are_not_private_over_rounds():
    sleeper = {"population.attackers.0.timing.kind": "sleeper"}
    assert not truth_may_move(scenario()) and truth_may_move(scenario(**sleeper))
    assert not truth_may_move(scenario(rounds=1, **sleeper))
    learning = {"claims": {"kind": "adaptive"}, "knowledge": ["protocol", "feedback"]}
    learning = {f"population.attackers.0.{key}": value for key, value in learning.items()}
    assert truth_may_move(scenario(**learning)), "it asks for more ties once it has learnt that they stand"
    found = audit(scenario(**sleeper), Effort(5_000, 20_000))
    assert "not epsilon-LDP" in found.text and found.exit_code == 0
    assert "the moment of change is visible" in found.text


def test_public_features_and_raw_lists():
    found = audit(
        scenario(**{
            "privacy.features": {"kind": "none"}, "privacy.labels": {"kind": "none"},
            "privacy.ties": {"kind": "trusted-curator", "epsilon": 1.0}, "server.refinement.kind": "none",
        }),
        LIGHT,
    )  # fmt: skip
    assert [row.verdict for row in found.rows] == ["not audited"] and found.exit_code == 0


def test_a_plugin_that_leaks_makes_the_command_fail(tmp_path, capsys):
    (tmp_path / "loud_bits.py").write_text(textwrap.dedent(LEAKY))
    file = tmp_path / "leaky.yaml"
    file.write_text(
        "name: leaky\n"
        "graph: {source: synthetic, nodes: 60, dimensions: 4, words: 2, classes: 2}\n"
        "privacy: {features: {kind: 'loud_bits:Louder', epsilon: 2.0}, ties: {kind: none}, across_rounds: fresh}\n"
        "server: {refinement: {kind: none}}\n"
    )
    assert guarded(["audit", str(file)]) == 1
    said = capsys.readouterr()
    assert "violates" in said.out and "loud_bits:Louder" in said.out and "violate their claim" in said.out
    assert "now: features" in said.err


def test_quiet_prints_nothing_and_a_bad_file_is_exit_code_2(tmp_path, capsys):
    file = tmp_path / "quiet.yaml"
    file.write_text(
        "graph: {source: synthetic, nodes: 60, dimensions: 4, words: 2, classes: 2}\n"
        "privacy: {features: {kind: none}, ties: {kind: none}}\nserver: {refinement: {kind: none}}\n"
    )
    assert guarded(["audit", str(file), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert guarded(["audit", str(file), "--set", "privacy.features.kind=piecwise"]) == 2
    assert "piecewise" in capsys.readouterr().err


def test_headline_and_columns():
    chosen = scenario(**{"privacy.features": {"kind": "gaussian", "epsilon": 1.0, "delta": 1e-6}})
    graph = chosen.graph.load(Streams(chosen.seed))
    line = headline(chosen, public_protocol(chosen, graph, 133))
    assert "delta 1e-06" in line and "6 of 6 coordinates" in line and "unit list-entry" in line
    rows = audit(scenario(), Effort(5_000, 20_000)).rows
    bias = next(row for row in rows if row.quantity == "bias")
    assert noticed(bias).startswith("+-") and noticed(rows[0]) == ""
