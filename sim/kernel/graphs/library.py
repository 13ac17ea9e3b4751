"""The benchmark graphs of the papers, from the raw files that PyTorch Geometric's loaders use.

The raw files are looked for where those loaders keep them (`<root>/<folder>/<name>/raw/...`), read in place without
writing anything beside them, and fetched from PyTorch Geometric's addresses into the root when they are absent.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import tempfile
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sim.kernel.graphs._arrays import Parts, read_npz
from sim.kernel.graphs._clean import clean
from sim.kernel.graphs._places import looked_in, roots
from sim.kernel.graphs.base import Facts, Graph, GraphError, GraphSource
from sim.kernel.randomness import Streams

PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
BENCHMARK_URL = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
GRAPHMINING_URL = "https://graphmining.ai/datasets/ptg"
DOWNLOAD_TIMEOUT = 30.0
"""Seconds without a byte after which a download is given up."""


@dataclass(frozen=True)
class Entry:
    """A data set: what it is, where its raw files lie below a root, where they come from, how they are read."""

    kind: str
    summary: str
    source: str
    folders: tuple[str, ...]  # below the root; the first one is where a download goes
    raw: str  # below the folder
    files: tuple[str, ...]
    url: str
    facts: Facts
    reader: str = "npz"  # npz | binary npz | planetoid

    def find(self, root: str | None) -> Path | None:
        """The folder that holds all the raw files, or None."""
        for base, _ in roots(root):
            for folder in (*self.folders, "."):
                place = base / folder / self.raw
                if all((place / name).is_file() for name in self.files):
                    return place
        return None

    def fetch(self, root: str | None) -> Path:
        """Download the raw files. Raises GraphError with what, where, and how to get it."""
        place = roots(root)[-1][0] / self.folders[0] / self.raw
        try:
            from torch_geometric.data import download_url

            place.mkdir(parents=True, exist_ok=True)
            with _quietly(), tempfile.TemporaryDirectory(dir=place) as folder:
                for name in self.files:
                    download_url(f"{self.url}/{name}", folder)
                for name in self.files:  # only whole sets arrive, so that an interrupted download leaves no trace
                    os.replace(Path(folder, name), place / name)
        except (OSError, ValueError) as error:
            wanted = ", ".join(self.files)
            raise GraphError(
                f"graph {self.kind!r} is not on this machine. Looked in: {looked_in(root)}. Downloading from "
                f"{self.url} failed: {error}. Put {wanted} into {place}, or name the folder that holds "
                f"{self.folders[0]}/{self.raw} as graph.root or in GRAPHWARDEN_DATA"
            ) from error
        return place

    def read(self, place: Path) -> Parts:
        """The raw parts."""
        if self.reader == "planetoid":
            return _read_planetoid(place, self.files[0].split(".")[1])
        parts = read_npz(place / self.files[0], trusted=True)
        if self.reader == "binary npz":
            return Parts(parts.features > 0, parts.ties, parts.labels)  # counts of words, used as 0/1 everywhere
        return parts


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """No chatter of the downloader, and no endless wait; both as before afterwards."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_TIMEOUT)
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        socket.setdefaulttimeout(before)


def _read_planetoid(place: Path, name: str) -> Parts:
    """Planetoid's pickles through PyTorch Geometric. Test nodes that are missing from the files have no label: the
    reader fills them with zero features and label 0, which is no statement about their class."""
    from torch_geometric.io import read_planetoid_data

    with warnings.catch_warnings():  # the pickles name modules of an older scipy
        warnings.simplefilter("ignore")
        try:
            data: Any = read_planetoid_data(str(place), name)
        except Exception as error:
            raise GraphError(f"cannot read the Planetoid files in {place}: {error}") from error
    listed = np.loadtxt(place / f"ind.{name}.test.index", dtype=np.int64)
    labels = data.y.numpy().copy()
    labels[np.setdiff1d(np.arange(listed.min(), listed.max() + 1), listed)] = -1
    return Parts(data.x.numpy(), data.edge_index.numpy(), labels)


class LibraryGraph(GraphSource):
    """A benchmark graph of `ENTRIES`."""

    entry: ClassVar[Entry]

    def load(self, streams: Streams) -> Graph:
        place = self.entry.find(self.root) or self.entry.fetch(self.root)
        return clean(self.kind, *self.entry.read(place))


def _planetoid(kind: str, summary: str, facts: Facts, folder: str) -> Entry:
    files = tuple(f"ind.{kind}.{part}" for part in PLANETOID_PARTS)
    source = "Sen et al. 2008; Yang et al. 2016"
    return Entry(kind, summary, source, ("planetoid",), f"{folder}/raw", files, PLANETOID_URL, facts, "planetoid")


