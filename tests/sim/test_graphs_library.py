"""Loaders of benchmark graphs, on the real raw files where this machine holds them."""

import os
import shutil
import socket
import urllib.error
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import sim.kernel.graphs.library as library
from sim.kernel.graphs import GraphError, GraphSource, describe, load
from sim.kernel.graphs.library import ENTRIES, Entry, LibraryGraph
from sim.kernel.randomness import Streams

FACTS = {row["source"]: row for row in describe()}
HELD = [e.kind for e in ENTRIES if e.kind != "pubmed"] + ["acm", "dblp"]


def fetch(kind: str, root: Path, monkeypatch) -> GraphSource:
    """The source, with no network to fall back on."""

    def refuse(*arguments: object) -> None:
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr("torch_geometric.data.download_url", refuse)
    return GraphSource._family.resolve(kind)(root=str(root))


@pytest.fixture
def held(data_root, monkeypatch):
    """Loads a graph from the data folder, or skips with the loader's own message."""
    before = sorted(str(p) for p in data_root.rglob("*"))

    def get(kind):
        source = fetch(kind, data_root, monkeypatch)
        entry = getattr(source, "entry", None)
        if (entry is not None and entry.find(str(data_root)) is None) or source.missing():
            pytest.skip(f"{kind} is not among the benchmark graphs in {data_root}")
        return source.load(Streams(0))

    yield get
    assert sorted(str(p) for p in data_root.rglob("*")) == before, "loading wrote beside the raw files"


@pytest.mark.parametrize("kind", HELD)
def test_published_counts(held, kind):
    graph, facts = held(kind), FACTS[kind]
    assert (graph.name, graph.nodes, graph.edges, graph.classes) == (
        kind,
        *(facts[k] for k in ("nodes", "edges", "classes")),
    )
    assert graph.homophily == pytest.approx(facts["homophily"], abs=1e-3)
    assert graph.mean_degree == pytest.approx(facts["mean_degree"])
    dropped = {"coauthor-physics": 235, "lastfm-asia": 128}.get(kind, 0)  # constant columns; a structure-only copy
    assert graph.dimensions == facts["dimensions"] - dropped
    values = graph.features.data
    assert values.size == 0 or (values.min() > 0 and values.max() <= 1)
    assert set(np.unique(graph.ties.data)) == {1} and not graph.ties.diagonal().any()


def test_citeseer_says_nothing_about_nodes_that_are_missing_from_its_files(held):
    graph = held("citeseer")
    missing = np.flatnonzero(graph.labels < 0)
    assert len(missing) == 15 and graph.features[missing].nnz == 0
    assert np.bincount(graph.labels[graph.labels >= 0]).tolist() == [249, 590, 668, 701, 596, 508]
    assert (graph.degrees == 0).sum() == 48


def test_coauthor_counts_of_words_become_binary(held, data_root):
    graph = held("coauthor-cs")
    with np.load(data_root / "coauthor/CS/raw/ms_academic_cs.npz") as raw:
        assert raw["attr_data"].max() == 105
    assert set(np.unique(graph.features.data)) == {1.0}


def test_structure_only_sets_have_no_features(held):
    assert held("github").features.shape == (37700, 0)
    assert held("github").degrees.max() == 9458


def test_rebuilt_features_are_scaled_by_column(held):
    dense = held("twitch-pt").features.toarray()
    assert dense.min(axis=0) == pytest.approx(np.zeros(128), abs=1e-6)
    assert dense.max(axis=0) == pytest.approx(np.ones(128), abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "loader", "arguments", "folder"),
    [
        ("citeseer", "Planetoid", ("CiteSeer",), "planetoid/CiteSeer"),
        ("amazon-photo", "Amazon", ("Photo",), "amazon/Photo"),
        ("twitch-pt", "Twitch", ("PT",), "twitch/PT"),
    ],
)
def test_equals_pyg_loader(held, data_root, tmp_path, kind, loader, arguments, folder):
    """The same graph as PyTorch Geometric's own loader makes of a copy of the raw files, after the same cleaning."""
    import torch_geometric.datasets as datasets

    from sim.kernel.graphs import clean

    graph = held(kind)
    shutil.copytree(data_root / folder, tmp_path / folder)
    for copied in (tmp_path, *tmp_path.rglob("*")):
        copied.chmod(0o755)
    data = getattr(datasets, loader)(str(tmp_path / folder.split("/")[0]), *arguments)[0]
    theirs = clean(kind, data.x.numpy(), data.edge_index.numpy(), data.y.numpy())
    assert (graph.ties != theirs.ties).nnz == 0
    assert np.abs((graph.features - theirs.features).data).max(initial=0) == 0
    known = graph.labels >= 0
    assert np.array_equal(graph.labels[known], theirs.labels[known])


TWOS = sparse.csr_array(np.array([[2, 2, 0], [2, 0, 1], [0, 1, 0]]))
"""Reciprocal links stored as 2 and a loop of 2, as in the adjacency sums that Amazon Photo is passed around as."""


