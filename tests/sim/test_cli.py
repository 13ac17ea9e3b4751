"""The command, as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from sim.cli import guarded

SCENARIO = """\
name: tiny
seed: 2
rounds: {rounds}
graph: {{source: synthetic, nodes: {nodes}, dimensions: 40, classes: 2}}
privacy: {{features: {{kind: piecewise, epsilon: 1.0}}, ties: {{kind: verification-list, epsilon: 5.0, levels: 3}}}}
population: {{attackers: [{{name: fakes, count: 3, targets: {{kind: cyclic, per_attacker: 4}}}}]}}
server: {{training: {{epochs: {epochs}}}, pruning: {{kind: threshold, gamma: 0.5}}}}
anchors: none
"""


def write(folder, rounds=2, nodes=60, epochs=3):
    file = folder / "tiny.yaml"
    file.write_text(SCENARIO.format(rounds=rounds, nodes=nodes, epochs=epochs))
    return file


def graphwarden(*arguments, **options):
    code = "import sys; from sim.cli import guarded; sys.exit(guarded(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )


def test_run_writes_a_run_directory(tmp_path, capsys):
    assert (
        guarded(["run", str(write(tmp_path)), "--out", str(tmp_path / "a"), "--set", "name=other", "--seed", "9"]) == 0
    )
    said = capsys.readouterr().out
    assert "accuracy on honest test users" in said and "written to" in said
    names = {file.name for file in (tmp_path / "a").iterdir()}
    assert names == {"scenario.yaml", "environment.json", "rounds.csv", "groups.csv", "agents.parquet", "summary.json"}
    rounds = pd.read_csv(tmp_path / "a" / "rounds.csv")
    assert rounds["round"].tolist() == [1, 2] and (rounds["seed"] == 9).all()
    assert len(pd.read_parquet(tmp_path / "a" / "agents.parquet")) == 63
    assert json.loads((tmp_path / "a" / "environment.json").read_text())["versions"]["mesa"]
    assert json.loads((tmp_path / "a" / "summary.json").read_text())["name"] == "other"
    assert guarded(["run", str(tmp_path / "a" / "scenario.yaml"), "--out", str(tmp_path / "b"), "--quiet"]) == 0
    again = pd.read_csv(tmp_path / "b" / "rounds.csv")
    same = [c for c in rounds if not c.startswith("seconds_") and c != "peak_memory_mb"]
    pd.testing.assert_frame_equal(rounds[same], again[same])


def test_quiet_is_quiet(tmp_path, capsys):
    assert guarded(["run", str(write(tmp_path)), "--out", str(tmp_path / "a"), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


def test_an_interrupt_leaves_the_finished_rounds_and_the_run_resumes(tmp_path):
    file, out = write(tmp_path, rounds=400, nodes=200, epochs=20), tmp_path / "out"
    code = "import sys; from sim.cli import guarded; sys.exit(guarded(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", str(file), "--out", str(out)], stderr=subprocess.PIPE, text=True
    )
    rounds = out / "rounds.csv"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (rounds.exists() and rounds.read_text().count("\n") >= 3):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in said and "interrupted" in said
    done = rounds.read_text().count("\n") - 1
    assert 2 <= done < 400 and not (out / "summary.json").exists()
    text = (out / "scenario.yaml").read_text()
    (out / "scenario.yaml").write_text(text.replace("rounds: 400", f"rounds: {done + 1}"))
    assert guarded(["run", "--resume", str(out), "--quiet"]) == 0
    assert pd.read_csv(rounds)["round"].tolist() == list(range(1, done + 2))


def test_list_schema_and_version_answer(capsys):
    for arguments, wanted in (
        (["list"], "server.suspicion"),
        (["list", "suspicion"], "mean-gap"),
        (["list", "columns"], "gain_retained"),
        (["list", "graphs"], "cora"),
        (["--version"], "graphwarden 0."),
        (["schema"], '"verification-list"'),
        (["--help"], "validate"),
    ):
        assert guarded(arguments) == 0
        assert wanted in capsys.readouterr().out


def test_every_shipped_scenario_fits_the_schema(capsys):
    from pathlib import Path

    jsonschema = pytest.importorskip("jsonschema")
    from sim.document import read
    from sim.listing import scenario_schema

    schema = scenario_schema()
    for file in sorted(Path("scenarios").rglob("*.yaml")):
        data = read(file).data
        if "graph" in data:
            jsonschema.validate(data, schema)


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["validate", "scenarios/quickstart.yaml"]])
def test_light_commands_load_neither_torch_nor_pyg_nor_mesa(arguments):
    code = (
        "import sys; from sim.cli import guarded; code = guarded(sys.argv[1:]);"
        "heavy = {'torch', 'torch_geometric', 'mesa', 'pandas', 'numba', 'sklearn', 'ray'} & set(sys.modules);"
        "print(sorted(heavy), file=sys.stderr); sys.exit(code or bool(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_clash_of_package_names_is_explained(tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import sim.cli; sys.exit(sim.cli.guarded(['list']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "another installed package has the same name" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_resume_survives_a_torn_checkpoint_with_a_message(tmp_path, capsys):
    out = tmp_path / "out"
    assert guarded(["run", str(write(tmp_path)), "--out", str(out), "--quiet"]) == 0
    (out / "summary.json").unlink()
    (out / "checkpoint.pickle").write_bytes(b"torn")
    assert guarded(["run", "--resume", str(out)]) == 2
    assert "delete it to start the run again" in capsys.readouterr().err
    (out / "checkpoint.pickle").unlink()
    assert guarded(["run", "--resume", str(out), "--quiet"]) == 0
    assert len(pd.read_csv(out / "rounds.csv")) == 2


def test_a_users_own_component_travels_with_the_run(tmp_path, capsys):
    (tmp_path / "own_rule.py").write_text(
        "import numpy as np\n"
        "from server.pruning import Decision, Pruning\n\n"
        "class Nobody(Pruning):\n"
        "    '''Nobody.'''\n\n"
        "    def decide(self, suspicion, context):\n"
        "        return Decision(np.zeros(len(suspicion.score), dtype=bool), float('inf'))\n"
    )
    file = write(tmp_path)
    file.write_text(file.read_text().replace("{kind: threshold, gamma: 0.5}", "{kind: 'own_rule:Nobody'}"))
    assert graphwarden("run", file, "--out", tmp_path / "out", "--quiet").returncode == 0
    (tmp_path / "own_rule.py").unlink()
    again = graphwarden("run", tmp_path / "out" / "scenario.yaml", "--out", tmp_path / "again", "--quiet")
    assert again.returncode == 0, again.stderr


def test_a_failing_run_says_where_and_exits_1(tmp_path, capsys):
    arguments = ["--out", str(tmp_path / "out"), "--set", "server.pruning.gamma=-100"]
    assert guarded(["run", str(write(tmp_path)), *arguments]) == 1
    said = capsys.readouterr().err
    assert "round 1, training: all 30 training users are pruned" in said and "Traceback" not in said


@pytest.mark.parametrize("name", ["quickstart", "quickstart.yaml", "scenarios/populations/stealth.yaml"])
def test_shipped_scenarios_are_found_by_name_from_anywhere(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert guarded(["validate", name]) == 0
    (tmp_path / "quickstart.yaml").write_text("name: 5\n")
    assert guarded(["validate", "quickstart.yaml"]) == 2, "a file of the user's own comes first"
    assert guarded(["validate", "../quickstart"]) == 2


def test_a_terminal_that_knows_ascii_only_gets_question_marks(tmp_path):
    sweep = tmp_path / "sweep.yaml"
    write(tmp_path, rounds=1)
    sweep.write_text("scenario: tiny.yaml\nseeds: 2\n")
    code = "import sys; from sim.cli import main; main()"
    arguments = [sys.executable, "-c", code, "sweep", str(sweep), "--out", str(tmp_path / "out"), "--workers", "1"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, env=plain)
    assert done.returncode == 0, done.stderr
    assert "0." in done.stdout and "\u00b1" not in done.stdout
