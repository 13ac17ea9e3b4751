"""EdgeRefine's refinement against the straightforward ways, in one run: sets of neighbours on 1,000 users, dense matrix
products on DBLP (4,057 users).

Prints seconds, memory growth and ratios, and how many pairs all ways agree on. Kernels are compiled before a clock
starts; on a busy machine the processor time is the fairer number. Targets on one core: DBLP at epsilon 1 under 0.3 s
and 60 MB of growth, Amazon Photo under 1.5 s. Graphs come from GRAPHWARDEN_DATA; without it, random ones of the same
size stand in.
"""

from __future__ import annotations

import math
import resource
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from agents.privacy.features.none import PublicFeatures
from agents.privacy.ties.pair_bits import PairBits
from agents.protocol import Protocol, RoundCall
from server.evidence import Evidence, Structure
from server.refinement._edgerefine_plain import Pair, edgerefine_plain, probabilities_plain, quantile_bins_plain
from server.refinement.edgerefine import EdgeRefine
from sim.kernel.graphs import GraphError, load
from sim.kernel.graphs.synthetic import Synthetic
from sim.kernel.randomness import Streams

EPSILON, RATE = 1.0, 0.01


def forget_peak() -> None:
    """Let the largest resident memory start again from now, where the system allows it (Linux)."""
    marker = Path("/proc/self/clear_refs")
    if marker.exists():
        marker.write_text("5")


def megabytes(field: str = "VmHWM") -> float:
    """Largest resident memory since the last `forget_peak` (VmRSS: that of now)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith(field))


def graph_of(name: str, nodes: int, degree: float) -> tuple[str, sparse.csr_array]:
    """A graph's ties by name, or a random stand-in."""
    streams = Streams(1)
    if name:
        try:
            return name, load(name, streams).ties
        except GraphError:
            name = f"stand-in for {name}"
    made = load(Synthetic(nodes=nodes, mean_degree=degree, dimensions=128, classes=4), streams)
    return name or f"{nodes} users", made.ties


def reports_of(ties: sparse.csr_array) -> tuple[Evidence, float]:
    """What the server holds, and the seconds it took all users to make it."""
    n, protocol = ties.shape[0], PairBits(epsilon=EPSILON)
    facts = Protocol(n, 1, 2, PublicFeatures(), protocol, "undirected-tie", 1, ties.nnz / n)
    truth = sparse.csr_array(ties.astype(np.int8))
    start = time.perf_counter()
    made = protocol.encode(truth, np.arange(n), Streams(42), RoundCall(1, 0, 1, False, facts))
    seconds = time.perf_counter() - start
    everyone, nobody = np.ones(n, bool), np.zeros(n, bool)
    features = sparse.csr_array((n, 1), dtype=np.float32)
    extra = {"true_edge_count": np.array(ties.nnz // 2)}
    return Evidence(facts, everyone, features, made.lists, [], np.full(n, -1), nobody, nobody, extra), seconds


def timed(method: EdgeRefine, evidence: Evidence, repeats: int = 5) -> tuple[float, float, Structure]:
    """(best seconds of some repeats, best seconds of processor time, the structure)."""
    best, busy, everyone = math.inf, math.inf, np.ones(evidence.n, bool)
    for _ in range(repeats):
        start, begun = time.perf_counter(), time.process_time()
        made = method.refine(evidence, everyone, Streams(1))
        best, busy = min(best, time.perf_counter() - start), min(busy, time.process_time() - begun)
    return best, busy, made


def dense_way(bits: np.ndarray, edges: int) -> set[Pair]:
    """The authors' rule by one matrix product, numpy's quantiles over all pairs, and stable sorts."""
    common = (bits.astype(np.float32) @ bits.astype(np.float32)).astype(np.int64)
    degrees, upper = bits.sum(axis=1), np.triu_indices(len(bits), 1)
    scores = common[upper] / np.maximum((degrees[:, None] + degrees - common)[upper], 1)
    reported = bits[upper]
    probability = probabilities_plain(quantile_bins_plain(scores, 10), reported.astype(int))
    wanted = int(RATE * edges)
    real = int(wanted * math.exp(EPSILON) / (1 + math.exp(EPSILON)))
    chosen: set[Pair] = set()
    for kind, quota in ((False, wanted - real), (True, real)):
        places = np.flatnonzero(reported == kind)
        places = places[np.argsort(-probability[places], kind="stable")[:quota]]
        chosen |= set(zip(upper[0][places].tolist(), upper[1][places].tolist()))
    return chosen


def pairs_of(made: Structure) -> set[Pair]:
    """The published pairs."""
    return set(zip(made.u.tolist(), made.v.tolist()))


def matrix_of(evidence: Evidence) -> np.ndarray:
    """(n, n) boolean noisy graph."""
    return (evidence.lists + evidence.lists.T).toarray() > 0


if __name__ == "__main__":
    paper = EdgeRefine(preset="paper", rate=RATE)
    variants = {
        "authors' rule": paper,
        "random ties": EdgeRefine(edge_count="exact", ties="random"),
        "continuous ties": EdgeRefine(edge_count="exact", ties="continuous"),
        "isotonic": EdgeRefine(edge_count="exact", calibration="isotonic"),
        "Adamic-Adar": EdgeRefine(edge_count="exact", similarity="adamic-adar"),
    }
    paper.warm_up()
    reports_of(graph_of("", 200, 4.0)[1])
    held = {}
    for source, nodes, degree in (("dblp", 4057, 1.74), ("amazon-photo", 7650, 31.1)):
        name, ties = graph_of(source, nodes, degree)
        held[source], report = reports_of(ties)
        forget_peak()
        before = megabytes("VmRSS")
        seconds, _, made = timed(paper, held[source], repeats=1)
        print(f"{name}: {len(made.u)} pairs of {ties.nnz // 2:,} ties; reports {report:.2f} s", end="; ")
        print(f"first refinement {seconds:.3f} s, +{megabytes() - before:.0f} MB")
        for label, method in variants.items():
            seconds, busy, _ = timed(method, held[source], repeats=3)
            print(f"  {label:<16} {seconds:.3f} s ({busy:.3f} s of processor time)")

    seconds, _, made = timed(paper, held["dblp"])
    start = time.perf_counter()
    dense = dense_way(matrix_of(held["dblp"]), int(held["dblp"].extra["true_edge_count"]))
    slow = time.perf_counter() - start
    same = len(dense & pairs_of(made))
    ratio = f"{slow / seconds:.0f} times as long"
    print(f"dblp, dense matrix products: {slow:.2f} s, {ratio}; {same} of {len(dense)} pairs equal")

    evidence, _ = reports_of(graph_of("", 1000, 8.0)[1])
    seconds, _, made = timed(paper, evidence)
    edges = int(evidence.extra["true_edge_count"])
    start = time.perf_counter()
    plain = edgerefine_plain(matrix_of(evidence), edges, RATE, math.e / (1 + math.e))
    slow = time.perf_counter() - start
    same = len(plain & pairs_of(made))
    ratio = f"{slow / seconds:.0f} times as long"
    print(f"1,000 users, sets of neighbours: {slow:.2f} s, {ratio}; {same} of {len(plain)} pairs equal")
