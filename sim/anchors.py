"""Anchors: what the same server would have reached on other structures or without the attack, same split and seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from server.denoising import NoDenoising
from server.evidence import Evidence, Structure
from server.pipeline import NobodyLeft, Outcome, Pipeline, restrict
from server.pruning.base import NoPruning
from server.refinement.attested import Attested
from server.refinement.none import empty
from server.suspicion.base import NoSuspicion

if TYPE_CHECKING:
    from sim.observer import Observer

LEAST_GAIN = 0.02
"""Below this the graph is worth too little for `gain_retained` to mean anything."""


class Anchors:
    """The anchors of one round. Every training uses the round's own seed, so differences are paired, and starts from
    fresh weights: those of an earlier round would carry over what the private graph had taught them."""

    def __init__(
        self, observer: Observer, pipeline: Pipeline, evidence: Evidence, outcome: Outcome, round: int
    ) -> None:
        self.observer, self.pipeline, self.evidence = observer, pipeline, evidence
        self.outcome, self.round = outcome, round
        self.epoch = int(evidence.extra["epoch"])  # a curator's release of this round stays the same in every anchor
        public = observer.directory.public
        self.started_fresh = round == 1 or not getattr(pipeline.settings.training, "warm_start", False)
        self.attackers = np.zeros(evidence.n, dtype=bool)
        self.attackers[public[observer.honest :]] = True

    def columns(self, test_accuracy: float | None, progress: Any = None) -> dict[str, Any]:
        """All anchor columns, `damage`, `recovered` and `gain_retained`; nothing without training."""
        if test_accuracy is None:
            return {}
        row: dict[str, Any] = {}
        for name in ("no_edges", "true_graph", "clean", "undefended", "oracle_pruned", "no_attack", "random_edges"):
            if progress is not None:
                progress(f"anchor {name.replace('_', ' ')}")
            try:
                row[f"accuracy_{name}"] = getattr(self, f"_{name}")()
            except NobodyLeft:  # where the defence prunes everybody without an attack, say
                row[f"accuracy_{name}"] = None
        for name, structure in self._controls().items():
            row[f"accuracy_{name}"] = self._train(structure)
        row["damage"] = _minus(row["accuracy_no_attack"], row["accuracy_undefended"])
        row["recovered"] = _minus(test_accuracy, row["accuracy_undefended"])
        gain = row["accuracy_true_graph"] - row["accuracy_no_edges"]
        if gain >= LEAST_GAIN:
            row["gain_retained"] = (test_accuracy - row["accuracy_no_edges"]) / gain
        return row

    def _test(self, predictions: np.ndarray | None) -> float | None:
        return self.observer.accuracy(predictions, self.observer.test)

    def _train(
        self,
        structure: Structure,
        pipeline: Pipeline | None = None,
        evidence: Evidence | None = None,
        gone: np.ndarray | None = None,
    ) -> float | None:
        learned = (pipeline or self.pipeline).train_on(evidence or self.evidence, structure, self.round, gone)
        return self._test(learned.predictions)

    def _true_structure(self) -> Structure:
        upper = sparse.triu(self.observer.graph.ties, k=1).tocoo()
        a, b = (self.observer.directory.public[side] for side in upper.coords)
        return Structure(np.minimum(a, b).astype(np.int32), np.maximum(a, b).astype(np.int32))

    def _no_edges(self) -> float | None:
        return self._train(empty())

    def _true_graph(self) -> float | None:
        return self._train(self._true_structure())

    def _clean(self) -> float | None:
        """True graph and true features: the attackers are isolated users without features or labels."""
        graph, directory = self.observer.graph, self.observer.directory
        blank = sparse.csr_array((self.evidence.n - graph.nodes, graph.dimensions), dtype=np.float32)
        rows = sparse.csr_array(sparse.vstack([graph.features, blank], format="csr"))[directory.stable]
        protocol = replace(self.pipeline.protocol, features=public_features())
        plain = Pipeline(
            self.pipeline.settings.model_copy(update={"denoising": NoDenoising()}), protocol, self.pipeline.streams
        )
        plain.transition = self.pipeline.transition
        evidence = replace(self.evidence, features=sparse.csr_array(rows))
        return self._train(self._true_structure(), plain, evidence, self.attackers)

    def _plain(self) -> Pipeline:
        """Suspicion and pruning off, the protocol's plain edges."""
        changes: dict[str, Any] = {"suspicion": NoSuspicion(), "pruning": NoPruning()}
        if self.pipeline.protocol.ties.form == "verification-list":
            changes["refinement"] = Attested()
        return self.pipeline.variant(**changes)

    def _undefended(self) -> float | None:
        plain = self._plain()
        same = plain.settings.refinement == self.pipeline.settings.refinement
        if same and self.started_fresh and not self.outcome.decision.flagged.any():
            return self._test(self.outcome.learned.predictions)
        return self._test(plain.run(self.evidence, self.round, self.epoch).learned.predictions)

    def _oracle_pruned(self) -> float | None:
        if not self.attackers.any():
            return None
        return self._test(
            self.pipeline.variant().run(self.evidence, self.round, self.epoch, self.attackers).learned.predictions
        )

    def _no_attack(self) -> float | None:
        """The same defence on the same honest reports, as if nobody else had taken part."""
        if self.started_fresh and not self.attackers.any():
            return self._test(self.outcome.learned.predictions)
        honest = np.flatnonzero(~self.attackers)
        alone = restrict(self.evidence, honest)
        twin = Pipeline(self.pipeline.settings, alone.protocol, self.pipeline.streams)
        twin.transition = self.pipeline.transition
        inner = twin.run(alone, self.round, self.epoch).learned.predictions
        if inner is None:
            return None
        everyone = np.full(self.evidence.n, -1, dtype=np.int64)
        everyone[honest] = inner
        return self._test(everyone)

    def _random_edges(self) -> float | None:
        """As many ties as were published, between uniformly random honest users."""
        hard = self.outcome.learned.structure.hard
        size = len(self.outcome.learned.structure.u) if hard is None else int(hard.sum())
        honest = np.flatnonzero(~self.attackers)
        return self._train(random_structure(honest, size, self.pipeline.streams.generator("anchor/random", self.round)))

    def _controls(self) -> dict[str, Structure]:
        """Structures of public data only, chosen by the run's own model on validation users."""

        def validate(structure: Structure) -> float:
            return float(self.pipeline.train_on(self.evidence, structure, self.round).result.validation_accuracy)

        # Attention pays for every tie in every head, so its public twin is sparser.
        per_user = 5.0 if getattr(self.pipeline.settings.training, "model", "") == "gat" else 25.0
        refinement, kept = self.pipeline.settings.refinement, ~self.outcome.decision.flagged
        return refinement.controls(self.evidence, kept, validate, per_user)


