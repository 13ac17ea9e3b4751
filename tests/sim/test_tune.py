"""Searching settings on validation accuracy."""

import math

import pandas as pd
import pytest
import yaml
from sweeps import write

from sim.cli import guarded
from sim.kernel.errors import InputError
from sim.scenario import load_scenario
from sim.tune import judge, read_search, tune

pytest.importorskip("optuna", reason="extra [tune] is not installed")

SEARCH = {
    "server.training.hidden": {"low": 2, "high": 8},
    "server.training.learning_rate": {"low": 0.001, "high": 0.1, "log": True},
    "server.denoising": {"choices": [{"kind": "none"}, {"kind": "dual", "hops": 2}]},
}


def tune_file(tmp_path, search=None, **changes):
    write(tmp_path)
    data = {
        "scenario": "tiny.yaml",
        "search": search or SEARCH,
        "trials": 3,
        "seeds": [1],
        "set": {"rounds": 1},
        **changes,
    }
    (tmp_path / "tune.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    return tmp_path / "tune.yaml"


def test_the_command_writes_the_trials_and_a_scenario_that_reaches_the_best(tmp_path, capsys):
    file = tune_file(tmp_path)
    assert guarded(["tune", str(file), "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr()
    assert "trial 3/3" in told.err and "best validation accuracy" in told.out
    trials = pd.read_csv(tmp_path / "out" / "trials.csv")
    assert trials["trial"].tolist() == [1, 2, 3] and trials["server.training.hidden"].between(2, 8).all()
    best = load_scenario(tmp_path / "out" / "best.yaml")
    top = trials.loc[trials["validation_accuracy"].idxmax()]
    assert best.server.training.hidden == top["server.training.hidden"]
    import sim

    again = sim.run(tmp_path / "out" / "best.yaml", seed=1).rounds["validation_accuracy"].iloc[-1]
    assert again == pytest.approx(top["validation_accuracy"])


def test_a_search_repeats_itself(tmp_path):
    search = read_search(tune_file(tmp_path))
    pd.testing.assert_frame_equal(tune(search)[1], tune(search)[1])


def test_it_is_judged_by_the_mean_over_seeds_and_nan_without_a_model(tmp_path):
    search = read_search(tune_file(tmp_path, seeds=[1, 2]))
    one, two = (judge(read_search(tune_file(tmp_path, seeds=[s])), {}) for s in (1, 2))
    assert judge(search, {}) == pytest.approx((one + two) / 2)
    assert math.isnan(judge(search, {"server.training": {"kind": "none"}}))
    untrained = read_search(
        tune_file(
            tmp_path, {"network.loss": {"low": 0.0, "high": 0.1}}, set={"server.training": {"kind": "none"}}, trials=1
        )
    )
    with pytest.raises(InputError, match="no trial has a validation accuracy"):
        tune(untrained)


BAD = [
    ({"server.training.hiden": {"low": 1, "high": 4}}, "unknown key 'hiden'"),
    ({"server.training.dropout": {"low": 0.0, "high": 2.0}}, "found 2.0"),
    ({"rounds": {"low": 4, "high": 1}}, "allowed: low < high"),
    ({"rounds": {"low": 1}}, "expected `low` and `high`"),
    ({"rounds": {"choices": []}}, "empty list of choices"),
    ({"rounds": {"choices": [1], "low": 1}}, "one or the other"),
    ({"rounds": {"low": 0, "high": 3, "log": True}}, "low > 0"),
    ({"rounds": 3}, "allowed: a mapping"),
]


@pytest.mark.parametrize(("search", "message"), BAD, ids=[b[1] for b in BAD])
def test_bad_searches_end_with_2_before_the_first_trial(search, message, tmp_path, capsys):
    assert guarded(["tune", str(tune_file(tmp_path, search))]) == 2
    told = capsys.readouterr().err
    assert message in told and "tune.yaml:3: " in told


def test_nothing_to_search_and_no_optuna(tmp_path, monkeypatch):
    file = tune_file(tmp_path)
    file.write_text("scenario: tiny.yaml\nsearch: {}\n")
    with pytest.raises(InputError, match=r"tune.yaml:2: search: found nothing to search"):
        read_search(file)
    import sys

    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"pip install 'graphwarden\[tune\]'"):
        tune(read_search(tune_file(tmp_path)))
