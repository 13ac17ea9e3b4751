"""The network between users and server, on a SimPy clock: when a report leaves, arrives, is late or is lost."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy
from pydantic import Field

from sim.kernel.component import Component, Section
from sim.kernel.randomness import Streams


class Latency(Component, family="network.latency", home="sim.kernel.network"):
    """Seconds between sending and arriving."""

    @abstractmethod
    def sample(self, users: int, generator: np.random.Generator) -> np.ndarray:
        """One latency per user id 0..users-1, in seconds; prefix-stable, so that more users shift nobody's draw."""


class ConstantLatency(Latency, kind="constant"):
    """Always the same."""

    seconds: float = Field(0.2, ge=0)

    def sample(self, users: int, generator: np.random.Generator) -> np.ndarray:
        return np.full(users, self.seconds)


class LognormalLatency(Latency, kind="lognormal"):
    """Median and spread (sigma of the logarithm): a long tail of slow reports."""

    median: float = Field(0.2, gt=0)
    sigma: float = Field(0.5, ge=0)

    def sample(self, users: int, generator: np.random.Generator) -> np.ndarray:
        return self.median * np.exp(self.sigma * generator.standard_normal(users))


class ExponentialLatency(Latency, kind="exponential"):
    """Memoryless, with a mean."""

    mean: float = Field(0.2, gt=0)

    def sample(self, users: int, generator: np.random.Generator) -> np.ndarray:
        return -self.mean * np.log1p(-generator.random(users))


class Stragglers(Section):
    """A share of the users whose every report takes `slowdown` times as long."""

    share: float = Field(0.0, ge=0, le=1)
    slowdown: float = Field(10.0, ge=1)


class Network(Section):
    """How reports travel. A collection window closes at `deadline` seconds (a report that arrives just then counts) or
    as soon as everybody who was expected has reported; a lost report is never seen, a late one is dropped."""

    latency: Latency = LognormalLatency()
    """Seconds between sending and arriving."""
    stragglers: Stragglers = Stragglers()
    """Users that are always slow."""
    loss: float = Field(0.0, ge=0, le=1)
    """Probability that a report never arrives."""
    deadline: float = Field(10.0, gt=0)
    """Seconds after which the collection window closes; later reports are dropped."""

    def journeys(self, senders: np.ndarray, streams: Streams, epoch: int) -> np.ndarray:
        """Seconds until each sender's report arrives; infinite when it is lost. Keyed by user id and `epoch`."""
        users = int(senders.max()) + 1 if len(senders) else 0
        seconds = self.latency.sample(users, streams.generator("network/latency", epoch=epoch))
        slow = streams.generator("network/stragglers").random(users) < self.stragglers.share
        seconds = np.where(slow, seconds * self.stragglers.slowdown, seconds)
        lost = streams.generator("network/loss", epoch=epoch).random(users) < self.loss
        return np.where(lost, math.inf, seconds)[senders]


@dataclass
class Window:
    """One collection window: who was expected, whose report came in time, in order of arrival."""

    expected: int
    opened: float
    arrived: list[int] = field(default_factory=list)  # positions in the senders' array
    closed: float = math.nan


def collect(environment: simpy.Environment, journeys: np.ndarray, deadline: float) -> Generator[Any, Any, Window]:
    """A SimPy process: open a window now, let the reports arrive, close it at the deadline or when all are in.

    `journeys` are seconds per report (infinite: lost). Returns the closed window.
    """
    window = Window(len(journeys), environment.now)
    everybody = environment.event()
    if not len(journeys):
        everybody.succeed()

    def arrive(event: simpy.Event) -> None:
        if math.isnan(window.closed):
            window.arrived.append(int(event.value or 0))
            if len(window.arrived) == window.expected:
                everybody.succeed()

    # Reports are scheduled before the deadline, so SimPy delivers one that arrives exactly then before closing.
    for position in np.flatnonzero(np.isfinite(journeys) & (journeys <= deadline)):
        environment.timeout(float(journeys[position]), int(position)).callbacks.append(arrive)
    yield everybody | environment.timeout(deadline)
    window.closed = environment.now
    return window