def _benchmark(kind: str, summary: str, folder: str, name: str, file: str, facts: Facts) -> Entry:
    source = "Shchur et al. 2018"
    return Entry(kind, summary, source, (folder,), f"{name}/raw", (file,), BENCHMARK_URL, facts, "binary npz")


def _twitch(language: str, nodes: int, edges: int, homophily: float) -> Entry:
    summary = f"Friendships between {language} Twitch gamers; the class says whether one uses explicit language."
    facts = Facts(nodes, edges, 128, 2, homophily, "copies with rebuilt features are not comparable with papers")
    return Entry(
        f"twitch-{language.lower()}", summary, "Rozemberczki et al. 2021", ("twitch",), f"{language}/raw",
        (f"{language}.npz",), f"{GRAPHMINING_URL}/twitch", facts,
    )  # fmt: skip


def _graphmining(kind: str, summary: str, source: str, folder: str, file: str, facts: Facts) -> Entry:
    folders = (folder, f"{folder}_structure_only")
    return Entry(kind, summary, source, folders, "raw", (file,), GRAPHMINING_URL, facts)


PHOTO = ("amazon", "Photo", "amazon_electronics_photo.npz", Facts(7650, 119081, 745, 8, 0.827))

ENTRIES = (
    _planetoid(
        "citeseer",
        "Citations between computer science papers with binary word features.",
        Facts(3327, 4552, 3703, 6, 0.738, "15 nodes are absent from the files: no features, no label"),
        "CiteSeer",
    ),
    _planetoid(
        "pubmed",
        "Citations between diabetes papers with TF-IDF features.",
        Facts(19717, 44324, 500, 3, 0.802),
        "PubMed",
    ),
    _benchmark("amazon-photo", "Photo articles that are bought together.", *PHOTO),
    _benchmark("amap", "Amazon Photo under the name that EdgeRefine gives it.", *PHOTO),
    _benchmark(
        "amazon-computers",
        "Computer articles that are bought together.",
        "amazon",
        "Computers",
        "amazon_electronics_computers.npz",
        Facts(13752, 245861, 767, 10, 0.777),
    ),
    _benchmark(
        "coauthor-cs",
        "Co-authorships in computer science with key words of papers.",
        "coauthor",
        "CS",
        "ms_academic_cs.npz",
        Facts(18333, 81894, 6805, 15, 0.808),
    ),
    _benchmark(
        "coauthor-physics",
        "Co-authorships in physics with key words of papers.",
        "coauthor",
        "Physics",
        "ms_academic_phy.npz",
        Facts(34493, 247962, 8415, 5, 0.931, "235 constant columns dropped"),
    ),
    _twitch("DE", 9498, 153138, 0.632),
    _twitch("EN", 7126, 35324, 0.556),
    _twitch("ES", 4648, 59382, 0.580),
    _twitch("FR", 6549, 112666, 0.559),
    _twitch("PT", 1912, 31299, 0.571),
    _twitch("RU", 4385, 37304, 0.618),
    _graphmining(
        "facebook",
        "Mutual likes between verified pages of four kinds.",
        "Rozemberczki et al. 2021",
        "facebook_page_page",
        "facebook.npz",
        Facts(22470, 170823, 128, 4, 0.885, "copies with rebuilt features are not comparable with papers"),
    ),
    _graphmining(
        "github",
        "Mutual followers among developers of two kinds; no features, hubs of thousands of ties.",
        "Rozemberczki et al. 2021",
        "github",
        "github.npz",
        Facts(37700, 289003, 0, 2, 0.845, "no features"),
    ),
    _graphmining(
        "lastfm-asia",
        "Friendships between LastFM users in Asia; the class is the country.",
        "Rozemberczki and Sarkar 2020",
        "lastfm_asia",
        "lastfm_asia.npz",
        Facts(7624, 27806, 128, 18, 0.874, "0 dimensions in structure-only copies"),
    ),
)


def _register(entry: Entry) -> None:
    def body(namespace: dict[str, Any]) -> None:
        namespace.update(
            __doc__=entry.summary, __module__=__name__, entry=entry, facts=entry.facts, source=entry.source,
            __annotations__={},
        )  # fmt: skip

    name = "".join(part.capitalize() for part in entry.kind.split("-"))
    globals()[name] = types.new_class(name, (LibraryGraph,), {"kind": entry.kind}, body)


for _entry in ENTRIES:
    _register(_entry)
