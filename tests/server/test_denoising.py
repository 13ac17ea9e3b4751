import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from server.denoising import COLUMNS, Denoising, DualDenoising, NoDenoising, aggregate, normalise, shrink
from sim.kernel.component import Problem, build, dump

PATH = sparse.csr_array(np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=np.float32))
"""0 - 1 - 2, and 3 alone. D^-1/2 A D^-1/2 holds 1/sqrt(2) at its four places."""


def column(*values: float) -> sparse.csr_array:
    return sparse.csr_array(np.array(values, dtype=np.float32)[:, None])


def plain(features: np.ndarray, structure: np.ndarray, hops: int) -> np.ndarray:
    """High-order aggregation with dense matrices, as the formula reads."""
    degree = structure.sum(axis=1)
    hop = np.zeros_like(structure)
    for i, j in np.argwhere(structure):
        hop[i, j] = structure[i, j] / np.sqrt(degree[i] * degree[j])
    powers = [np.linalg.matrix_power(hop, k) @ features for k in range(1, hops + 1)]
    mean = np.mean(powers, axis=0)
    mean[degree == 0] = features[degree == 0]
    return mean


def test_soft_threshold_by_hand():
    assert shrink(np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]), 1.0).tolist() == [-1, 0, 0, 0, 0, 0, 2]


def test_one_and_two_hops_by_hand():
    features = column(4, 0, 2, -1.5)
    root = 1 / np.sqrt(2)
    assert aggregate(features, PATH, 1)[:, 0] == pytest.approx([0, 6 * root, 0, -1.5])
    # the second hop gives 3, 0, 3; the mean of both hops:
    assert aggregate(features, PATH, 2)[:, 0] == pytest.approx([1.5, 3 * root, 1.5, -1.5])


def test_weights_scale_both_ends_by_hand():
    weighted = sparse.csr_array(np.array([[0, 4, 0], [4, 0, 5], [0, 5, 0]], dtype=np.float32))
    # degrees 4, 9, 5: 4/sqrt(36) = 2/3 and 5/sqrt(45) = sqrt(5)/3
    expected = [[0, 2 / 3, 0], [2 / 3, 0, np.sqrt(5) / 3], [0, np.sqrt(5) / 3, 0]]
    assert normalise(weighted).toarray() == pytest.approx(np.array(expected))


def test_threshold_comes_before_aggregation_by_default():
    # B = 2, mu = 1: 2, 0.5, -2, 1.5 become 1, 0, -1, 0.5; node 1 then sees 1 - 1 = 0
    result = DualDenoising(regularization=0.5, hops=1).denoise(column(2, 0.5, -2, 1.5), PATH, bound=2.0)
    assert result[:, 0] == pytest.approx([0, 0, 0, 0.5])


def test_threshold_after_aggregation_by_hand():
    # hops 2, mean degree 1 (four ends of ties over four nodes): mu = 0.5 x 2 / (1 x 2) = 0.5; alone: mu = 1
    result = DualDenoising(regularization=0.5, hops=2, order="hoa-nfr").denoise(column(2, 0, 2, 1.5), PATH, bound=2.0)
    assert result[:, 0] == pytest.approx([0.5, 4 / np.sqrt(2) / 2 - 0.5, 0.5, 0.5])


def test_unbounded_noise_uses_the_largest_reported_value():
    features = column(10, -4, 6, 0)
    unbounded = DualDenoising(regularization=0.5, hops=3).denoise(features, PATH, bound=float("inf"))
    assert np.array_equal(unbounded, DualDenoising(regularization=0.5, hops=3).denoise(features, PATH, bound=10.0))


def test_a_node_without_neighbours_keeps_its_own_regularised_features():
    for hops in (0, 1, 16):
        result = DualDenoising(regularization=0.5, hops=hops).denoise(column(0, 0, 0, 3), PATH, bound=4.0)
        assert result[3, 0] == 1.0


def test_zero_hops_only_regularises():
    result = DualDenoising(regularization=0.25, hops=0).denoise(column(2, -1, 0.5, 4), PATH, bound=4.0)
    assert result[:, 0].tolist() == [1, 0, 0, 3]


def test_an_empty_graph_and_empty_features():
    nothing = sparse.csr_array((4, 4), dtype=np.float32)
    assert DualDenoising().denoise(column(0, 0, 0, 0), nothing, bound=float("inf")).tolist() == [[0], [0], [0], [0]]
    assert aggregate(column(1, 2, 3, 4), nothing, 5)[:, 0].tolist() == [1, 2, 3, 4]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
def test_equals_dense_matrices(seed, hops, weighted):
    generator = np.random.default_rng(seed)
    n, d = 12, COLUMNS + 3
    upper = np.triu(generator.random((n, n)) < 0.15, 1) * (generator.uniform(0.1, 3, (n, n)) if weighted else 1.0)
    structure = upper + upper.T
    features = generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.3)
    found = aggregate(sparse.csr_array(features), sparse.csr_array(structure), hops)
    assert found.dtype == np.float32
    assert found == pytest.approx(plain(features, structure, hops), abs=2e-6)


def test_input_is_left_alone():
    features, structure = column(4, 0, 2, -1.5), PATH.copy()
    DualDenoising().denoise(features, structure, bound=4.0)
    assert features.toarray()[:, 0].tolist() == [4, 0, 2, -1.5]
    assert (structure != PATH).nnz == 0


def test_none_returns_the_features():
    assert NoDenoising().denoise(column(4, 0, 2, -1.5), PATH, bound=4.0)[:, 0].tolist() == [4, 0, 2, -1.5]


def test_an_omitted_kind_means_dual():
    problems: list[Problem] = []
    made = build(Denoising, {"regularization": 0.9, "hops": 4}, (), problems)
    assert problems == [] and made == DualDenoising(regularization=0.9, hops=4)
    assert build(Denoising, dump(made), (), problems) == made


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"regularization": 1.0}, "a number > 0 and < 1"),
        ({"regularization": 0.0}, "a number > 0 and < 1"),
        ({"hops": -1}, "a whole number >= 0"),
        ({"hop": 3}, "did you mean 'hops'?"),
        ({"kind": "none", "hops": 3}, "unknown key 'hops'"),
    ],
)
def test_bad_settings_are_explained(data, says):
    problems: list[Problem] = []
    assert build(Denoising, data, ("denoising",), problems) is None
    assert len(problems) == 1 and says in problems[0].message
