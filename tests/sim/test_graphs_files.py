"""A user's own graph in every format: 0 - 1 - 2 - 3 with two features and classes 0, 1, 1, unknown."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from sim.kernel.component import Problem, build
from sim.kernel.graphs import GraphError, GraphSource
from sim.kernel.graphs.files import FileGraph
from sim.kernel.randomness import Streams

TIES = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
WORDS = [[1.0, 0.0], [0.5, 1.0], [0.0, 1.0], [0.25, 0.0]]
EDGES = np.array([[0, 1, 2], [1, 2, 3]])
LABELS = np.array([0, 1, 1, -1])


def check(graph, features=WORDS):
    assert graph.ties.toarray().tolist() == TIES and graph.labels.tolist() == LABELS.tolist()
    assert graph.features.toarray().tolist() == features


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    return {name: str(folder / f"{name}.csv") for name in texts}


TABLES = {
    "edges": "source,target,since\nann,bob,2001\nbob,cem,1999\ndee,cem,2020\n",
    "labels": "name,club\nann,red\nbob,white\ncem,white\ndee,\n",
    "features": "name,likes,owns\ndee,0.25,0\nann,1,0\nbob,0.5,1\ncem,0,1\n",
}


def load_tables(folder, **changes):
    found = write(folder, **{**TABLES, **changes})
    return FileGraph(path=found["edges"], labels=found["labels"], features=found["features"]).load(Streams(0))


def test_csv_tables(tmp_path):
    check(load_tables(tmp_path))
    found = write(tmp_path, **TABLES)
    assert FileGraph(path=found["edges"], labels=found["labels"]).load(Streams(0)).dimensions == 0


def test_tab_separated_tables_and_a_byte_order_mark(tmp_path):
    for name in TABLES:
        (tmp_path / f"{name}.tsv").write_text("\ufeff" + TABLES[name].replace(",", "\t"), encoding="utf-8")
    names = {"path": "edges.tsv", "labels": "labels.tsv", "features": "features.tsv"}
    check(FileGraph(root=str(tmp_path), **names).load(Streams(0)))


def test_numeric_classes_sort_as_numbers(tmp_path):
    graph = load_tables(tmp_path, labels="id,class\nann,2\nbob,10\ncem,10\ndee,-1\n")
    check(graph)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"edges": "ann,bob\nbob,cem\n"}, "the first line ann,bob is a tie"),
        ({"edges": "a,b\nann,eve\nbob,eve\n"}, r"edges.csv: 1 node ids are not in labels.csv; the first is 'eve'"),
        ({"edges": "a\nann\n"}, "expected the two node ids of a tie"),
        ({"labels": "id,class\nann,1\nann,2\n"}, "node 'ann' occurs twice"),
        ({"labels": ""}, "cannot read"),
        ({"features": "name,likes\nann,1\nbob,1\n"}, "2 rows for 4 nodes"),
        ({"features": TABLES["features"].replace("0.5", "half")}, "line 4, column 'likes' holds 'half'"),
        ({"features": TABLES["features"].replace("0.5", "inf")}, "expected a finite number"),
        ({"features": TABLES["features"].replace("bob", "eve")}, "the first is 'eve'"),
    ],
)
def test_bad_tables_name_the_file_and_the_place(tmp_path, changes, says):
    with pytest.raises(GraphError, match=says):
        load_tables(tmp_path, **changes)


@pytest.mark.parametrize(
    "arrays",
    [
        {"edge_index": EDGES, "x": np.array(WORDS), "y": LABELS},
        {
            "edge_index": EDGES,
            "y": LABELS,
            **{
                f"x_{p}": np.asarray(getattr(sparse.csr_array(WORDS), p))
                for p in ("data", "indices", "indptr", "shape")
            },
        },
        {"edges": EDGES.T, "features": np.array(WORDS), "target": LABELS, "provenance": np.array("a text")},
    ],
)
def test_npz_layouts(tmp_path, arrays):
    np.savez(tmp_path / "g.npz", **arrays)
    check(FileGraph(path=str(tmp_path / "g.npz")).load(Streams(0)))


def test_packed_bits(tmp_path):
    bits = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1], [1, 0, 0]], dtype=np.uint8)
    packed = {"x_bits": np.packbits(bits, axis=1), "x_shape": np.array([4, 3])}
    np.savez(tmp_path / "g.npz", edge_index=EDGES, y=LABELS, **packed)
    check(FileGraph(path=str(tmp_path / "g.npz")).load(Streams(0)), bits.tolist())


class Boom:
    def __reduce__(self):
        return (print, ("a pickle ran code",))


def test_no_file_of_a_user_runs_code(tmp_path, capsys):
    np.savez(tmp_path / "g.npz", edge_index=np.array([[Boom()], [Boom()]], dtype=object), y=LABELS)
    (tmp_path / "g.pt").write_bytes(pickle.dumps(Boom(), protocol=2))
    for name in ("g.npz", "g.pt"):
        with pytest.raises(GraphError, match="cannot read"):
            FileGraph(path=str(tmp_path / name)).load(Streams(0))
    assert "ran code" not in capsys.readouterr().out


def test_other_arrays_are_refused_with_the_layouts(tmp_path):
    np.savez(tmp_path / "g.npz", nodes=np.arange(3))
    with pytest.raises(GraphError, match=r"holds the arrays nodes; allowed: edge_index"):
        FileGraph(path=str(tmp_path / "g.npz")).load(Streams(0))
    (tmp_path / "h.npz").write_bytes(b"PK no zip")
    with pytest.raises(GraphError, match="cannot read"):
        FileGraph(path=str(tmp_path / "h.npz")).load(Streams(0))


def test_saved_pyg_data(tmp_path):
    import torch
    from torch_geometric.data import Data

    data = Data(x=torch.tensor(WORDS), edge_index=torch.from_numpy(EDGES), y=torch.from_numpy(LABELS))
    torch.save(data, tmp_path / "g.pt")
    check(FileGraph(path=str(tmp_path / "g.pt")).load(Streams(0)))
    data.y = None
    torch.save(data, tmp_path / "h.pt")
    with pytest.raises(GraphError, match="expected edge_index, y"):
        FileGraph(path=str(tmp_path / "h.pt")).load(Streams(0))
    torch.save(torch.ones(3), tmp_path / "i.pt")
    with pytest.raises(GraphError, match="holds a Tensor"):
        FileGraph(path=str(tmp_path / "i.pt")).load(Streams(0))


def test_graphml(tmp_path):
    import networkx

    graph = networkx.DiGraph()
    for node, (likes, owns) in zip("abcd", WORDS):
        graph.add_node(node, likes=likes, owns=owns, name=f"name of {node}")
    graph.add_edges_from([("a", "b"), ("b", "a"), ("b", "c"), ("d", "c")], since=1)
    for node, club in zip("abc", ["red", "white", "white"]):
        graph.nodes[node]["club"] = club
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    check(FileGraph(path=str(tmp_path / "g.graphml"), label="club").load(Streams(0)))
    with pytest.raises(GraphError, match="no node has an attribute 'label'; found club, likes, name, owns"):
        FileGraph(path=str(tmp_path / "g.graphml")).load(Streams(0))
    (tmp_path / "h.graphml").write_text("<no")
    with pytest.raises(GraphError, match="as GraphML"):
        FileGraph(path=str(tmp_path / "h.graphml")).load(Streams(0))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "key 'path' is missing"),
        ({"path": "g.json"}, "path 'g.json' ends in '.json'; allowed: .csv"),
        ({"path": "edges.csv"}, "labels must name a table"),
        ({"path": "g.npz", "labels": "l.csv"}, "allowed: neither key here"),
    ],
)
def test_bad_settings_are_explained(data, says):
    problems: list[Problem] = []
    assert build(GraphSource, {"source": "file", **data}, ("graph",), problems) is None
    assert len(problems) == 1 and says in problems[0].message


def test_paths_start_beside_the_scenario_then_in_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "scenario").mkdir()
    (tmp_path / "working").mkdir()
    monkeypatch.chdir(tmp_path / "working")
    source = FileGraph(path="edges.csv", labels="labels.csv")
    folder = str(tmp_path / "scenario")
    assert source.beside(folder).path == f"{folder}/edges.csv"
    assert source.beside(folder).missing() == f"path: no such file: {folder}/edges.csv"
    write(tmp_path / "working", edges=TABLES["edges"], labels=TABLES["labels"])
    assert source.beside(folder).path == str(tmp_path / "working/edges.csv")
    write(tmp_path / "scenario", edges=TABLES["edges"])
    assert source.beside(folder).path == f"{folder}/edges.csv"
    assert source.beside(folder).missing() is None
    rooted = source.model_copy(update={"root": "../working"})
    assert rooted.beside(folder).path == str(tmp_path / "working/edges.csv")


def test_a_scenario_finds_the_files_beside_it_and_names_a_missing_one_with_its_line(tmp_path):
    from sim.kernel.errors import InputError
    from sim.scenario import load_scenario

    write(tmp_path, **TABLES)
    text = "name: mine\ngraph: {source: file, path: edges.csv, labels: labels.csv, features: features.csv}\n"
    (tmp_path / "mine.yaml").write_text(text)
    check(load_scenario(tmp_path / "mine.yaml").graph.load(Streams(0)))
    (tmp_path / "labels.csv").unlink()
    with pytest.raises(InputError, match=r"mine.yaml:2: graph\S*: labels: no such file: .*labels\.csv"):
        load_scenario(tmp_path / "mine.yaml")
