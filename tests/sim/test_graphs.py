import hashlib
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sim.kernel.component import Problem, build
from sim.kernel.graphs import GraphError, GraphSource, Split, clean, describe, load
from sim.kernel.randomness import Streams

CORA_SHA256 = "78bdd2be05503171bf5128b85967815e0a92191b400f0f678d58919029d2f1a6"


def test_cora_is_the_published_graph():
    raw = files("sim.kernel").joinpath("data/cora.npz").read_bytes()
    assert hashlib.sha256(raw).hexdigest() == CORA_SHA256
    graph = load("cora")
    assert (graph.nodes, graph.edges, graph.classes) == (2708, 5278, 7)
    assert sorted(np.bincount(graph.labels).tolist()) == [180, 217, 298, 351, 418, 426, 818]
    assert graph.homophily == pytest.approx(0.810, abs=5e-4)
    assert graph.mean_degree == pytest.approx(2 * 5278 / 2708)
    assert graph.degrees.max() == 168 and graph.degrees.min() == 1
    assert set(np.unique(graph.features.data)) == {1.0} and graph.features.nnz == 49216
    assert graph.dimensions == 1432  # 1433, of which one word occurs in no paper
    with np.load(files("sim.kernel").joinpath("data/cora.npz").open("rb")) as held:
        assert int(held["dimensions"]) == 1433


def test_karate_is_the_published_graph():
    graph = load("karate")
    assert (graph.nodes, graph.edges, graph.classes) == (34, 78, 2)
    assert np.bincount(graph.labels).tolist() == [17, 17]
    assert (graph.features != sparse.eye_array(34)).nnz == 0


def check_invariants(graph):
    ties, features = graph.ties, graph.features
    assert ties.dtype == np.int8 and features.dtype == np.float32 and graph.labels.dtype == np.int64
    assert ties.shape == (graph.nodes, graph.nodes) and features.shape[0] == graph.nodes == len(graph.labels)
    assert ties.has_sorted_indices and set(np.unique(ties.data)) <= {1}
    assert (ties != ties.T).nnz == 0 and not ties.diagonal().any()
    assert features.has_sorted_indices and (features.data > 0).all() and (features.data <= 1).all()
    labels = np.unique(graph.labels[graph.labels >= 0])
    assert labels.tolist() == list(range(graph.classes))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_clean_makes_what_it_promises_of_anything(data):
    n = data.draw(st.integers(1, 12))
    ends = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40))
    d = data.draw(st.integers(0, 4))
    values = st.sampled_from([-3.0, -1.0, 0.0, 0.25, 1.0, 2.0, 7.5])
    features = np.array(data.draw(st.lists(values, min_size=n * d, max_size=n * d))).reshape(n, d)
    labels = np.array(data.draw(st.lists(st.integers(-1, 9), min_size=n, max_size=n)))
    graph = clean("any", features, np.array(ends, dtype=np.int64).reshape(-1, 2).T, labels)
    check_invariants(graph)
    wanted = {(min(u, v), max(u, v)) for u, v in ends if u != v}
    assert graph.edges == len(wanted) and all(graph.ties[u, v] == 1 for u, v in wanted)
    kept = [j for j in range(d) if len(set(features[:, j])) > 1]
    assert graph.dimensions == len(kept)
    for found, j in zip(graph.features.toarray().T, kept):
        column = features[:, j]
        if column.min() < 0 or column.max() > 1:
            column = (column - column.min()) / (column.max() - column.min())
        assert found == pytest.approx(column, abs=1e-6)
    assert np.array_equal(graph.labels < 0, labels < 0)
    assert all((graph.labels[i] == graph.labels[j]) == (labels[i] == labels[j]) for i in range(n) for j in range(n))


def test_clean_takes_matrices_and_names():
    matrix = sparse.csr_array(np.array([[1, 2, 0], [2, 0, 0], [1, 0, 0]]))  # a loop, a doubled tie, a one-way tie
    graph = clean("m", None, matrix, np.array(["b", "", "a"]))
    check_invariants(graph)
    assert graph.ties.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert graph.labels.tolist() == [1, -1, 0]
    assert graph.dimensions == 0
    assert graph.homophily == 0.0  # the only tie between labelled nodes joins b and a


def test_homophily_counts_ties_between_labelled_nodes():
    # ties 0-1 (equal), 1-2 (unequal), 2-3 (3 has no label)
    graph = clean("h", None, np.array([[0, 1, 2], [1, 2, 3]]), np.array([5, 5, 6, -1]))
    assert graph.homophily == 0.5 and graph.mean_degree == 1.5 and graph.classes == 2
    assert np.isnan(clean("h", None, np.empty((2, 0), dtype=int), np.array([0, 1])).homophily)


