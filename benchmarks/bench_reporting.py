"""Reporting and attestation of 7,600 agents at epsilon 5, against the dense way on a size where that fits.

Prints seconds, memory and ratios of one run; kernels are compiled before the clock starts. Targets: under 2 s on one
core, and memory that follows the noisy entries, not n x n.
"""

from __future__ import annotations

import resource
import time

import numpy as np

from agents.population import HonestUsers, Population
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Protocol, RoundCall
from server.attestation import mutual_pairs
from server.server import spread
from sim.directory import Directory
from sim.kernel.graphs import load
from sim.kernel.graphs.synthetic import Synthetic
from sim.kernel.randomness import Streams


def megabytes() -> float:
    """Largest resident memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_round(nodes: int, epsilon: float) -> tuple[float, int, float]:
    """(seconds, list entries, MB of growth) of all reports, their translation to server ids, and the AND pairs."""
    streams = Streams(1)
    graph = load(Synthetic(nodes=nodes, mean_degree=7.3, dimensions=128, classes=10), streams)
    ties = VerificationList(epsilon=epsilon, levels=5)
    protocol = Protocol(nodes, graph.dimensions, graph.classes, Piecewise(epsilon=0.1), ties, "list-entry", 1, 7.3)
    population = Population.found(HonestUsers(), graph.features, graph.ties, nodes, 5, streams)
    directory, call = Directory.draw(nodes, streams), RoundCall(1, 0, 0, True, protocol)
    before, start = megabytes(), time.perf_counter()
    batch = directory.translate(population.reports(np.arange(nodes), call))
    pairs = mutual_pairs(spread(batch.lists, batch.senders, nodes))
    assert len(pairs.u) > 0
    return time.perf_counter() - start, batch.lists.nnz, megabytes() - before


def dense_round(nodes: int, epsilon: float) -> float:
    """Seconds of the plain way: one draw per entry of an n x n matrix, and a dense AND."""
    levels, generator = 5, np.random.default_rng(1)
    start = time.perf_counter()
    replaced = generator.random((nodes, nodes)) < (levels + 1) / (np.exp(epsilon) + levels)
    symbols = generator.integers(0, levels + 1, (nodes, nodes), dtype=np.int8)
    lists = np.where(replaced, symbols, 0).astype(np.int8)
    np.triu((lists > 0) & (lists.T > 0)).nonzero()
    return time.perf_counter() - start


if __name__ == "__main__":
    one_round(200, 5.0)
    for nodes, epsilon in ((7600, 5.0), (7600, 7.0), (15200, 7.0), (37700, 7.0)):
        seconds, entries, growth = one_round(nodes, epsilon)
        each = growth * 1e6 / entries
        what = f"{nodes:>6} agents, epsilon {epsilon}"
        print(f"{what}: {seconds:.2f} s, {entries:,} entries, +{growth:.0f} MB ({each:.0f} bytes each)")
    sparse_way, dense_way = one_round(4000, 5.0)[0], dense_round(4000, 5.0)
    print(f"  4000 agents, epsilon 5.0: dense / sparse time = {dense_way / sparse_way:.1f}")
