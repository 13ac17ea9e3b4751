"""One line of an audit."""

from __future__ import annotations

import math
from dataclasses import dataclass

NO_VIOLATION = "no violation found"
VIOLATES = "violates"
NOT_LDP = "not epsilon-LDP"
NOT_AUDITED = "not audited"


@dataclass(frozen=True)
class AuditRow:
    """What was tested, what is claimed, what was measured, and the verdict.

    A test can find a violation; it never proves that there is none, so the row says how small a one it would find.
    """

    subject: str  # "features: piecewise"
    quantity: str  # "epsilon", "bias", "variance", "budget", ...
    case: str  # the worst pair of inputs, or the worst input
    claimed: float
    measured: float  # a lower bound for "epsilon", an estimate otherwise
    draws: int  # reports drawn for each input; 0 for a check without sampling
    visible: (
        float  # smallest excess found with probability 0.99, relative to `claimed` (absolute for "bias"); NaN: none
    )
    verdict: str
    note: str = ""

    @property
    def violates(self) -> bool:
        """Whether this line makes an audit fail."""
        return self.verdict == VIOLATES


def not_audited(subject: str, note: str) -> AuditRow:
    """A line for what this audit cannot test, and why."""
    return AuditRow(subject, "epsilon", "", math.nan, math.nan, 0, math.nan, NOT_AUDITED, note)
