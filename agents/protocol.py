"""What everybody knows: the protocol of a run, the call that opens a phase, and the private feedback after a round."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from agents.privacy.features import FeatureMechanism
from agents.privacy.ties import TieProtocol


@dataclass(frozen=True)
class Protocol:
    """Public facts of a run. `features.epsilon` and `ties.epsilon` are the local budgets of ONE report: the scenario's
    budgets after the conversion of `unit` and the division over rounds."""

    participants: int  # ids 0..participants-1: honest users first, then injected ones
    dimensions: int  # feature coordinates d
    classes: int
    features: FeatureMechanism
    ties: TieProtocol
    unit: str
    rounds: int
    mean_degree: float  # published


@dataclass(frozen=True)
class RoundCall:
    """The server's broadcast that opens one phase of one round."""

    round: int  # 1, 2, ...
    phase: int  # 0, 1, ...
    epoch: int  # perturbation epoch: the round when noise is fresh or split, 0 when it is memoized
    memoized: bool
    protocol: Protocol
    broadcast: dict[str, np.ndarray] = field(default_factory=dict)  # what earlier phases led the server to publish
    # (stable ids), e.g. LDPGen's "groups" (n,)


@dataclass(frozen=True)
class Feedback:
    """What one user learns after a round, privately: whether it is flagged, and which of its own claims stand."""

    flagged: bool
    confirmed: np.ndarray  # ids of the partners that it claims a tie with, and with whom one was published
