"""The interface of a refinement."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from agents.privacy.ties import TieProtocol
from agents.protocol import Protocol
from server.estimates import PairEstimate
from server.evidence import Evidence, Structure
from sim.kernel.component import Component
from sim.kernel.randomness import Streams


class Refinement(Component, family="server.refinement", home="server.refinement"):
    """How the server turns reports into the graph that it trains on."""

    accepts: ClassVar[tuple[str, ...]] = ("verification-list",)  # report forms (TieProtocol.form) it can work with
    uses_features: ClassVar[bool] = False  # needs public features
    curator: ClassVar[str] = "none"  # "trusted" for centrally private methods
    weighted: ClassVar[bool] = False  # may publish weights

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        """The reports this method asks for when the scenario says `privacy.ties.kind: auto`."""
        from agents.privacy.ties.verification_list import VerificationList

        return VerificationList(epsilon=epsilon, levels=levels)

    def warning(self, protocol: Protocol) -> str | None:
        """What a run should say before it starts, from public facts: that the published graph will be dense, say."""
        return None

    def broadcast(self, phase: int, evidence: Evidence, streams: Streams) -> dict[str, np.ndarray]:
        """For protocols of several phases: what the server publishes after `phase` (server ids), from what it has."""
        return {}

    @abstractmethod
    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        """The published structure. `kept` (n,) bool: users not pruned; nobody else may have a tie."""

    def pair_estimate(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> PairEstimate | None:
        """The tie probabilities of all pairs of kept users, where the method has them: nothing is decided from it, it
        is for an observer to judge."""
        return None

    def warm_up(self) -> None:
        """Compile kernels, so that the stage's clock measures work only. Called once before the first round."""

    def controls(
        self,
        evidence: Evidence,
        kept: np.ndarray,
        validate: Callable[[Structure], float] | None = None,
        per_user: float = 25.0,
    ) -> dict[str, Structure]:
        """Structures to train beside the result, by name, so that what public data buys is not credited to reports.

        Where features are public: `knn` (ties between the 10 most similar users) and `public_only` (the tuned graph of
        public features and training labels, `per_user` ties a user; `validate` chooses its one parameter). Nothing
        above 20,000 users, since all pairs are compared.
        """
        if evidence.protocol.features.kind != "none" or not evidence.features.shape[1] > 1 or evidence.n > 20_000:
            return {}
        from server.refinement._public import knn_graph, public_view
        from server.refinement._public_weights import tuned_public_graph

        view = public_view(evidence, kept)
        return {"knn": knn_graph(view), "public_only": tuned_public_graph(view, per_user, validate=validate)}
