"""DPRR: the union of degree-preserving noisy lists."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from agents.privacy.ties import TieProtocol
from agents.privacy.ties.sampled_list import Budget, SampledList
from server.evidence import Evidence, Structure
from server.refinement._pairs import among, reported_pairs
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams


class DegreePreserving(Refinement, kind="dprr"):
    """Ties named in degree-preserving noisy lists (DPRR): degrees survive, single ties hardly do.

    `symmetrise`: `or` publishes a tie that either end names, so that about twice the degree appears; `lower-triangle`
    asks the end with the larger server id only; `none` is the authors' directed graph, whose arcs become ties all the
    same. `budget` is the split of epsilon that users are asked for with `privacy.ties.kind: auto`.
    """

    source: ClassVar[str] = "DPRR: Hidano & Murakami, Transactions on Data Privacy 2024 (arXiv 2202.10209)"
    accepts: ClassVar[tuple[str, ...]] = ("sampled-list",)

    symmetrise: Literal["or", "lower-triangle", "none"] = "or"
    budget: Budget = "authors"

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        return SampledList(epsilon=epsilon, budget=self.budget)

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        lists = evidence.lists
        notes: tuple[str, ...] = ()
        if self.symmetrise == "lower-triangle":
            owner = np.repeat(np.arange(evidence.n, dtype=np.int32), np.diff(lists.indptr))
            below = lists.indices < owner
            u, v = lists.indices[below], owner[below]
        else:
            u, v = reported_pairs(lists, ends=1)
            if self.symmetrise == "none":
                notes = ("dprr: the authors' graph is directed; here an arc in either direction is a tie",)
        u, v = among(kept, u, v)
        return Structure(u, v, notes=notes)
