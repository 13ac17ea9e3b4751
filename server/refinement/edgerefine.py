"""EdgeRefine: ties with similar neighbourhoods in the noisy graph, a quota of them reported and a quota not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from agents.privacy.ties import TieProtocol
from server.bits import BitChannel, estimated_ties, observed_pairs, pair_channel
from server.estimates import PairEstimate
from server.evidence import Evidence, Structure
from server.refinement.base import Refinement
from sim.kernel.errors import SettingError
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from server.refinement._edgerefine_bins import PackedGraph

CELLS = 4096
"""Equal cells of similarity on which the calibrations other than `histogram` work."""
TRUE_EDGE_COUNT = "true_edge_count"
"""Key of `Evidence.extra` with the true number of ties, set for components that say `needs_true_edge_count`."""

_PAPER = {
    "similarity": "jaccard", "calibration": "histogram", "debias": False, "bins": 10, "selection": "quota",
    "ties": "row-order", "edge_count": "exact", "real_quota": "floor", "bin_sample": None,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "paper": _PAPER,
    "authors-code": {**_PAPER, "real_quota": "round", "bin_sample": 200_000},
}


class EdgeRefine(Refinement, kind="edgerefine"):
    """Keeps a quota of reported and of unreported pairs whose noisy neighbourhoods are alike (EdgeRefine).

    The noisy graph gives every pair a similarity; a calibration turns it into a probability, and of a total of
    floor(rate * ties) pairs a share rho = P(1 | tie) is taken from the most probable reported pairs, the rest from the
    most probable pairs that nobody reported. Few pairs differ in probability, so the rule for `ties` decides almost
    everything: `row-order` (the authors') publishes a star on the first user, `continuous` prefers the greater
    similarity, `random` draws. `edge_count` is where the number of ties comes from: `exact` is the private truth and
    leaks it, `estimated` follows from the bits at no cost, `noisy` costs `count_share` of the budget. `debias` corrects
    published probabilities for the known noise; being monotone, it changes no choice. `preset` sets everything but
    `rate`.
    """

    source: ClassVar[str] = "EdgeRefine, Algorithms 1-4; variants of its Appendix C.6"
    accepts: ClassVar[tuple[str, ...]] = ("pair-bits", "binary-list", "verification-list")

    preset: Literal["none", "paper", "authors-code"] = "none"
    rate: float = Field(0.01, ge=0, le=1)
    similarity: Literal["jaccard", "adamic-adar"] = "jaccard"
    calibration: Literal["histogram", "simple", "isotonic", "beta", "temperature"] = "histogram"
    debias: bool = False
    bins: int = Field(10, ge=1, le=32)
    bin_sample: int | None = Field(None, ge=100)  # quantiles of that many random pairs instead of all
    selection: Literal["quota", "top-k"] = "quota"
    real_quota: Literal["floor", "round"] = "floor"
    ties: Literal["row-order", "continuous", "random"] = "row-order"
    edge_count: Literal["exact", "estimated", "noisy"] = "estimated"
    count_share: float = Field(0.05, gt=0, lt=1)

    @model_validator(mode="before")
    @classmethod
    def _fill_preset(cls, values: Any) -> Any:
        if isinstance(values, dict):
            preset = values.get("preset")
            return {**(PRESETS.get(preset, {}) if isinstance(preset, str) else {}), **values}
        return values

    @model_validator(mode="after")
    def _keep_preset(self) -> EdgeRefine:
        for name, value in PRESETS.get(self.preset, {}).items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"preset {self.preset!r} means {name}: {value}, found {getattr(self, name)}; allowed: leave {name} "
                    "out, or preset: none"
                )
        return self

    @property
    def needs_true_edge_count(self) -> bool:
        """Whether the run has to hand over the private number of ties."""
        return self.edge_count == "exact"

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        from agents.privacy.ties.pair_bits import PairBits

        return PairBits(epsilon=epsilon, count_share=self.count_share if self.edge_count == "noisy" else 0.0)

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        from server.refinement import _edgerefine_select as selection

        members = np.flatnonzero(kept)
        graph = self._graph(evidence, members) if len(members) > 1 else None
        total, notes = self._edge_count(evidence, kept, 0 if graph is None else graph.ones)
        wanted = int(self.rate * total)
        if graph is None or wanted == 0:
            nobody = np.zeros(0, dtype=np.int32)
            return Structure(nobody, nobody, probability=np.zeros(0), summary={"edge_count_used": total}, notes=notes)
        ranked = self._ranked(graph, streams)
        quota = self.selection == "quota"
        need: tuple[int, ...] = (wanted,)
        if quota:
            rho = pair_channel(evidence.protocol.ties).hit
            real = int(rho * wanted) if self.real_quota == "floor" else round(rho * wanted)
            need = (wanted - real, real)
        counts = ranked.counts if quota else ranked.counts.sum(axis=1, keepdims=True)
        take, whole, some = selection.plan(ranked.raw, counts, need)
        rule, words, key = selection.RULES[self.ties], self._words(evidence, members), streams.key("refinement/ties")
        u, v = selection.select(
            *graph.arguments, ranked.codes, ranked.low, ranked.scale, len(ranked.raw), quota,
            take[:, ranked.group_of_code], whole, some, rule, words, key,
        )  # fmt: skip
        order = np.lexsort((v, u))
        u, v = u[order], v[order]
        probability = self._published(ranked.raw, evidence)[ranked.groups(graph, u, v)]
        summary = {"edge_count_used": total, "selected": float(len(u))}
        ends = members[u].astype(np.int32), members[v].astype(np.int32)
        return Structure(*ends, probability=probability, summary=summary, notes=notes)

    def pair_estimate(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> PairEstimate:
        """The probabilities behind `refine`, for all pairs of kept users."""
        from server.refinement._edgerefine_kernels import cells_of_all

        members = np.flatnonzero(kept)
        if len(members) < 2:
            return PairEstimate(members, np.zeros(0, dtype=np.uint8), np.zeros(1))
        graph = self._graph(evidence, members)
        ranked = self._ranked(graph, streams)
        codes = ranked.codes
        if not len(codes):
            codes = cells_of_all(*graph.arguments, ranked.low, ranked.scale, len(ranked.raw))
        return PairEstimate(members, codes, self._published(ranked.raw, evidence)[ranked.group_of_code])

    def warm_up(self) -> None:
        from server.refinement._edgerefine_warm import warm_up

        warm_up()

    def _graph(self, evidence: Evidence, members: np.ndarray) -> PackedGraph:
        """The noisy graph: a pair is 1 where the end that speaks reports it, and where two ends do, where both do."""
        from server.refinement import _bit_rows as bit_rows
        from server.refinement._edgerefine_bins import empty_rows, packed

        place = np.full(evidence.n, -1, dtype=np.int64)
        place[members] = np.arange(len(members))
        rows = empty_rows(len(members))
        if evidence.protocol.ties.two_ended:
            bit_rows.pack_pairs(evidence.pairs.u, evidence.pairs.v, place, rows)
        else:
            bit_rows.pack_either(*_indices(evidence), place, rows)
        return packed(rows, self.similarity)

    def _edge_count(self, evidence: Evidence, kept: np.ndarray, ones: int) -> tuple[float, tuple[str, ...]]:
        """(number of ties that the quota is a share of, notes)."""
        if self.edge_count == "exact":
            if TRUE_EDGE_COUNT not in evidence.extra:
                raise SettingError(
                    "edgerefine: edge_count 'exact' needs the true number of ties, and this run hands none over; "
                    "allowed: estimated, or noisy"
                )
            note = "edgerefine: edge_count 'exact' uses the private number of ties; epsilon does not cover that"
            return float(evidence.extra[TRUE_EDGE_COUNT]), (note,)
        if self.edge_count == "noisy":
            numbers = evidence.numbers[0] if evidence.numbers else np.zeros((evidence.n, 0))
            if evidence.protocol.ties.form != "pair-bits" or numbers.shape[1] == 0:
                raise SettingError(
                    "edgerefine: edge_count 'noisy' needs pair-bits reports with a count (privacy.ties.kind: auto, or "
                    f"count_share above 0), found {evidence.protocol.ties.form}; allowed besides: estimated"
                )
            return max(0.0, float(np.nansum(numbers[kept, 0]))), ()
        channel = pair_channel(evidence.protocol.ties)
        return estimated_ties(ones, observed_pairs(evidence, kept), channel), ()

    def _ranked(self, graph: PackedGraph, streams: Streams) -> Ranked:
        """Groups of pairs with their probabilities."""
        from server.refinement import _edgerefine_kernels as kernels
        from server.refinement._calibration import METHODS
        from server.refinement._edgerefine_bins import quantile_bins

        if self.calibration == "histogram":
            generator = streams.generator("refinement/bins")
            found = quantile_bins(graph, self.bins, generator, self.bin_sample)
            raw = METHODS["histogram"](found.edges[:-1], found.counts)
            return Ranked(raw, found.counts, found.codes, found.bin_of_code, 0.0, 1.0)
        smallest, greatest = kernels.extremes(*graph.arguments)
        scale = CELLS / (greatest - smallest) if greatest > smallest else 0.0
        counts = kernels.cell_histogram(*graph.arguments, smallest, scale, CELLS)
        middles = smallest + (np.arange(CELLS) + 0.5) / scale if scale else np.full(CELLS, smallest)
        raw = METHODS[self.calibration](middles / greatest if greatest > 0 else middles, counts)
        return Ranked(raw, counts, np.zeros(0, dtype=np.uint8), np.arange(CELLS), smallest, scale)

    def _published(self, raw: np.ndarray, evidence: Evidence) -> np.ndarray:
        """Probabilities as published: de-biased when asked for, and inside [0, 1]."""
        channel: BitChannel = pair_channel(evidence.protocol.ties)
        return np.clip(channel.debiased(raw) if self.debias else raw, 0.0, 1.0)

    def _words(self, evidence: Evidence, members: np.ndarray) -> np.ndarray:
        """A word per user that does not depend on ids: what a draw between equal pairs is keyed by."""
        if self.ties == "row-order":
            return np.zeros(len(members), dtype=np.uint64)
        from server._canonical import fingerprints

        colours = np.zeros(evidence.n, dtype=np.uint64)
        return fingerprints(*_indices(evidence), evidence.lists.data, colours, 2)[members]


def _indices(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Row starts and columns of the lists in the two integer types that kernels are compiled for."""
    return evidence.lists.indptr.astype(np.int64, copy=False), evidence.lists.indices.astype(np.int32, copy=False)


@dataclass(frozen=True)
class Ranked:
    """Groups of pairs: `raw` (g,) probability and `counts` (g, 2) pairs by bit. A pair's group is
    `group_of_code[codes]`, or with empty `codes` the cell floor((similarity - low) * scale)."""

    raw: np.ndarray
    counts: np.ndarray
    codes: np.ndarray
    group_of_code: np.ndarray
    low: float
    scale: float

    def groups(self, graph: PackedGraph, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Groups of listed pairs u < v."""
        from server.refinement._edgerefine_kernels import score_pairs
        from server.refinement._pairs import triangle_cells

        if len(self.codes):
            return self.group_of_code[self.codes[triangle_cells(u, v, graph.n)]]
        scores = score_pairs(*graph.arguments, u, v)
        return np.minimum((scores - self.low) * self.scale, len(self.raw) - 1).astype(np.int64)
