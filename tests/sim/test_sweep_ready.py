"""The ready sweeps: each reads, holds the values that it is named for, and its points run on a small graph."""

from pathlib import Path

import pytest
from sweeps import Here

from sim.scenario import Scenario
from sim.sweep import read_plan, run_sweep

FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "sweeps"
VALUES = {
    "injection-rate": ("population.attackers.0.share", [0.0, 0.001, 0.005, 0.01, 0.02, 0.04]),
    "feature-budget": ("privacy.features.epsilon", [0.01, 0.1, 1.0, 2.0, 3.0]),
    "tie-budget": ("privacy.ties.epsilon", [1.0, 3.0, 5.0, 7.0, 9.0]),
    "levels": ("privacy.ties.levels", [1, 2, 3, 5, 8]),
    "mechanisms": (
        "privacy.features.kind",
        ["piecewise", "multi-bit", "one-bit", "laplace", "gaussian", "square-wave"],
    ),
    "backbones": ("server.training.model", ["gcn", "graphsage", "gat", "gin", "mlp"]),
}


def test_there_is_one_of_each():
    assert {file.stem for file in FOLDER.glob("*.yaml")} == {*VALUES, "ablation"}


@pytest.mark.parametrize("name", VALUES)
def test_values_and_reference(name):
    plan = read_plan(FOLDER / f"{name}.yaml")
    axis, values = VALUES[name]
    assert plan.name == name and plan.axes == (axis,)
    assert [point.settings[axis] for point in plan.points] == values
    assert len(plan.references) == len(values) - 1 and len(plan.seeds) >= 5
    assert all(point.scenario.rounds == 1 and point.scenario.anchors == "last" for point in plan.points)


def test_the_ablation_takes_one_stage_away_at_a_time():
    plan = read_plan(FOLDER / "ablation.yaml")
    stages = {
        p.name: tuple(getattr(p.scenario.server, stage).kind for stage in ("suspicion", "pruning", "denoising"))
        for p in plan.points
    }
    assert stages == {
        "baseline": ("none", "none", "none"),
        "without II": ("none", "none", "dual"),
        "without III": ("mean-gap", "threshold", "none"),
        "full": ("mean-gap", "threshold", "dual"),
    }
    assert all(point.scenario.population.attackers[0].share == 0.01 for point in plan.points) and len(plan.seeds) == 5


SMALL = """\
scenario: {scenario}
seeds: 1
set:
  rounds: 1
  graph: {{source: synthetic, nodes: 60, dimensions: 30, classes: 3}}
  server.training.epochs: 2
  anchors: none
  population.attackers.0.targets.per_attacker: 3
"""


@pytest.mark.parametrize("name", [*VALUES, "ablation"])
def test_every_point_runs(name, tmp_path):
    text = (FOLDER / f"{name}.yaml").read_text()
    varied = text[text.index("axes:" if "axes:" in text else "points:") :]
    file = tmp_path / "small.yaml"
    file.write_text(SMALL.format(scenario=FOLDER.parent / "quickstart.yaml") + varied)
    result = run_sweep(file, tmp_path / "out", Here())
    assert not result.failures and all(isinstance(point.scenario, Scenario) for point in result.plan.points)
    assert set(result.summary["point"]) == {point.name for point in result.plan.points}
