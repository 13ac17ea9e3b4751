"""The tables of a sweep, from runs written by hand: types, order, gaps, means, ratios, differences."""

import pandas as pd
import pytest
from sweeps import SWEEP, write

from sim.columns import ROUND
from sim.records import table
from sim.sweep import contrasts, results, summary
from sim.sweep.plan import read_plan
from sim.sweep.store import Store

COLUMNS = [c.name for c in ROUND]


def lay(tmp_path, sweep, cells):
    """A store with finished runs whose last round holds `cells[point][seed]`; a round before it holds other numbers."""
    plan, store = read_plan(write(tmp_path, sweep)), Store(tmp_path / "out")
    keys = {}
    for point in plan.points:
        for seed in plan.seeds:
            keys[point.name, seed] = key = f"{len(keys):016x}"
            row = cells.get(point.name, {}).get(seed)
            if row is None:
                continue
            store.run(key).mkdir(parents=True)
            rows = [
                {"round": 1, "seed": seed, "test_accuracy": 0.99},
                {"round": 2, "seed": seed, "seconds_total": 1.5, **row},
            ]
            (store.run(key) / "rounds.csv").write_text(table(rows, COLUMNS))
            (store.run(key) / "summary.json").write_text("{}")
    return plan, store, keys


CELLS = {
    "count=0": {s: {"test_accuracy": a, "edges": e} for s, a, e in ((3, 0.7, 10), (4, 0.8, 12), (5, 0.9, 14))},
    "count=4": {s: {"test_accuracy": a, "edges": e} for s, a, e in ((3, 0.6, 10), (4, 0.5, 12), (5, 0.7, 14))},
}


def test_results_have_a_row_a_run_and_round_with_the_axes_first(tmp_path):
    plan, store, keys = lay(tmp_path, SWEEP, CELLS)
    rows = results.collect(plan, store, keys)
    assert list(rows.columns) == ["population.attackers.0.count", "point", "run", *COLUMNS]
    assert rows["population.attackers.0.count"].tolist() == [0] * 6 + [4] * 6
    assert rows["round"].tolist() == [1, 2] * 6 and rows["seed"].tolist() == [3, 3, 4, 4, 5, 5] * 2
    (tmp_path / "r.parquet").write_bytes(results.parquet(rows))
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "r.parquet"), rows, check_dtype=False)


def test_floats_keep_every_digit(tmp_path):
    value = 0.1 + 0.2
    plan, store, keys = lay(tmp_path, SWEEP, {"count=0": {3: {"loss": value}}})
    assert results.collect(plan, store, keys)["loss"].iloc[-1] == value


def test_summary_is_of_the_last_round_and_leaves_out_time(tmp_path):
    plan, store, keys = lay(tmp_path, SWEEP, CELLS)
    made = pd.DataFrame(summary.summarise(plan, results.collect(plan, store, keys)))
    assert sorted(made["metric"].unique()) == ["edges", "test_accuracy"]
    row = made[(made["point"] == "count=0") & (made["metric"] == "test_accuracy")].iloc[0]
    # mean .8, s = .1: half-width t(.975, 2) * .1 / sqrt(3) = 4.302653 * .057735 = .248414
    assert (row["n"], row["statistic"]) == (3, "mean")
    assert [row["mean"], row["student_low"], row["student_high"]] == pytest.approx([0.8, 0.551586, 1.048414], abs=1e-6)
    assert 0.699 < row["bootstrap_low"] < 0.8 < row["bootstrap_high"] < 0.901


def test_missing_runs_and_empty_cells_lower_n(tmp_path):
    cells = {"count=0": {3: {"test_accuracy": 0.5, "edge_f1": 0.4}, 5: {"test_accuracy": 0.7}}}
    plan, store, keys = lay(tmp_path, SWEEP, cells)
    made = {r["metric"]: r for r in summary.summarise(plan, results.collect(plan, store, keys))}
    assert {r["point"] for r in made.values()} == {"count=0"}
    assert made["test_accuracy"]["n"] == 2 and made["edge_f1"]["n"] == 1
    assert made["edge_f1"]["mean"] == 0.4 and made["edge_f1"]["student_low"] is None
    states = pd.read_csv(pd.io.common.StringIO(results.index(plan, store, keys)))["state"].tolist()
    assert states == ["finished", "unfinished", "finished", *["unfinished"] * 3]


def test_nothing_finished_gives_empty_tables(tmp_path):
    plan, store, keys = lay(tmp_path, SWEEP, {})
    rows = results.collect(plan, store, keys)
    assert rows.empty and summary.summarise(plan, rows) == [] and contrasts.contrast(plan, rows) == []


