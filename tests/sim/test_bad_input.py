"""Bad input: exit code 2, every problem at once, each with file, line, key, what was found and what is allowed."""

import json
import os

import numpy as np
import pytest

from sim.cli import guarded
from sim.kernel.errors import InputError

GOOD = """\
name: good
seed: 1
rounds: 1
graph: {source: synthetic, nodes: 60, dimensions: 40, classes: 2}
privacy:
  features: {kind: piecewise, epsilon: 1.0}
  ties: {kind: verification-list, epsilon: 5.0, levels: 3}
population:
  attackers:
    - {name: fakes, count: 3, targets: {kind: cyclic, per_attacker: 4}}
server:
  training: {epochs: 3}
anchors: none
"""

BROKEN = [
    ("rounds: 1", "rouns: 1", ["3: rouns: unknown key 'rouns'", "did you mean 'rounds'?"]),
    ("rounds: 1", "rounds: one", ["3: rounds: found 'one' (text)", "a whole number >= 1"]),
    ("rounds: 1", "rounds: true", ["3: rounds: found true (true/false)", "a whole number"]),
    ("epsilon: 1.0", "epsilon: .nan", ["6: privacy.features.epsilon: found nan", "finite"]),
    ("epsilon: 5.0", "epsilon: .inf", ["7: privacy.ties.epsilon: found inf"]),
    ("epsilon: 5.0", "epsilon: 0", ["7: privacy.ties.epsilon: found 0", "a number > 0"]),
    ("epsilon: 5.0", "epsilon: '5.0'", ["7: privacy.ties.epsilon: found '5.0' (text)"]),
    ("levels: 3", "levels: 0", ["7: privacy.ties.levels: found 0", ">= 1"]),
    ("count: 3", "share: 1.5", ["10: population.attackers.0.share: found 1.5", "<= 1"]),
    ("classes: 2}", "classes: 2, split: {train: 0.9, validation: 0.2}}", ["4: graph.split", "sum"]),
    ("per_attacker: 4", "per_attacker: 61", ["10: population.attackers.0.targets.per_attacker: found 61", "60 nodes"]),
    (
        "kind: piecewise",
        "kind: piecewize",
        ["6: privacy.features.kind: unknown kind 'piecewize'", "did you mean 'piecewise'?"],
    ),
    ("source: synthetic", "source: coral", ["4: graph.source: unknown source 'coral'", "did you mean 'cora'?"]),
    ("training: {epochs: 3}", "training: 3", ["12: server.training: found 3", "a mapping"]),
    ("anchors: none", "anchors: never", ["13: anchors: found 'never'", "'none' | 'last' | 'each'"]),
    ("seed: 1", "seed: 1\nseed: 2", ["3: key 'seed' appears twice"]),
    ("seed: 1", "seed: [", ["not valid YAML"]),
    (
        "kind: verification-list, epsilon: 5.0, levels: 3",
        "kind: pair-bits, epsilon: 1.0",
        ["server.refinement.kind", "auto"],
    ),
    ("  training: {epochs: 3}", "\ttraining: {epochs: 3}", [":12: not valid YAML: found a tab"]),
    ("rounds: 1", "rounds: &r [*r]", ["a value contains itself"]),
    ("anchors: none", "anchors: none\n---\nname: more", ["found a second document"]),
    (
        "training: {epochs: 3}",
        "refinement: {kind: feature-prior}",
        ["'feature-prior' works on public features; found privacy.features.kind 'piecewise'"],
    ),
]


