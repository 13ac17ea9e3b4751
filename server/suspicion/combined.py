"""Our detector: a user's own row and its mutual pairs, one p-value."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from server.evidence import Evidence, Suspicion
from server.suspicion.base import SuspicionScore
from server.suspicion.row_conformity import RowConformity
from server.suspicion.typed_mixture import TypedMixture
from sim.kernel.randomness import Streams


class Combined(SuspicionScore, kind="combined"):
    """Row conformity and typed mixture together: p = min(p_row / w, p_pairs / (1 - w)), with w = `row_weight`.

    The row test finds whoever departs from honest noise, the mixture whoever keeps to it but claims unlike others.
    The score is minus the log of the p-value before it is cut at 1.
    """

    source: ClassVar[str] = "Graphwarden, weighted Bonferroni of an exact and a calibrated test"
    has_p_values: ClassVar[bool] = True

    row_weight: float = Field(default=0.1, gt=0, lt=1)

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        row, pairs = RowConformity().score(evidence, streams), TypedMixture().score(evidence, streams)
        assert row.p_value is not None and pairs.p_value is not None
        least = np.minimum(row.p_value / self.row_weight, pairs.p_value / (1 - self.row_weight))
        details = {**pairs.details, "row_p_value": row.p_value}
        return Suspicion(-np.log(least), np.minimum(least, 1.0), details)

    def rescore(self, evidence: Evidence, suspicion: Suspicion, user: int, without: np.ndarray) -> float:
        """As the mixture alone re-scores; what the user's own row says stands."""
        pairs = TypedMixture().rescore(evidence, suspicion, user, without) / (1 - self.row_weight)
        return min(float(suspicion.details["row_p_value"][user]) / self.row_weight, pairs, 1.0)

    def warm_up(self) -> None:
        TypedMixture().warm_up()