def test_an_infinite_threshold_has_no_interval(tmp_path):
    cells = {"count=0": {3: {"gamma": float("inf")}, 4: {"gamma": 1.0}}}
    plan, store, keys = lay(tmp_path, SWEEP, cells)
    (row,) = summary.summarise(plan, results.collect(plan, store, keys))
    assert row["mean"] == float("inf") and row["student_low"] is None and row["bootstrap_low"] is None


def gains(*triples):
    names = ("test_accuracy", "accuracy_no_edges", "accuracy_true_graph")
    return {seed: dict(zip(names, triple)) for seed, triple in zip((3, 4, 5), triples)}


def test_gain_retained_is_a_ratio_of_means_in_summary_and_contrasts(tmp_path):
    cells = {
        "count=0": gains((0.5, 0.3, 0.4), (0.9, 0.3, 0.9)),  # .4 / .35
        "count=4": gains((0.3, 0.3, 0.4), (0.6, 0.3, 0.9)),  # .15 / .35
    }
    plan, store, keys = lay(tmp_path, SWEEP, cells)
    rows = results.collect(plan, store, keys)
    made = {r["point"]: r for r in summary.summarise(plan, rows) if r["metric"] == "gain_retained"}
    assert made["count=0"]["mean"] == pytest.approx(8 / 7) and made["count=0"]["statistic"] == "ratio of means"
    assert made["count=0"]["student_low"] is None
    (row,) = [r for r in contrasts.contrast(plan, rows) if r["metric"] == "gain_retained"]
    assert row["difference"] == pytest.approx(3 / 7 - 8 / 7) and "t" not in row
    assert row["bootstrap_low"] == pytest.approx(-2.0) and row["bootstrap_high"] == pytest.approx(-0.5)


def test_no_gain_where_the_graph_is_worth_nothing(tmp_path):
    plan, store, keys = lay(tmp_path, SWEEP, {"count=0": gains((0.5, 0.5, 0.51), (0.5, 0.5, 0.51))})
    made = summary.summarise(plan, results.collect(plan, store, keys))
    assert "gain_retained" not in {r["metric"] for r in made}


def test_differences_are_paired_by_seed(tmp_path):
    sweep = {**SWEEP, "equivalence": {"test_accuracy": 0.5}}
    cells = {**CELLS, "count=0": {**CELLS["count=0"], 5: None}}
    plan, store, keys = lay(tmp_path, sweep, cells)
    made = contrasts.contrast(plan, results.collect(plan, store, keys))
    (row,) = [r for r in made if r["metric"] == "test_accuracy"]
    # differences -.1 and -.3: mean -.2, s = .141421, t = -2, p = 2 P(T1 > 2) = .295167
    assert (row["point"], row["reference"], row["n"]) == ("count=4", "count=0", 2)
    assert [row["difference"], row["t"], row["p_t"]] == pytest.approx([-0.2, -2.0, 0.295167], abs=1e-6)
    assert row["p_t_holm"] == row["p_t"] and row["effect_size"] == pytest.approx(-(2**0.5))
    assert row["margin"] == 0.5 and 0 < row["p_equivalence"] < 0.5


def test_holm_runs_over_the_points_of_one_metric(tmp_path):
    sweep = {**SWEEP, "axes": {"population.attackers.0.count": [0, 2, 4]}}
    cells = {
        **CELLS,
        "count=2": {s: {"test_accuracy": a, "edges": e} for s, a, e in ((3, 0.65, 11), (4, 0.78, 12), (5, 0.8, 14))},
    }
    plan, store, keys = lay(tmp_path, sweep, cells)
    made = [r for r in contrasts.contrast(plan, results.collect(plan, store, keys)) if r["metric"] == "test_accuracy"]
    small, large = sorted(made, key=lambda r: r["p_t"])
    assert small["p_t_holm"] == pytest.approx(2 * small["p_t"])
    assert large["p_t_holm"] == pytest.approx(max(large["p_t"], 2 * small["p_t"]))


def test_columns_in_which_no_point_differs_have_no_contrast(tmp_path):
    plan, store, keys = lay(tmp_path, SWEEP, CELLS)
    assert {r["metric"] for r in contrasts.contrast(plan, results.collect(plan, store, keys))} == {"test_accuracy"}


def test_axis_values_of_points_that_do_not_set_them_come_from_the_scenario(tmp_path):
    points = {"a": {"server.suspicion.kind": "none"}, "b": {"server.pruning": {"kind": "none"}, "rounds": 1}}
    plan = read_plan(write(tmp_path, {"scenario": "tiny.yaml", "points": points}))
    values = results.axis_values(plan)
    assert values["server.suspicion.kind"] == ["none", "mean-gap"] and values["rounds"] == [2, 1]
    assert values["server.pruning"][1] == '{"kind": "none"}' and '"gamma": 0.4' in values["server.pruning"][0]
