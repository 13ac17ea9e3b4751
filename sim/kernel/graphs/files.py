"""A graph of the user's own, from files."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import model_validator

from sim.kernel.graphs._arrays import Parts, read_npz
from sim.kernel.graphs._clean import clean
from sim.kernel.graphs.base import Graph, GraphError, GraphSource, near
from sim.kernel.randomness import Streams

TABLES = (".csv", ".tsv", ".tab")
SUFFIXES = (*TABLES, ".npz", ".pt", ".pth", ".graphml")


class FileGraph(GraphSource, kind="file"):
    """Your own graph: CSV tables (edges, labels, features), an npz, a saved PyG Data, or GraphML.

    `path` is the graph, or the edge list when it ends in .csv or .tsv; then `labels` (node id, label) is needed and
    `features` (node id, numbers) is optional. `label` is the node attribute of a GraphML file that holds the class.
    Relative paths start from `root` if given, else from the scenario's folder, else from the working folder.
    """

    source: ClassVar[str] = "your files"

    path: str
    labels: str | None = None
    features: str | None = None
    label: str = "label"

    @model_validator(mode="after")
    def _keys_fit_the_format(self) -> FileGraph:
        suffix = Path(self.path).suffix.lower()
        if suffix not in SUFFIXES:
            raise ValueError(f"path {self.path!r} ends in {suffix or 'nothing'!r}; allowed: {', '.join(SUFFIXES)}")
        if suffix in TABLES and self.labels is None:
            raise ValueError(f"path {self.path!r} is an edge list; labels must name a table with node id and label")
        if suffix not in TABLES and (self.labels is not None or self.features is not None):
            raise ValueError(f"path {self.path!r} holds labels and features itself; allowed: neither key here")
        return self

    def beside(self, folder: str) -> FileGraph:
        start = folder if self.root is None else near(folder, self.root)
        names = {name: getattr(self, name) for name in ("path", "labels", "features")}
        found = {name: near(start, value) for name, value in names.items() if value is not None}
        return self.model_copy(update={**found, "root": None})

    def missing(self) -> str | None:
        for name in ("path", "labels", "features"):
            value = getattr(self, name)
            if value is not None and not self._place(value).is_file():
                return f"{name}: no such file: {self._place(value)}"
        return None

    def load(self, streams: Streams) -> Graph:
        problem = self.missing()
        if problem:
            raise GraphError(problem)
        path = self._place(self.path)
        return clean(path.stem, *self._read(path))

    def _place(self, name: str) -> Path:
        return Path(self.root or ".").expanduser() / Path(name).expanduser()

    def _read(self, path: Path) -> Parts:
        suffix = path.suffix.lower()
        if suffix == ".npz":
            return read_npz(path)
        if suffix in (".pt", ".pth"):
            from sim.kernel.graphs._objects import read_data

            return read_data(path)
        if suffix == ".graphml":
            from sim.kernel.graphs._objects import read_graphml

            return read_graphml(path, self.label)
        from sim.kernel.graphs._tables import read_tables

        assert self.labels is not None  # the validator saw to it
        return read_tables(
            path, self._place(self.labels), None if self.features is None else self._place(self.features)
        )
