"""EdgeRefine, Blink and plain randomised response in whole rounds: budgets, columns, notes, attackers."""

import pytest

import sim

SCENARIO = {
    "name": "pairs",
    "seed": 5,
    "graph": {"source": "synthetic", "nodes": 150, "mean_degree": 6.0, "classes": 3, "dimensions": 64},
    "privacy": {
        "unit": "undirected-tie",
        "features": {"kind": "none"},
        "ties": {"kind": "auto", "epsilon": 2.0},
        "across_rounds": "fresh",
    },
    "population": {"honest": {"trust": {"kind": "maximal"}}, "attackers": []},
    "server": {
        "suspicion": {"kind": "none"},
        "pruning": {"kind": "none"},
        "denoising": {"kind": "none"},
        "training": {"kind": "none"},
        "refinement": {"kind": "edgerefine", "rate": 0.5},
    },
    "anchors": "none",
}
ATTACKERS = [{"name": "fakes", "share": 0.1, "targets": {"kind": "cyclic", "per_attacker": 5}}]


def row_of(**overrides):
    result = sim.run(SCENARIO, **{key.replace("__", "."): value for key, value in overrides.items()})
    return result.rounds.iloc[-1], result


@pytest.mark.parametrize(
    "refinement",
    [
        {"kind": "edgerefine", "preset": "paper", "rate": 0.5},
        {"kind": "edgerefine", "edge_count": "noisy", "count_share": 0.3},
        {"kind": "blink", "variant": "hybrid", "evidence": "single-bit"},
        {"kind": "blink", "variant": "hybrid", "evidence": "two-list"},
        {"kind": "randomized-response", "variant": "debiased"},
    ],
)
def test_every_method_spends_the_same_budget_per_tie(refinement):
    """`auto` reports cost epsilon 2 per undirected tie, whoever asks; probabilities are judged beside the constant."""
    row, result = row_of(server__refinement=refinement)
    assert row.epsilon_ties == pytest.approx(2.0)
    assert row.edges == row.edges_true + row.edges_false + row.edges_attack
    assert 0 < row.estimate_auc < 1 and row.estimate_mae_constant > 0 and row.distinct_rows <= row.edges
    assert any("private number of ties" in note for note in result.notes) is (refinement.get("preset") == "paper")


def test_the_presets_quota_is_a_share_of_the_true_ties():
    row, _ = row_of(server__refinement={"kind": "edgerefine", "preset": "paper", "rate": 0.5})
    assert row.edges == int(0.5 * 450) and row.largest_degree > 15


@pytest.mark.parametrize("kind", ["edgerefine", "blink"])
@pytest.mark.parametrize("ties", ["auto", "verification-list", "binary-list"])
def test_attackers_and_attested_lists_are_taken(kind, ties):
    row, _ = row_of(
        server__refinement={"kind": kind},
        privacy__ties={"kind": ties, "epsilon": 9.0},
        population__attackers=ATTACKERS,
        rounds=2,
    )
    assert row.attackers == 15 and row.rejected == 0
    assert kind == "edgerefine" or row.edge_recall > 0.3


def test_a_boundless_budget_gives_the_true_graph():
    row, _ = row_of(server__refinement={"kind": "randomized-response"}, privacy__ties={"kind": "auto", "epsilon": 30.0})
    assert row.edge_f1 == 1.0 and row.estimate_auc == 1.0


@pytest.mark.parametrize(
    "refinement",
    [
        {"kind": "edgerefine", "edge_count": "noisy", "ties": "random", "rate": 1.0},
        {"kind": "blink", "variant": "hybrid", "evidence": "single-bit"},
    ],
)
def test_memoized_rounds_publish_the_same_graph_at_one_rounds_cost(refinement):
    result = sim.run(SCENARIO, rounds=2, **{"server.refinement": refinement, "privacy.across_rounds": "memoized"})
    first, second = (row for _, row in result.rounds.iterrows())
    assert second.epsilon_ties == pytest.approx(2.0)
    assert first.edges > 0
    for column in ("edges", "edges_true", "largest_degree", "estimate_auc"):
        assert first[column] == second[column]


@pytest.mark.parametrize("kind", ["edgerefine", "blink", "randomized-response"])
def test_same_seed_same_row(kind):
    first, second = (row_of(server__refinement={"kind": kind})[0] for _ in range(2))
    same = [c for c in first.index if not c.startswith("seconds_") and c != "peak_memory_mb"]
    assert first[same].equals(second[same])
