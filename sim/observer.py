"""The observer: the only room with ground truth. It turns a round into rows of statistics; nothing flows back."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from agents.coalition import Plan
from agents.population import Population
from agents.privacy.ledger import Ledger
from server.channel import Channel
from server.evidence import Evidence, Structure
from server.pipeline import Outcome, Pipeline
from sim.anchors import Anchors
from sim.bounds import detection_bound
from sim.columns import GROUP, ROUND
from sim.directory import Directory
from sim.facts import RoundFacts
from sim.kernel.graphs import Graph
from sim.kernel.randomness import Streams
from sim.measures import degree_distance, mean, peak_memory_mb, ranking, root_mean_square
from sim.scenario import Scenario

Row = dict[str, Any]


class Observer:
    """Holds a copy of the truth. `rows`, `groups` and `fates` are what a run records."""

    def __init__(
        self,
        scenario: Scenario,
        graph: Graph,
        directory: Directory,
        group_of: np.ndarray,
        split: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        self.scenario, self.graph, self.directory = scenario, graph, directory
        self.group_of = group_of  # (N,) index of the attacker group, -1 honest
        self.train, self.validation, self.test = split
        self.names = [group.name for group in scenario.population.attackers]
        self.rows: list[Row] = []
        self.groups: list[Row] = []
        self.flagged_round = np.full(len(group_of), -1)
        self.asked: list[set[tuple[int, int]]] = [set() for _ in self.names]
        self.fates: pd.DataFrame | None = None
        self.notes: list[str] = []

    @property
    def honest(self) -> int:
        """Number of honest users n; stable ids 0..n-1."""
        return self.graph.nodes

    def watch(
        self,
        facts: RoundFacts,
        outcome: Outcome,
        evidence: Evidence,
        pipeline: Pipeline,
        plans: list[Plan],
        ledger: Ledger,
        population: Population,
        progress: Any = None,
    ) -> None:
        """Add this round's rows."""
        victims = self._victims(population)
        flagged = outcome.decision.flagged[self.directory.public]
        score = outcome.suspicion.score[self.directory.public]
        row: Row = {
            "round": facts.round,
            "seed": self.scenario.seed,
            "honest": self.honest,
            "attackers": len(self.group_of) - self.honest,
            **{k: getattr(facts, k) for k in ("online", "abstained", "sent", "delivered", "late", "lost", "bytes")},
            "rejected": sum(facts.rejected.values()),
            "sim_seconds": facts.sim_seconds,
            **self._budget(ledger),
            **self._detection(score, flagged, victims, outcome.decision.gamma),
            "detection_bound_auc": self._bound(plans, population, evidence),
            **self._structure(outcome.learned.structure),
            **self._estimate(evidence, outcome, pipeline),
            **self._features(evidence, outcome, pipeline),
            **self._learning(outcome.learned.predictions, outcome.learned.result, victims),
        }
        if self.scenario.anchors == "each" or (self.scenario.anchors == "last" and facts.round == self.scenario.rounds):
            start = time.perf_counter()
            anchors = Anchors(self, pipeline, evidence, outcome, facts.round)
            row.update(anchors.columns(row["test_accuracy"], progress))
            facts.clock("anchors", start)
        facts.clock("total", facts.started)
        row.update({f"seconds_{stage}": facts.seconds.get(stage) for stage in _STAGES})
        row["peak_memory_mb"] = peak_memory_mb()
        self.rows.append({column.name: row.get(column.name) for column in ROUND})
        self.groups += self._group_rows(facts.round, plans, flagged, score, outcome.learned.structure, population)
        self.flagged_round[(self.flagged_round < 0) & flagged] = facts.round
        self.notes += [note for note in (*outcome.notes, *ledger.notes()) if note not in self.notes]
        self.fates = self._fates(score, flagged, ledger, victims)

    # Truth ----------------------------------------------------------------------------------------------------------

    def _victims(self, population: Population) -> np.ndarray:
        """(n,) bool: honest users that hold a tie with an attacker above level 0."""
        return np.diff(population.lists[:, self.honest :].indptr) > 0

    def to_stable(self, structure: Structure) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the published ties as stable ids."""
        return self.directory.stable[structure.u], self.directory.stable[structure.v]

    def accuracy(self, predictions: np.ndarray | None, who: np.ndarray) -> float | None:
        """Share of the honest users in the mask whose predicted class is right; `predictions` by server id."""
        if predictions is None or not who.any():
            return None
        guess = predictions[self.directory.public[: self.honest]]
        return float((guess[who] == self.graph.labels[who]).mean())

    # Blocks of columns ----------------------------------------------------------------------------------------------

    def _budget(self, ledger: Ledger) -> Row:
        totals = ledger.totals()
        honest = slice(0, self.honest)
        return {
            "epsilon_mean": float(totals.epsilon[honest].mean()),
            "epsilon_max": float(totals.epsilon[honest].max()),
            "epsilon_features": float(totals.epsilon_features[honest].max()),
            "epsilon_ties": float(totals.epsilon_ties[honest].max()),
            "epsilon_labels": float(totals.epsilon_labels[honest].max()),
            "delta": float(totals.delta[honest].max()),
        }

    def _detection(self, score: np.ndarray, flagged: np.ndarray, victims: np.ndarray, gamma: float) -> Row:
        n = self.honest
        attackers = self.group_of >= 0
        row: Row = {
            "gamma": None if np.isnan(gamma) else gamma,
            "pruned_honest": int(flagged[:n].sum()),
            "pruned_attackers": int(flagged[n:].sum()),
            "detection_fpr": float(flagged[:n].mean()),
            "detection_fpr_victims": float(flagged[:n][victims].mean()) if victims.any() else None,
        }
        known = ~np.isnan(score)
        if known.any():
            row["suspicion_honest_mean"] = mean(score[known & ~attackers])
            row["suspicion_attacker_mean"] = mean(score[known & attackers])
        if attackers.any():
            row["detection_recall"] = float(flagged[n:].mean())
            row["detection_precision"] = float(flagged[n:].sum() / flagged.sum()) if flagged.any() else None
            row["detection_auc"], row["detection_ap"] = ranking(attackers[known], score[known])
        return row

    def _bound(self, plans: list[Plan], population: Population, evidence: Evidence) -> float | None:
        """The best AUC that a rule on mutual pairs could have; none where an attacker skips the noise."""
        groups = self.scenario.population.attackers
        ties = evidence.protocol.ties
        if ties.form not in ("verification-list", "binary-list") or any(
            g.claims.channel != "compliant" for g in groups
        ):
            return None
        rows = [population.lists, *(plan.lists for plan in plans)]
        ids = np.concatenate([np.arange(self.honest), *(plan.members for plan in plans)])
        truth = sparse.csr_array(sparse.vstack(rows, format="csr"))[np.argsort(ids)]
        rng = Streams(self.scenario.seed).generator("observer/bound")
        found = detection_bound(sparse.csr_array(truth), self.group_of, Channel(ties.epsilon, ties.levels), rng)
        return None if found is None else found.auc

    def _structure(self, structure: Structure) -> Row:
        u, v = self.to_stable(structure)
        hard = np.ones(len(u), dtype=bool) if structure.hard is None else structure.hard
        attack = (u >= self.honest) | (v >= self.honest)
        true = np.zeros(len(u), dtype=bool)
        inside = ~attack
        if inside.any():  # scipy answers an empty question with a sparse array
            true[inside] = np.asarray(self.graph.ties[u[inside], v[inside]]).ravel() > 0
        kinds = {"true": true, "false": inside & ~true, "attack": attack}
        counts = {name: int((mask & hard).sum()) for name, mask in kinds.items()}
        edges, all_true = sum(counts.values()), self.graph.edges
        precision = counts["true"] / edges if edges else None
        recall = counts["true"] / all_true if all_true else None
        participants = len(self.group_of)
        row: Row = {
            "edges": edges,
            **{f"edges_{name}": count for name, count in counts.items()},
            "edge_precision": precision,
            "edge_recall": recall,
            "edge_f1": 2 * counts["true"] / (edges + all_true) if edges + all_true else None,
            "density": edges / (participants * (participants - 1) / 2),
            "edge_expected_f1": structure.summary.get("expected_f1"),
        }
        if structure.weight is not None:
            row.update({f"edge_weight_{name}": float(structure.weight[mask].sum()) for name, mask in kinds.items()})
        degrees = np.bincount(np.concatenate([u[hard], v[hard]]), minlength=participants)[: self.honest]
        row["largest_degree"] = int(degrees.max(initial=0))
        row["degree_distance"] = degree_distance(degrees, np.diff(self.graph.ties.indptr))
        return row

    def _estimate(self, evidence: Evidence, outcome: Outcome, pipeline: Pipeline) -> Row:
        """Quality of the method's tie probabilities, where it has any."""
        from sim.edge_quality import distinct_rows, judge

        ties, public = self.graph.ties.tocoo(), self.directory.public
        rows, columns = ties.coords
        truth = sparse.csr_array((ties.data, (public[rows], public[columns])), shape=(evidence.n, evidence.n))
        honest = np.zeros(evidence.n, dtype=bool)
        honest[public[: self.honest]] = True
        refinement, kept = pipeline.settings.refinement, ~outcome.decision.flagged
        structure = outcome.learned.structure
        quality = judge(refinement, evidence, kept, pipeline.streams, truth, honest)
        return {**quality, "distinct_rows": distinct_rows(structure.u, structure.v)}

    def _features(self, evidence: Evidence, outcome: Outcome, pipeline: Pipeline) -> Row:
        mechanism = pipeline.protocol.features
        if mechanism.kind == "none":
            return {}
        rows = self.directory.public[: self.honest]
        held = outcome.learned.features
        denoised = (
            None if sparse.issparse(held) else root_mean_square(held[rows], self.graph.features, mechanism.neutral)
        )
        raw = root_mean_square(evidence.features[rows], self.graph.features, mechanism.neutral)
        return {"feature_error_raw": raw, "feature_error_denoised": denoised}

    def _learning(self, predictions: np.ndarray | None, result: Any, victims: np.ndarray) -> Row:
        if predictions is None:
            return {"test_accuracy": None}
        from sklearn.metrics import f1_score

        guess = predictions[self.directory.public[: self.honest]]
        return {
            "train_accuracy": self.accuracy(predictions, self.train),
            "validation_accuracy": self.accuracy(predictions, self.validation),
            "test_accuracy": self.accuracy(predictions, self.test),
            "test_macro_f1": float(
                f1_score(self.graph.labels[self.test], guess[self.test], average="macro", zero_division=0)
            )
            if self.test.any()
            else None,
            "victim_accuracy": self.accuracy(predictions, self.test & victims),
            "loss": None if np.isnan(result.loss) else result.loss,
            "epochs": result.epochs,
        }

    def _group_rows(
        self,
        round: int,
        plans: list[Plan],
        flagged: np.ndarray,
        score: np.ndarray,
        structure: Structure,
        population: Population,
    ) -> list[Row]:
        u, v = self.to_stable(structure)
        rows = []
        for index, (name, plan) in enumerate(zip(self.names, plans)):
            members = self.group_of == index
            self.asked[index] |= {(a, t) for a, t in zip(*(side.tolist() for side in plan.asked)) if t < self.honest}
            held = population.lists[:, np.flatnonzero(members)]
            victims = np.diff(held.indptr) > 0
            touching = (members[u] & (v < self.honest)) | (members[v] & (u < self.honest))
            reached = np.unique(np.where(members[u[touching]], v[touching], u[touching]))
            known = ~np.isnan(score) & (members | (self.group_of < 0))
            row: Row = {
                "round": round,
                "group": name,
                "members": int(members.sum()),
                "active": int(plan.active.sum()),
                "flagged": int(flagged[members].sum()),
                "intended_ties": len(self.asked[index]),
                "accepted_ties": int(held.nnz),
                "surviving_ties": int(touching.sum()),
                "victims": int(victims.sum()),
                "victims_reached": len(reached),
                "victims_flagged": int(flagged[: self.honest][victims].sum()),
                "suspicion_mean": mean(score[members & known]),
                "suspicion_auc": ranking(members[known], score[known])[0],
            }
            rows.append({column.name: row.get(column.name) for column in GROUP})
        return rows

    def _fates(self, score: np.ndarray, flagged: np.ndarray, ledger: Ledger, victims: np.ndarray) -> pd.DataFrame:
        totals, participants = ledger.totals(), len(self.group_of)
        names = np.array([*self.names, ""], dtype=object)
        return pd.DataFrame(
            {
                "agent": np.arange(participants),
                "kind": np.where(self.group_of >= 0, "attacker", "honest"),
                "group": names[self.group_of],
                "victim": np.concatenate([victims, np.zeros(participants - self.honest, dtype=bool)]),
                "suspicion": score,
                "flagged": flagged,
                "flagged_round": pd.arrays.IntegerArray(self.flagged_round.copy(), self.flagged_round < 0),
                "epsilon": totals.epsilon,
                "epsilon_features": totals.epsilon_features,
                "epsilon_ties": totals.epsilon_ties,
                "delta": totals.delta,
            }
        )

    def state(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {
            "rows": self.rows,
            "groups": self.groups,
            "flagged_round": self.flagged_round,
            "asked": self.asked,
            "fates": self.fates,
            "notes": self.notes,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        for name, value in state.items():
            setattr(self, name, value)


_STAGES = [c.name.removeprefix("seconds_") for c in ROUND if c.name.startswith("seconds_")]