@pytest.mark.parametrize(
    ("features", "ties", "labels", "says"),
    [
        (None, np.array([[0], [3]]), [0, 1, 1], r"end outside nodes 0\.\.2; the first is \(0, 3\)"),
        (None, np.array([[0, 1, 2]]), [0, 1, 1], r"expected \(2, number of edges\)"),
        (None, sparse.eye_array(4), [0, 1, 1], r"3 labels but an adjacency matrix of shape \(4, 4\)"),
        (np.zeros((2, 5)), np.array([[0], [1]]), [0, 1, 1], r"3 labels but features of shape \(2, 5\)"),
        (np.array([[np.nan], [1], [0]]), np.array([[0], [1]]), [0, 1, 1], "NaN or infinity"),
        (None, np.array([[0], [1]]), [0.5, 1, 1], "fractions or NaN"),
        (None, np.array([[0], [1]]), [[0, 1, 1]], "one label a node"),
        (None, np.empty((2, 0), dtype=int), [], "has no nodes"),
    ],
)
def test_clean_refuses_what_is_no_graph(features, ties, labels, says):
    with pytest.raises(GraphError, match=says):
        clean("bad", features, ties, np.array(labels))


@given(
    st.integers(0, 2**40),
    st.integers(0, 200),
    st.sampled_from([(0.5, 0.25, 0.25), (0.6, 0.2, 0.2), (0.1, 0, 0.9), (1, 0, 0), (0, 0, 0), (0.34, 0.33, 0.1)]),
)
def test_split_parts_the_labelled_nodes(seed, n, shares):
    labels = np.random.default_rng(seed).integers(-1, 3, n)
    masks = Split(train=shares[0], validation=shares[1], test=shares[2]).draw(labels, Streams(seed))
    total = np.sum(masks, axis=0)
    assert total.max(initial=0) <= 1 and not total[labels < 0].any()
    labelled = int((labels >= 0).sum())
    for mask, share in zip(masks, shares):
        assert mask.dtype == bool and abs(mask.sum() - share * labelled) <= 1
    if sum(shares) == 1:
        assert total.sum() == labelled


def test_split_is_uniform_and_keyed_by_the_seed():
    labels = np.zeros(40, dtype=np.int64)
    split = Split()
    assert np.array_equal(split.draw(labels, Streams(3))[0], split.draw(labels, Streams(3))[0])
    counts = np.sum([split.draw(labels, Streams(seed))[0] for seed in range(2000)], axis=0)
    # each node trains in half of the draws: binomial sd 22.4; 4.8 sd leaves a false alarm at 40 x 1.6e-6
    assert np.abs(counts - 1000).max() < 4.8 * 22.4


@pytest.mark.parametrize(
    ("data", "path", "says"),
    [
        ({"source": "cora", "split": {"train": 0.6, "validation": 0.3, "test": 0.2}}, "graph.split", "sum to 1.1"),
        ({"source": "cora", "split": {"train": 1.2}}, "graph.split.train", "a number >= 0 and <= 1"),
        ({"source": "cora", "split": {"training": 0.5}}, "graph.split.training", "did you mean 'train'?"),
        ({"source": "coar"}, "graph.source", "did you mean 'cora'?"),
        ({"split": {}}, "graph", "key 'source' is missing"),
        ({"source": "cora", "root": 3}, "graph.root", "allowed: text"),
        ({"source": "synthetic", "homophily": 1.5}, "graph.homophily", "a number >= 0 and <= 1"),
    ],
)
def test_bad_settings_are_explained(data, path, says):
    problems: list[Problem] = []
    assert build(GraphSource, data, ("graph",), problems) is None
    assert len(problems) == 1 and problems[0].where() == path and says in problems[0].message


def test_describe_lists_every_source_and_agrees_with_what_ships():
    rows = {row["source"]: row for row in describe()}
    assert {"cora", "karate", "synthetic", "file", "citeseer", "amap", "twitch-en", "acm"} <= rows.keys()
    for name in ("cora", "karate"):
        graph, row = load(name), rows[name]
        assert (graph.nodes, graph.edges, graph.classes) == (row["nodes"], row["edges"], row["classes"])
        assert graph.mean_degree == pytest.approx(row["mean_degree"])
        assert graph.homophily == pytest.approx(row["homophily"], abs=5e-4)
        assert GraphSource._family.resolve(name)().size_hint() == graph.nodes
    assert rows["synthetic"]["nodes"] is None


def test_load_names_what_exists():
    with pytest.raises(GraphError, match="did you mean 'karate'"):
        load("karat")


def test_listing_loads_neither_torch_nor_networkx():
    code = "import sys; from sim.kernel.graphs import describe; describe(); print([m for m in "
    code += "('torch', 'torch_geometric', 'networkx', 'pandas', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_list_graphs_prints_a_line_a_source(capsys):
    from sim.listing import show

    show("graphs")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(describe())
    cora = next(line for line in lines if line.startswith("cora "))
    assert cora.split()[1:7] == ["2708", "5278", "3.90", "1433", "7", "0.810"]
