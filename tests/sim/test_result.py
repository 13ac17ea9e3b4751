"""`sim.run`, `sim.load_scenario` and `Result`, as a notebook uses them."""

import subprocess
import sys

import pandas as pd
import pytest

import sim
from sim.columns import AGENT, GROUP, ROUND, TIMING
from sim.kernel.errors import InputError

SCENARIO = {
    "name": "tiny",
    "seed": 5,
    "rounds": 2,
    "graph": {"source": "synthetic", "nodes": 60, "dimensions": 40, "classes": 2},
    "privacy": {"features": {"epsilon": 1.0}, "ties": {"epsilon": 5.0, "levels": 3}},
    "population": {"attackers": [{"name": "fakes", "count": 3, "targets": {"kind": "cyclic", "per_attacker": 4}}]},
    "server": {"training": {"epochs": 3}, "pruning": {"kind": "threshold", "gamma": 0.5}},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """One finished run, in memory and on disk."""
    return sim.run(SCENARIO, out=tmp_path_factory.mktemp("runs") / "tiny")


def steady(table):
    return table.drop(columns=[c for c in table if c in TIMING])


def test_tables_have_the_columns_that_are_documented(written):
    assert list(written.rounds) == [c.name for c in ROUND] and written.rounds["round"].tolist() == [1, 2]
    assert list(written.groups) == [c.name for c in GROUP] and written.groups["group"].tolist() == ["fakes", "fakes"]
    assert list(written.agents) == [c.name for c in AGENT]
    assert written.agents["kind"].value_counts().to_dict() == {"honest": 60, "attacker": 3}
    assert written.agents["agent"].tolist() == list(range(63)) and set(written.agents["group"]) == {"", "fakes"}


def test_tables_agree_with_each_other(written):
    last, agents = written.rounds.iloc[-1], written.agents
    assert last["edges"] == last["edges_true"] + last["edges_false"] + last["edges_attack"]
    attacker = agents["kind"] == "attacker"
    assert last["pruned_attackers"] == agents.loc[attacker, "flagged"].sum()
    assert last["pruned_honest"] == agents.loc[~attacker, "flagged"].sum()
    assert last["epsilon_max"] == agents.loc[~attacker, "epsilon"].max() == pytest.approx(6.0)
    assert written.groups.iloc[-1]["victims"] == agents["victim"].sum()


def test_the_summary_holds_the_last_round_and_the_seconds_of_all(written):
    assert written.summary["last_round"]["test_accuracy"] == written.rounds["test_accuracy"].iloc[-1]
    assert written.summary["seconds"]["total"] == pytest.approx(written.rounds["seconds_total"].sum())
    assert (written.summary["name"], written.summary["seed"], written.summary["rounds"]) == ("tiny", 5, 2)


def test_what_does_not_exist_is_nan_and_a_number_column(written):
    first = written.rounds.iloc[0]
    assert pd.isna(first["accuracy_no_edges"]) and pd.isna(first["edge_weight_true"])
    assert pd.api.types.is_float_dtype(written.rounds["edge_weight_true"])


def test_a_directory_reads_back_equal(written):
    again = sim.Result.read(written.directory)
    assert again.scenario == written.scenario and again.directory == written.directory
    pd.testing.assert_frame_equal(again.rounds, written.rounds, check_dtype=False)
    pd.testing.assert_frame_equal(again.groups, written.groups, check_dtype=False)
    pd.testing.assert_frame_equal(again.agents, written.agents, check_dtype=False)
    assert again.summary == written.summary and again.notes == written.notes
    assert sim.Result.read(str(written.directory)).summary == written.summary


def test_a_run_in_memory_is_the_run_on_disk(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = sim.run(SCENARIO)
    assert result.directory is None and not list(tmp_path.iterdir())
    pd.testing.assert_frame_equal(steady(result.rounds), steady(written.rounds))
    pd.testing.assert_frame_equal(result.agents, written.agents)


def test_a_scenario_is_plain_data_a_path_or_loaded(written, tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(written.scenario.to_yaml())
    loaded = sim.load_scenario(SCENARIO)
    assert sim.load_scenario(file) == sim.load_scenario(str(file)) == loaded
    for source in (file, loaded):
        pd.testing.assert_frame_equal(steady(sim.run(source).rounds), steady(written.rounds))


def test_overrides_are_dotted_paths_and_leave_the_data_alone():
    before = repr(SCENARIO)
    settings = {"seed": 6, "rounds": 1, "server.pruning.kind": "none", "population.attackers.0.count": 2}
    result = sim.run(SCENARIO, **settings, anchors="none")
    assert repr(SCENARIO) == before
    assert result.scenario == sim.load_scenario(SCENARIO, **settings, anchors="none")
    assert result.rounds[["seed", "attackers", "pruned_attackers"]].values.tolist() == [[6, 2, 0]]
    assert any("'none' has no 'gamma'" in note for note in result.notes)


def test_overrides_of_a_loaded_scenario_are_refused():
    with pytest.raises(InputError, match="already loaded"):
        sim.run(sim.load_scenario(SCENARIO), seed=3)


def test_every_mistake_is_in_one_message():
    with pytest.raises(InputError) as caught:
        sim.load_scenario(SCENARIO, rounds=0, **{"server.suspicion.kind": "mean-gab", "server.hops": 3})
    said = str(caught.value)
    assert "rounds" in said and "did you mean 'mean-gap'?" in said and "unknown key 'hops'" in said


def test_a_scenario_cannot_be_changed_in_place():
    with pytest.raises(ValueError):
        sim.load_scenario(SCENARIO).seed = 9


def test_repr_is_a_headline_table(written):
    lines = repr(written).splitlines()
    assert lines[0] == "Result of 'tiny', seed 5" and len(lines) == 4
    assert lines[1].split()[:2] == ["round", "test_accuracy"] and lines[3].split()[0] == "2"
    assert "accuracy_no_edges" in lines[1]


def test_repr_leaves_out_what_the_run_does_not_have():
    result = sim.run(SCENARIO, rounds=1, anchors="none", **{"server.training": {"kind": "none"}})
    header = repr(result).splitlines()[1].split()
    assert "test_accuracy" not in header and "accuracy_no_edges" not in header and "edges" in header


def test_html_is_a_table_and_escapes_the_name():
    result = sim.run(SCENARIO, rounds=1, anchors="none", name="<b>& co")
    page = result._repr_html_()
    assert page.count("<table") == 1 and "<th>test_accuracy</th>" in page and "seed 5" in page
    assert "<b>& co" not in page and "&lt;b&gt;&amp; co" in page


def test_a_run_without_observer_has_empty_tables():
    result = sim.run(SCENARIO, observer=False)
    assert result.rounds.empty and result.groups.empty and result.agents.empty
    assert list(result.rounds) == [c.name for c in ROUND]
    assert "Result of 'tiny'" in repr(result) and "tiny" in result._repr_html_()


def test_reading_what_is_no_finished_run_says_so(tmp_path):
    with pytest.raises(InputError, match="no finished run here"):
        sim.Result.read(tmp_path)
    with pytest.raises(InputError, match="no finished run here"):
        sim.Result.read(tmp_path / "absent")


def test_importing_sim_is_light():
    code = "import sim, sys; print(sorted({'torch', 'pandas', 'numpy', 'pydantic', 'mesa'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_an_unknown_name_of_sim_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        sim.runn  # noqa: B018
