"""ACM and DBLP as EdgeRefine uses them: small npz files without a public loader."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from sim.kernel.graphs._arrays import read_npz
from sim.kernel.graphs._clean import clean
from sim.kernel.graphs._places import looked_in, roots
from sim.kernel.graphs.base import Facts, Graph, GraphError, GraphSource
from sim.kernel.randomness import Streams


class RepackedGraph(GraphSource):
    """A graph in `<root>/<kind>/<kind>.npz` or `<root>/<kind>.npz`."""

    def _find(self) -> Path | None:
        for base, _ in roots(self.root):
            for place in (base / self.kind / f"{self.kind}.npz", base / f"{self.kind}.npz"):
                if place.is_file():
                    return place
        return None

    def missing(self) -> str | None:
        if self._find() is not None:
            return None
        return (
            f"graph {self.kind!r} is not on this machine. Looked for {self.kind}/{self.kind}.npz in: "
            f"{looked_in(self.root)}. Repack it from EdgeRefine-datasets.zip of github.com/Liumz-1/EdgeRefine-open as "
            f"an npz with edge_index (2, m), x (n, d) and y (n,), and name its folder as graph.root or in "
            f"GRAPHWARDEN_DATA"
        )

    def load(self, streams: Streams) -> Graph:
        place = self._find()
        if place is None:
            raise GraphError(self.missing())
        return clean(self.kind, *read_npz(place))


class Acm(RepackedGraph, kind="acm"):
    """Papers of three fields, tied when they share an author; binary key words."""

    source: ClassVar[str] = "Wang et al. 2019; as in EdgeRefine"
    facts: ClassVar[Facts | None] = Facts(3025, 13128, 1870, 3, 0.821, "561 nodes without ties")


class Dblp(RepackedGraph, kind="dblp"):
    """Authors of four fields, tied when they wrote together; binary key words. Not the citation graph of that name."""

    source: ClassVar[str] = "Bo et al. 2020; as in EdgeRefine"
    facts: ClassVar[Facts | None] = Facts(4057, 3528, 334, 4, 0.799, "1466 nodes without ties")