def random_structure(members: np.ndarray, size: int, generator: np.random.Generator) -> Structure:
    """`size` distinct uniformly random pairs of `members` (all pairs if there are fewer)."""
    n = len(members)
    pairs = n * (n - 1) // 2
    chosen = np.unique(generator.integers(0, pairs, min(size, pairs) * 2)) if pairs else np.zeros(0, dtype=np.int64)
    if len(chosen) < min(size, pairs):
        chosen = np.arange(pairs)
    chosen = generator.permutation(chosen)[: min(size, pairs)]
    # Pair number k of the upper triangle, counted column by column: k = v (v - 1) / 2 + u with u < v.
    v = ((1 + np.sqrt(1 + 8 * chosen.astype(np.float64))) / 2).astype(np.int64)
    v = np.where(v * (v - 1) // 2 > chosen, v - 1, v)
    v = np.where(v * (v + 1) // 2 <= chosen, v + 1, v)
    u = chosen - v * (v - 1) // 2
    a, b = members[u], members[v]
    order = np.lexsort((np.maximum(a, b), np.minimum(a, b)))
    return Structure(np.minimum(a, b)[order].astype(np.int32), np.maximum(a, b)[order].astype(np.int32))


def public_features() -> Any:
    """The mechanism of public features."""
    from agents.privacy.features.none import PublicFeatures

    return PublicFeatures()


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
