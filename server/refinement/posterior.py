"""Our edge rule: the posterior probability of each tie, from both ends' levels and from the shape of the graph."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from server.attestation import pairs_within
from server.channel import channel_of
from server.evidence import Evidence, Structure
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams

SOFT_CUT = 0.02


class Posterior(Refinement, kind="posterior"):
    """Posterior probability of every mutually reported tie: levels deconvolved, then degrees, shared neighbours,
    labels.

    Only pairs that both ends report can become ties. `output: soft` publishes every pair of posterior above 0.02
    with its posterior as weight; `hard` publishes the set that maximises the expected F1, unweighted. `labels:
    false` leaves the training labels out. Validation labels are never used. `expected_f1` is what the method
    predicts for its own hard set.
    """

    source: ClassVar[str] = "Graphwarden, bilateral edge posterior"
    accepts: ClassVar[tuple[str, ...]] = ("verification-list", "binary-list")
    weighted: ClassVar[bool] = True

    labels: bool = True
    output: Literal["soft", "hard"] = "soft"
    rounds: int = Field(default=5, ge=1, le=50)

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        from server.refinement._edge_posterior import best_expected_f1, canonical_users, fit_posterior

        present = kept & evidence.reported
        pairs = pairs_within(evidence.pairs, present)
        if not len(pairs.u):
            return Structure(pairs.u, pairs.v, summary={"expected_f1": 0.0, "expected_edges": 0.0})
        known = np.where(evidence.train & present, evidence.labels, -1) if self.labels else None
        users = canonical_users(evidence, np.flatnonzero(present))
        rng = streams.generator("posterior/contrast")
        fit = fit_posterior(pairs, users, channel_of(evidence), known, self.rounds, rng)
        cut, expected_f1 = best_expected_f1(fit.probability, fit.ties)
        hard = fit.probability >= cut
        shown = (fit.probability > SOFT_CUT) | hard if self.output == "soft" else hard
        return Structure(
            pairs.u[shown],
            pairs.v[shown],
            weight=fit.probability[shown] if self.output == "soft" else None,
            hard=hard[shown],
            probability=fit.probability[shown],
            summary={"expected_f1": expected_f1, "expected_edges": fit.ties},
        )

    def warm_up(self) -> None:
        from server.refinement._edge_posterior import warm_up

        warm_up()
