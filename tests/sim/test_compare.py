"""Two runs or two sweeps side by side."""

import pytest
from sweeps import SWEEP, Here, write

import sim
from sim.cli import guarded
from sim.compare import compare, difference, number
from sim.kernel.errors import InputError
from sim.sweep import run_sweep


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs, a sweep, and a sweep of other points."""
    home = tmp_path_factory.mktemp("compare")
    file = write(home)
    scenario = home / "tiny.yaml"
    sim.run(scenario, home / "a")
    sim.run(scenario, home / "b", **{"server.suspicion.kind": "none", "population.attackers.0.count": 2})
    run_sweep(file, home / "s", Here())
    run_sweep(write(home / "other", {**SWEEP, "axes": {"population.attackers.0.count": [0, 2]}}), home / "t", Here())
    return home


def test_two_runs_differ_in_the_settings_that_were_changed(folders):
    settings, values = compare(folders / "a", folders / "b")
    changed = {name: (a, b) for name, a, b in settings}
    assert changed == {
        "server.suspicion.kind": ("mean-gap", "none"),
        "population.attackers.0.count": (4, 2),
    }
    held = {name: (a, b) for name, a, b in values}
    assert held["attackers"] == (4, 2) and held["round"] == (2, 2)
    assert held["suspicion_honest_mean"][0] is not None and held["suspicion_honest_mean"][1] is None


def test_two_sweeps_are_compared_point_by_point(folders):
    lonely, values = compare(folders / "s", folders / "t")
    assert lonely == [("count=4", "there", "-"), ("count=2", "-", "there")]
    held = {name: (a, b) for name, a, b in values}
    assert held["count=0: honest"] == (60.0, 60.0) and not any(name.startswith("count=4") for name in held)


def test_the_command_prints_what_differs(folders, capsys):
    assert guarded(["compare", str(folders / "a"), str(folders / "b")]) == 0
    told = capsys.readouterr().out
    assert "server.suspicion.kind" in told and "mean-gap" in told and "may be chance" in told
    line = next(line for line in told.splitlines() if line.startswith("attackers "))
    assert line.split() == ["attackers", "4", "2", "-2"]
    assert "seconds_total" not in told and "\nhonest " not in told
    assert guarded(["compare", str(folders / "a"), str(folders / "b"), "--all"]) == 0
    assert "seconds_total" in capsys.readouterr().out
    assert guarded(["compare", str(folders / "s"), str(folders / "s")]) == 0
    assert "no value differs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("first", "second", "message"), [("a", "s", "expected two of a kind"), ("a", "nowhere", "found neither a run")]
)
def test_folders_that_do_not_match(folders, first, second, message, capsys):
    with pytest.raises(InputError, match=message):
        compare(folders / first, folders / second)
    assert guarded(["compare", str(folders / first), str(folders / second)]) == 2


def test_a_run_without_a_round(folders):
    scenario = (folders / "a" / "scenario.yaml").read_text()
    (folders / "fresh").mkdir()
    (folders / "fresh" / "scenario.yaml").write_text(scenario)
    (folders / "fresh" / "rounds.csv").write_text((folders / "a" / "rounds.csv").read_text().splitlines()[0] + "\n")
    with pytest.raises(InputError, match="no round is finished"):
        compare(folders / "a", folders / "fresh")


def test_numbers_and_differences():
    assert [number(v) for v in (None, 1234567, 0.123456789, float("inf"))] == ["-", "1,234,567", "0.12346", "inf"]
    assert number(2.0, sign=True) == "+2" and number(-0.5, sign=True) == "-0.5"
    assert difference(1, 3) == 2 and difference(None, 3) is None and difference(float("inf"), 1) is None
