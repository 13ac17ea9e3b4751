"""Advice before a run: closed forms by hand, the levels that a budget calls for, warnings, and the command."""

import math

import pytest

from sim.advise import advise, levels_row, victim_answers, warning
from sim.cli import guarded


def test_expected_pairs_by_hand():
    # 2,708 users, 5,278 ties, epsilon 5, five levels: (1 - q)^2 and q0^2.
    row = levels_row(2708, 2 * 5278 / 2708, 5.0, 5, "maximal")
    q = 1 / (math.exp(5) + 5)
    others = 2708 * 2707 / 2 - 5278
    assert row.true_ties == pytest.approx(5278 * (1 - q) ** 2)
    assert row.false_ties == pytest.approx(others * (5 * q) ** 2)
    assert row.gate_f1 == pytest.approx(2 * row.true_ties / (row.true_ties + row.false_ties + 5278))
    assert (round(row.true_ties), round(row.false_ties)) == (5209, 3888)


@pytest.mark.parametrize(
    ("epsilon", "levels", "trust", "best"),
    [
        (5.0, 5, "maximal", 0.952),
        (3.0, 5, "maximal", 0.467),
        (5.0, 2, "maximal", 0.972),
        (5.0, 5, "independent", 0.725),
    ],
)
def test_best_use_of_levels(epsilon, levels, trust, best):
    assert levels_row(2708, 3.9, epsilon, levels, trust).levels_f1 == pytest.approx(best, abs=0.005)


def test_answers_of_a_victim():
    # Accepts 0.5; recognises 0.9 of strangers and rates them 1; else its trust model, here always 3.
    assert victim_answers(3, 0.5, 0.9, "maximal") == pytest.approx([0.5, 0.45, 0.0, 0.05])
    assert victim_answers(4, 1.0, 0.0, "independent") == pytest.approx([0, 0.25, 0.25, 0.25, 0.25])


@pytest.mark.parametrize("epsilon", [3.0, 4.0])
def test_one_level_beats_five_at_small_budgets(epsilon):
    found = advise(2708, 3.9, epsilon, 5)
    assert found.best_levels == 1
    assert any("1 level would give" in sentence for sentence in found.words)


def test_detection_grows_with_targets_and_budget():
    rows = {epsilon: advise(2708, 3.9, epsilon, 5).by_targets for epsilon in (3.0, 5.0)}
    for found in rows.values():
        assert [row.targets for row in found] == [2, 5, 12, 50]
        assert found[0].auc < found[1].auc < found[2].auc
    assert rows[3.0][2].power < 0.5 < 0.95 < rows[5.0][2].power
    # 27 attackers with 12 targets: half refuse (then only noise gets through), the rest is answered.
    q = 1 / (math.exp(5) + 5)
    assert rows[5.0][2].attack_ties == pytest.approx(324 * (1 - q) * (0.5 * (1 - q) + 0.5 * 5 * q))


def test_no_attackers_no_detection():
    found = advise(500, 4.0, 5.0, 5, share=0.0)
    assert found.by_targets == () and not any("over-claimers" in sentence for sentence in found.words)


def test_hopeless_budgets_are_said():
    assert warning(2.0, 5) is not None and warning(2.1, 5) is None
    assert "40 %" in str(warning(2.0, 5))
    assert advise(2708, 3.9, 1.0, 5).warning == warning(1.0, 5)
    assert any("no number of levels" in sentence for sentence in advise(2708, 3.9, 2.0, 5).words)


def test_impossible_questions_are_refused():
    with pytest.raises(ValueError, match="nodes 1"):
        advise(1, 1.0, 5.0, 5)
    with pytest.raises(ValueError, match="30 targets per attacker; allowed: at most the 20 nodes"):
        advise(20, 2.0, 5.0, 5, targets=30)


SCENARIO = """
graph: {source: karate}
privacy: {features: {kind: none}, unit: undirected-tie, ties: {kind: verification-list, epsilon: 8.0, levels: 3}}
population: {attackers: [{name: fakes, share: 0.1, targets: {kind: cyclic, per_attacker: 4}}]}
"""


def test_command_uses_the_local_budget(tmp_path, capsys):
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    assert guarded(["advise", str(path)]) == 0
    out = capsys.readouterr().out
    assert "local epsilon 4" in out and "3 *" in out  # two ends report, so each has half
    assert guarded(["advise", str(path), "--set", "privacy.ties.epsilon=3"]) == 0
    assert "warning: at a local tie budget of 1.5" in capsys.readouterr().out


def test_command_needs_lists_from_both_ends(tmp_path, capsys):
    path = tmp_path / "pairs.yaml"
    path.write_text("graph: {source: karate}\nprivacy: {ties: {kind: pair-bits, epsilon: 2.0}, features: {kind: none}}\n"
                    "server: {refinement: {kind: randomized-response}}\n")  # fmt: skip
    assert guarded(["advise", str(path)]) == 2
    assert "sends pair-bits reports" in capsys.readouterr().err


def test_run_warns_where_nothing_can_work(tmp_path, capsys):
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO + "server: {training: {kind: none}}\nanchors: none\n")
    assert guarded(["run", str(path), "--out", str(tmp_path / "run"), "--set", "privacy.ties.epsilon=2"]) == 0
    assert "no rule recovers a useful graph" in capsys.readouterr().err
