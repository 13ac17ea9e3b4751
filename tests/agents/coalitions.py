"""Small coalitions for the tests of attackers: honest users 0..53 and six members 54..59, unless told otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.coalition import Coalition
from agents.privacy.features import FeatureMechanism
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.ties import TieProtocol
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Protocol, RoundCall
from agents.strategies.base import AttackerGroup, Granted, View
from sim.kernel.component import Problem, build
from sim.kernel.randomness import Streams

HONEST = 54
MEMBERS = 6


def public(
    participants: int = HONEST + MEMBERS,
    dimensions: int = 20,
    features: FeatureMechanism | None = None,
    ties: TieProtocol | None = None,
    mean_degree: float = 4.0,
) -> Protocol:
    return Protocol(
        participants=participants,
        dimensions=dimensions,
        classes=3,
        features=features or Piecewise(epsilon=8.0),  # m = 3
        ties=ties or VerificationList(epsilon=3.0, levels=5),
        unit="list-entry",
        rounds=5,
        mean_degree=mean_degree,
    )


def opened(
    round: int = 1, phase: int = 0, protocol: Protocol | None = None, memoized: bool = True, **published: Any
) -> RoundCall:
    return RoundCall(round, phase, 0 if memoized else round, memoized, protocol or public(), dict(published))


def group(**parts: Any) -> AttackerGroup:
    """A group from plain data, as a scenario would give it; AssertionError with the problems if there are any."""
    problems: list[Problem] = []
    made = build(AttackerGroup, {"name": "fakes", **parts}, (), problems)
    assert not problems, problems
    return made


def problems_of(**parts: Any) -> str:
    """What is wrong with a group, in one string."""
    problems: list[Problem] = []
    build(AttackerGroup, {"name": "fakes", **parts}, (), problems)
    return "; ".join(problem.message for problem in problems)


def coalition(
    members: int = MEMBERS, honest: int = HONEST, granted: Granted | None = None, seed: int = 1, **parts: Any
) -> Coalition:
    return Coalition(group(**parts), np.arange(honest, honest + members), Streams(seed), granted)


def view(
    members: int = MEMBERS, granted: Granted | None = None, protocol: Protocol | None = None, **parts: Any
) -> View:
    """What the strategies of a first round see."""
    call = opened(protocol=protocol)
    return coalition(members, call.protocol.participants - members, granted, **parts).view(call)
