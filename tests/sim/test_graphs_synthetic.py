import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sim.kernel.graphs.synthetic import Synthetic
from sim.kernel.randomness import Streams


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**40),
    nodes=st.integers(60, 400),
    mean_degree=st.floats(0.5, 8),
    homophily=st.floats(0, 1),
    classes=st.integers(2, 5),
    spread=st.floats(0, 3),
)
def test_ties_and_homophily_are_exact(seed, nodes, mean_degree, homophily, classes, spread):
    source = Synthetic(
        nodes=nodes, mean_degree=mean_degree, homophily=homophily, classes=classes, degree_spread=spread, dimensions=30,
        words=4.0,
    )  # fmt: skip
    graph = source.load(Streams(seed))
    ties = max(1, round(nodes * mean_degree / 2))
    assert graph.nodes == nodes and graph.edges == ties and graph.classes == classes and graph.dimensions == 30
    assert graph.homophily * graph.edges == pytest.approx(round(ties * homophily))
    sizes = np.bincount(graph.labels)
    assert sizes.max() - sizes.min() <= 1
    assert set(np.unique(graph.features.data)) == {1.0}


def test_half_of_all_pairs_is_reached_with_extreme_hubs():
    # 40 nodes in 2 classes: 380 pairs inside, 400 across; ask for exactly half of each
    source = Synthetic(
        nodes=40, classes=2, mean_degree=19.5, homophily=190 / 390, degree_spread=3.0, dimensions=8, words=2.0
    )
    graph = source.load(Streams(0))
    assert graph.edges == 390 and graph.homophily == pytest.approx(190 / 390)


def test_same_seed_same_graph():
    one, two, other = (Synthetic(nodes=200).load(Streams(seed)) for seed in (5, 5, 6))
    assert np.array_equal(one.ties.indices, two.ties.indices) and np.array_equal(one.labels, two.labels)
    assert np.array_equal(one.features.indices, two.features.indices)
    assert not np.array_equal(one.ties.indptr, other.ties.indptr)


def test_degree_spread_makes_hubs():
    flat, steep = (Synthetic(nodes=2000, degree_spread=spread).load(Streams(1)) for spread in (0.0, 1.5))
    # without spread degrees are nearly Poisson(6): variance 6, and 1.3 is over nine standard errors of its estimate
    assert flat.degrees.var() == pytest.approx(6, abs=1.3)
    assert steep.degrees.var() > 10 * flat.degrees.var()


def test_words_follow_the_class():
    graph = Synthetic(nodes=3000, classes=3, dimensions=90, words=10.0, topicality=0.5).load(Streams(2))
    dense = graph.features.toarray()
    for group in range(3):
        mean = dense[graph.labels == group].mean(axis=0).reshape(3, 30).sum(axis=1)
        # ten words: five from the own block of 30 columns, five from all 90, less a few drawn twice
        assert mean[group] == pytest.approx(6.2, abs=0.6)
        assert np.delete(mean, group) == pytest.approx([1.6, 1.6], abs=0.15)
    plain = Synthetic(nodes=3000, classes=3, dimensions=90, words=10.0, topicality=0.0).load(Streams(2))
    mean = plain.features.toarray()[plain.labels == 0].mean(axis=0).reshape(3, 30).sum(axis=1)
    assert mean.max() - mean.min() < 0.25


def test_a_hundred_thousand_ties_take_about_a_second():
    start = time.process_time()
    graph = Synthetic(nodes=20_000, mean_degree=10.0).load(Streams(0))
    assert graph.edges == 100_000 and time.process_time() - start < 5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"nodes": 8, "classes": 5}, "at least two nodes a class"),
        ({"dimensions": 3}, "at least one a class"),
        ({"dimensions": 20, "words": 11.0}, "at most half"),
        ({"classes": 1}, "across classes; allowed: at most half of the 0"),
        ({"nodes": 20, "mean_degree": 12.0}, "inside classes; allowed: at most half"),
    ],
)
def test_what_cannot_be_generated_is_refused(change, says):
    with pytest.raises(ValidationError, match=says):
        Synthetic(**change)