def write_bench(place: Path) -> None:
    place.mkdir(parents=True)
    words = sparse.csr_array(np.array([[3, 0], [0, 1], [1, 0]]))
    arrays = {"labels": np.array([0, 1, 1])}
    for name, matrix in (("adj", TWOS), ("attr", words)):
        for part in ("data", "indices", "indptr", "shape"):
            arrays[f"{name}_{part}"] = np.asarray(getattr(matrix, part))
    np.savez(place / "amazon_electronics_photo.npz", **arrays)


def test_twos_and_loops_of_amazon_photo_count_once(tmp_path, monkeypatch):
    write_bench(tmp_path / "amazon/Photo/raw")
    graph = fetch("amap", tmp_path, monkeypatch).load(Streams(0))
    assert graph.ties.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.features.toarray().tolist() == [[1, 0], [0, 1], [1, 0]]


def test_places_are_tried_in_order(tmp_path, monkeypatch):
    for variable in ("GRAPHWARDEN_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setattr("sys.platform", "linux")
    entry = next(e for e in ENTRIES if e.kind == "amap")
    assert entry.find(None) is None
    write_bench(tmp_path / "XDG_CACHE_HOME/graphwarden/amazon/Photo/raw")
    assert entry.find(None) == tmp_path / "XDG_CACHE_HOME/graphwarden/amazon/Photo/raw"
    write_bench(tmp_path / "GRAPHWARDEN_DATA/amazon/Photo/raw")
    assert entry.find(None) == tmp_path / "GRAPHWARDEN_DATA/amazon/Photo/raw"
    assert entry.find(str(tmp_path)) is None  # graph.root alone counts when it is given
    write_bench(tmp_path / "Photo/raw")
    assert entry.find(str(tmp_path)) == tmp_path / "./Photo/raw"  # the loader's own root works as well


@pytest.mark.parametrize("kind", ["pubmed", "twitch-de"])
def test_a_missing_data_set_says_what_where_and_how(tmp_path, monkeypatch, kind):
    monkeypatch.delenv("GRAPHWARDEN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    source = fetch(kind, tmp_path, monkeypatch).model_copy(update={"root": None})
    with pytest.raises(GraphError) as caught:
        source.load(Streams(0))
    message = str(caught.value)
    for part in (repr(kind), f"{tmp_path}/graphwarden (your cache)", "GRAPHWARDEN_DATA is not set", source.entry.url):
        assert part in message
    assert source.entry.files[-1] in message and "no network in tests" in message
    assert type(caught.value)(*caught.value.args).args == caught.value.args  # survives a process border


def test_acm_and_dblp_say_the_same_before_a_run(tmp_path, monkeypatch):
    source = fetch("acm", tmp_path, monkeypatch)
    assert f"{tmp_path} (graph.root)" in source.missing() and "EdgeRefine-datasets.zip" in source.missing()
    with pytest.raises(GraphError, match=r"acm/acm\.npz"):
        source.load(Streams(0))


def test_a_download_arrives_whole_or_not_at_all(tmp_path, monkeypatch):
    asked = []

    def download(url: str, folder: str) -> None:
        asked.append((url, socket.getdefaulttimeout()))
        if "second" in url and len(asked) < 3:
            raise urllib.error.URLError("the line broke")
        Path(folder, os.path.basename(url)).write_text(url)

    monkeypatch.setattr("torch_geometric.data.download_url", download)
    entry = Entry("x", "", "", ("folder",), "raw", ("first", "second"), "http://where", library.Facts(1, 1, 1, 1, 1.0))
    timeout = socket.getdefaulttimeout()
    with pytest.raises(GraphError, match="the line broke"):
        entry.fetch(str(tmp_path))
    assert list((tmp_path / "folder/raw").iterdir()) == []
    place = entry.fetch(str(tmp_path))
    assert sorted(p.name for p in place.iterdir()) == ["first", "second"]
    assert {t for _, t in asked} == {library.DOWNLOAD_TIMEOUT} and socket.getdefaulttimeout() == timeout


def test_unreadable_files_are_explained(tmp_path, monkeypatch):
    for kind in ("citeseer", "twitch-ru"):
        entry = next(e for e in ENTRIES if e.kind == kind)
        place = tmp_path / entry.folders[0] / entry.raw
        place.mkdir(parents=True)
        for name in entry.files:
            (place / name).write_bytes(b"not what it should be")
        with pytest.raises(GraphError, match="cannot read"):
            fetch(kind, tmp_path, monkeypatch).load(Streams(0))


def test_every_entry_is_a_kind_with_a_sentence_and_a_source():
    for entry in ENTRIES:
        cls = GraphSource._family.resolve(entry.kind)
        assert issubclass(cls, LibraryGraph) and cls.__doc__ == entry.summary and cls.source == entry.source
        assert cls().size_hint() == entry.facts.nodes
    with pytest.raises(GraphError, match="unknown source"):
        load("amazon")
