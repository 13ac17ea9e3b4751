"""Edge-estimate quality: by hand, and against scikit-learn on dense probabilities."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from server.estimates import PairEstimate
from sim.edge_quality import distinct_rows, edge_quality, tabulate


def world(n, seed, levels=7):
    """(dense probabilities with many equal ones, the same coded, true matrix, true bits of the upper triangle)."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < 0.2, 1)
    bits = upper[np.triu_indices(n, 1)]
    codes = np.minimum(rng.integers(0, levels, len(bits)) + bits, levels - 1).astype(np.uint8)
    values = np.sort(rng.random(levels)).astype(np.float32)
    return values[codes], codes, values, sparse.csr_array((upper | upper.T).astype(np.int8)), bits


def test_by_hand():
    """Three users, one tie (0, 1): probabilities .75 for it, .25 and .75 for the others."""
    truth = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=np.int8))
    found = edge_quality(PairEstimate(np.arange(3), None, np.array([0.75, 0.25, 0.75])), truth, constant=0.5)
    assert found == pytest.approx(
        {
            "estimate_auc": 0.75,  # beats one of two, ties with the other
            "estimate_ap": 0.5,
            "estimate_mae": (0.25 + 0.25 + 0.75) / 3,
            "estimate_brier": (0.0625 + 0.0625 + 0.5625) / 3,
            "estimate_ece": (abs(1 - 1.5) + 0.25) / 3,
            "estimate_pmad": (2 / 12 * 2 + 4 / 12) / 3,
            "estimate_ece_pmad": 0.75 / (8 / 12),
            "estimate_mae_constant": 0.5,
            "estimate_brier_constant": 0.25,
            "estimate_ece_constant": 1 / 6,
        }
    )


@pytest.mark.parametrize("coded", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_equals_scikit_learn(coded, seed):
    dense, codes, values, truth, bits = world(40, seed)
    estimate = PairEstimate(np.arange(40), codes, values) if coded else PairEstimate(np.arange(40), None, dense)
    found = edge_quality(estimate, truth)
    assert found["estimate_auc"] == pytest.approx(roc_auc_score(bits, dense))
    assert found["estimate_ap"] == pytest.approx(average_precision_score(bits, dense))
    assert found["estimate_brier"] == pytest.approx(brier_score_loss(bits, dense), abs=1e-6)
    assert found["estimate_mae"] == pytest.approx(np.abs(bits - dense).mean(), abs=1e-6)
    assert found["estimate_pmad"] == pytest.approx(np.abs(dense - dense.mean()).mean(), abs=1e-6)


@pytest.mark.parametrize("coded", [True, False])
def test_members_and_the_mask_choose_pairs(coded):
    dense, codes, values, truth, bits = world(30, 9)
    members = np.arange(5, 35)
    larger = sparse.csr_array(sparse.block_diag([sparse.csr_array((5, 5)), truth, sparse.csr_array((3, 3))]))
    estimate = PairEstimate(members, codes, values) if coded else PairEstimate(members, None, dense)
    among = np.arange(38) % 3 > 0
    rows, columns = np.triu_indices(30, 1)
    inside = among[members[rows]] & among[members[columns]]
    table = tabulate(estimate, larger, among)
    assert table.pairs.sum() == inside.sum() and table.ties.sum() == bits[inside].sum()
    assert edge_quality(estimate, larger, among=among)["estimate_auc"] == pytest.approx(
        roc_auc_score(bits[inside], dense[inside])
    )


def test_what_does_not_exist_is_left_out():
    nobody = PairEstimate(np.zeros(0, int), None, np.zeros(0))
    assert edge_quality(nobody, sparse.csr_array((4, 4), dtype=np.int8)) == {}
    alike = edge_quality(PairEstimate(np.arange(4), None, np.full(6, 0.3)), sparse.csr_array((4, 4), dtype=np.int8))
    assert "estimate_auc" not in alike and "estimate_ece_pmad" not in alike
    assert alike["estimate_mae"] == pytest.approx(0.3)


def test_distinct_rows_of_a_star_and_of_a_path():
    assert distinct_rows(np.array([0, 0, 0]), np.array([1, 5, 9])) == 1
    assert distinct_rows(np.array([4, 0, 2]), np.array([1, 1, 3])) == 3
    assert distinct_rows(np.zeros(0, int), np.zeros(0, int)) == 0
