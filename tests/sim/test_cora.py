"""The quickstart's server on real Cora, against what theory and earlier measurements say."""

import numpy as np
import pytest

import sim

BASE = {
    "seed": 5,
    "graph": {"source": "cora"},
    "server": {"pruning": {"kind": "none"}, "training": {"kind": "none"}, "denoising": {"kind": "none"}},
    "anchors": "none",
}
FAKES = {"name": "fakes", "count": 27, "targets": {"kind": "cyclic", "per_attacker": 12}}


def run(seed, **changes):
    return sim.run({**BASE, "seed": seed, **changes}).rounds.iloc[0]


def test_the_printed_edge_rule_keeps_what_theory_expects():
    """c > 0 without attackers at epsilon 5 and 5 levels: 5,209 true and 3,887 false ties in expectation."""
    rows = [run(seed) for seed in range(3)]
    for row in rows:
        assert abs(row.edges_true - 5209) <= 60
        assert abs(row.edges_false - 3887) <= 300
        assert row.edges_attack == 0 and row.attackers == 0
        assert np.isnan(row.detection_auc) and np.isnan(row.test_accuracy)
    assert len({row.edges_false for row in rows}) == 3


@pytest.mark.parametrize("channel, low, high", [("compliant", 0.6, 0.95), ("bypass", 0.0, 0.25)])
def test_the_printed_suspicion_sees_compliant_fakes_a_little_and_bypassing_ones_upside_down(channel, low, high):
    population = {"attackers": [{**FAKES, "claims": {"kind": "maximal", "channel": channel}}]}
    for seed in range(2):
        row = run(seed, population=population)
        assert low <= row.detection_auc <= high
        assert row.attackers == 27 and row.rejected == 0


def test_a_report_of_dense_features_is_stopped_at_intake_unless_the_check_is_off():
    population = {"attackers": [{**FAKES, "features": {"kind": "illegal-dense"}}]}
    row = run(1, population=population)
    assert row.rejected == 27 and row.edges_attack == 0
    server = {**BASE["server"], "intake": {"count": False}}
    assert run(1, population=population, server=server).rejected == 0
