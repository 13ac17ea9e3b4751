"""The interface of a pruning rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from server.evidence import Evidence, Suspicion
from server.suspicion import SuspicionScore
from sim.kernel.component import Component
from sim.kernel.randomness import Streams


@dataclass(frozen=True)
class Decision:
    """Who is flagged, and the threshold on the score that says so (infinite: nobody; NaN: no threshold exists)."""

    flagged: np.ndarray  # (n,) bool
    gamma: float


@dataclass(frozen=True)
class PruningContext:
    """What a rule may ask for beyond the scores."""

    evidence: Evidence
    scorer: SuspicionScore
    streams: Streams
    validation_accuracy: Callable[[np.ndarray], float]  # trains once with these users removed; expensive
    held: dict[
        str, object
    ]  # the rule's own memory, kept for the whole run (what belongs to an epoch carries it in its key)
    epoch: int


class Pruning(Component, family="server.pruning", home="server.pruning"):
    """Which users to remove, from their suspicion."""

    needs_p_values: ClassVar[bool] = False

    @abstractmethod
    def decide(self, suspicion: Suspicion, context: PruningContext) -> Decision:
        """Flag users. Nobody with a NaN score is flagged."""


class NoPruning(Pruning, kind="none"):
    """Nobody is removed."""

    def decide(self, suspicion: Suspicion, context: PruningContext) -> Decision:
        return Decision(np.zeros(len(suspicion.score), dtype=bool), float("nan"))


def missing_p_values(pruning: str, suspicion: str) -> str:
    """The message for a rule that needs p-values and a suspicion kind that gives none."""
    kinds = cast(Iterator[type[SuspicionScore]], SuspicionScore._family.classes())
    able = ", ".join(cls.kind for cls in kinds if cls.has_p_values)
    return f"{pruning!r} needs p-values, which server.suspicion.kind {suspicion!r} does not give; those that do: {able}"