@pytest.mark.parametrize("old, new, expected", BROKEN, ids=[new[:40] for _, new, _ in BROKEN])
def test_a_broken_file_gets_its_message(old, new, expected, tmp_path, capsys):
    assert old in GOOD
    file = tmp_path / "broken.yaml"
    file.write_text(GOOD.replace(old, new))
    assert guarded(["run", str(file), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert str(file) in said and "Traceback" not in said
    for part in expected:
        assert part in said
    assert not (tmp_path / "out").exists()


def test_all_problems_of_a_file_come_at_once_in_order(tmp_path, capsys):
    text = GOOD
    for old, new, _ in (BROKEN[0], BROKEN[5], BROKEN[7], BROKEN[11], BROKEN[14]):
        text = text.replace(old, new, 1)
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    assert guarded(["validate", str(file)]) == 2
    lines = [int(line.split(":")[1]) for line in capsys.readouterr().err.strip().splitlines()]
    assert lines == [3, 6, 6, 7, 13] or lines == [3, 6, 7, 7, 13]


def test_missing_empty_and_wrong_files(tmp_path, capsys):
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    for name, message in (
        ("gone.yaml", "no such file"),
        ("empty.yaml", "is empty"),
        ("list.yaml", "expected a mapping"),
        ("bytes.yaml", "is not UTF-8 text"),
        ("", "found a folder"),
    ):
        assert guarded(["validate", str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err


@pytest.fixture
def good(tmp_path):
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    return file


def test_an_output_folder_that_holds_a_run_is_refused(good, tmp_path, capsys):
    assert guarded(["run", str(good), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    before = (tmp_path / "out" / "rounds.csv").read_bytes()
    assert guarded(["run", str(good), "--out", str(tmp_path / "out")]) == 2
    assert "already holds a finished run" in capsys.readouterr().err
    assert (tmp_path / "out" / "rounds.csv").read_bytes() == before
    assert guarded(["run", "--resume", str(tmp_path / "out")]) == 2
    assert "finished" in capsys.readouterr().err
    assert guarded(["run", "--resume", str(tmp_path / "nowhere")]) == 2


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"graph.split.train": 0.001}, "is nobody to train on"),
        ({"population.attackers.0.features": {"kind": "mimic-class", "label": 7}}, "group 'fakes': mimic-class: found"),
        (
            {
                "population.attackers.0.targets": {"kind": "class", "label": 9},
                "population.attackers.0.knowledge": ["protocol", "labels"],
            },
            "group 'fakes': class targets: nobody",
        ),
        (
            {"server.refinement": {"kind": "edgerefine", "edge_count": "noisy"}},
            "edgerefine: edge_count 'noisy' needs pair-bits reports",
        ),
    ],
)
def test_what_only_the_graph_shows_to_be_impossible_leaves_no_folder_behind(good, tmp_path, settings, message, capsys):
    arguments = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
    assert guarded(["run", str(good), "--out", str(tmp_path / "out"), "-q", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_graph_of_one_node_is_refused(tmp_path, capsys):
    np.savez(tmp_path / "one.npz", edge_index=np.zeros((2, 0), int), y=np.zeros(1, int), x=np.ones((1, 2)))
    file = tmp_path / "one.yaml"
    file.write_text("graph: {source: file, path: one.npz}\nprivacy: {unit: whole-list, features: {kind: none}}\n")
    assert guarded(["run", str(file), "--out", str(tmp_path / "out")]) == 2
    assert "has 1 node; expected at least 2" in capsys.readouterr().err


def test_a_sweep_is_not_a_scenario_and_a_scenario_is_no_sweep(good, tmp_path, capsys):
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("scenario: good.yaml\nseeds: 2\n")
    assert guarded(["run", str(sweep)]) == 2
    assert "found a sweep file, expected a scenario file; use `graphwarden sweep`" in capsys.readouterr().err
    for command in ("sweep", "tune"):
        assert guarded([command, str(good)]) == 2
        assert "found a scenario file" in capsys.readouterr().err


def test_a_full_disk_ends_the_run_in_one_line_and_it_can_be_resumed(good, tmp_path, monkeypatch, capsys):
    out, sync = tmp_path / "out", os.fsync
    monkeypatch.setattr("os.fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert guarded(["run", str(good), "--out", str(out), "-q", "--set", "rounds=2"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"{out}: cannot write: No space left on device") and "--resume" in said
    monkeypatch.setattr("os.fsync", sync)
    assert guarded(["run", "--resume", str(out), "-q"]) == 0
    assert len((out / "rounds.csv").read_text().splitlines()) == 3


def test_a_path_that_the_system_refuses_is_named(good, capsys):
    assert guarded(["run", str(good), "--out", "x" * 400]) == 1
    said = capsys.readouterr().err
    assert "File name too long" in said and "Traceback" not in said


def test_a_run_that_needs_more_memory_than_there_is_says_so(good, tmp_path, monkeypatch, capsys):
    def nothing_left(*_):
        raise MemoryError("Unable to allocate 10 GiB")

    monkeypatch.setattr("sim.engine.Simulation.step", nothing_left)
    assert guarded(["run", str(good), "--out", str(tmp_path / "out"), "-q"]) == 1
    assert capsys.readouterr().err == "out of memory: Unable to allocate 10 GiB\n"


def test_a_name_is_no_path(good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert guarded(["run", str(good), "-q", "--set", "name=../../a b/c"]) == 0
    assert [folder.name[:6] for folder in (tmp_path / "below" / "runs").iterdir()] == ["a-b-c-"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--set", "server.pruning.gama=3"], "server.pruning.gama: unknown key 'gama'"),
        (["--set", "population.attackers.4.share=0.1"], "has 1 items; found index 4"),
        (["--set", "rounds"], "expected KEY=VALUE"),
        (
            ["--set", "privacy.ties.kind=group-degrees", "--set", "server.refinement.kind=none"],
            "privacy.ties.kind 'group-degrees' sends group-degrees",
        ),
        (["--set", "rounds.x=3"], "holds a single value"),
        (["--set", "server.suspicion.kind=meangap"], "did you mean 'mean-gap'?"),
        (["--set", "server.pruning.kind=none", "--set", "server.pruning.gamma=3"], "server.pruning.gamma: unknown key"),
    ],
)
def test_bad_overrides(good, arguments, message, capsys):
    assert guarded(["validate", str(good), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_overrides_of_a_kind_keep_what_the_new_kind_knows(tmp_path, capsys):
    from sim.scenario import load

    file = tmp_path / "a.yaml"
    file.write_text(GOOD + "")
    loaded = load(
        file, {"privacy.ties.epsilon": 2, "privacy.ties.kind": "binary-list", "population.attackers.0.count": 5}
    )
    ties = loaded.scenario.privacy.ties
    assert (ties.kind, ties.epsilon) == ("binary-list", 2.0)
    assert any("no 'levels'" in note for note in loaded.notes)
    assert loaded.scenario.population.attackers[0].count == 5


def test_unknown_commands_and_options(capsys):
    for arguments in (["bogus"], ["run"], ["validate"], ["list", "nonsense"], ["run", "a.yaml", "--bogus"]):
        assert guarded(arguments) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_yaml_scalars_are_read_as_a_user_means_them():
    from sim.document import parse

    data = parse("a: 1e-3\nb: no\nc: on\nd: true\ne: 2024-01-01\nf: 1_000\ng: .5\nh: 1.", "x").data
    assert data["a"] == 1e-3 and data["b"] == "no" and data["c"] == "on" and data["d"] is True
    assert data["e"] == "2024-01-01" and data["g"] == 0.5 and data["h"] == 1.0


def test_the_resolved_scenario_loads_to_an_equal_one(good, tmp_path):
    from sim.scenario import load_scenario

    scenario = load_scenario(good)
    (tmp_path / "again.yaml").write_text(scenario.to_yaml())
    assert load_scenario(tmp_path / "again.yaml") == scenario


def test_a_run_and_a_sweep_do_not_share_a_folder(good, tmp_path, capsys):
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("scenario: good.yaml\nset: {server.training.epochs: 1}\n")
    assert guarded(["run", str(good), "-q", "--out", str(tmp_path / "run")]) == 0
    assert guarded(["sweep", str(sweep), "-q", "--out", str(tmp_path / "run")]) == 2
    assert "already holds a run" in capsys.readouterr().err
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "sweep.json").write_text("{}")
    assert guarded(["run", str(good), "-q", "--out", str(tmp_path / "sweep")]) == 2
    assert "already holds a sweep" in capsys.readouterr().err


def test_a_notebook_may_hand_over_tuples_and_numpys_numbers():
    from sim.scenario import load_scenario

    data = {"graph": {"source": "karate"}, "population": {"attackers": ({"count": np.int64(2)},)}}
    loaded = load_scenario(data, seed=np.int32(3), **{"privacy.ties.epsilon": np.float64(2.5)})
    assert (loaded.seed, loaded.population.attackers[0].count, loaded.privacy.ties.epsilon) == (3, 2, 2.5)
    for wrong in (3, None, ["a.yaml"]):
        with pytest.raises(InputError, match="expected the path of a scenario file"):
            load_scenario(wrong)


def test_a_users_module_that_fails_to_load_is_named_with_its_line(good, tmp_path, capsys):
    (tmp_path / "failing_rule.py").write_text("\nprint(undefined_name)\n")
    assert guarded(["validate", str(good), "--set", "server.pruning.kind=failing_rule:Rule"]) == 2
    said = capsys.readouterr().err
    assert "cannot load 'failing_rule:Rule': NameError" in said and "failing_rule.py, line 2" in said
