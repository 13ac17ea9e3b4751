"""Noise for degrees and degree vectors: Laplace, or two-sided geometric when the answer should stay whole."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim.kernel.randomness import Streams


@dataclass(frozen=True)
class DegreeNoise:
    """Additive noise that hides a change of `sensitivity` (in L1, over all numbers of one report) at `epsilon`.

    A changed list entry moves a degree by 1, and one number of a degree vector by 1: sensitivity 1. `geometric` adds
    whole numbers; `laplace` adds multiples of a power of two that divides 1. Both are the discrete Laplace
    distribution, step s with probability proportional to e^(-rate |s|), so for whole degrees and a whole sensitivity
    the possible outputs do not depend on the truth. Draws have 53 bits: noise beyond 36.7 scales cannot occur,
    and beyond 22 scales single outputs may be missing; this tail is not defended.

    Source: Dwork et al., TCC 2006; Ghosh et al., STOC 2009.
    """

    kind: Literal["laplace", "geometric"]
    epsilon: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "geometric"):
            raise ValueError(f"degree noise is 'laplace' or 'geometric', not {self.kind!r}")
        if not (self.epsilon > 0 and self.sensitivity > 0):
            raise ValueError(
                f"degree noise needs epsilon > 0 and sensitivity > 0, not {self.epsilon} and {self.sensitivity}"
            )

    @property
    def grid(self) -> float:
        """Every draw is a multiple of this: 1 for `geometric`."""
        if self.kind == "geometric":
            return 1.0
        return math.ldexp(1.0, min(0, max(-20, math.frexp(self.sensitivity / self.epsilon)[1] - 17)))

    @property
    def rate(self) -> float:
        """ln of the ratio of the probabilities of neighbouring grid points."""
        return self.grid * self.epsilon / self.sensitivity

    def spent(self) -> float:
        """Epsilon of one report, from the rate of the noise and the steps that `sensitivity` covers."""
        return self.rate * self.sensitivity / self.grid

    def variance(self) -> float:
        """Variance of the noise of one number: 2 q / (1 - q)^2 grid points squared, with q = e^-rate."""
        return self.grid**2 * 2 * math.exp(-self.rate) / math.expm1(-self.rate) ** 2

    def draw(
        self, columns: int, senders: np.ndarray, epochs: np.ndarray | int, streams: Streams, purpose: str
    ) -> np.ndarray:
        """Noise for `columns` numbers of each of `senders` (k,): (k, columns) float64.

        `epochs` is one number or (k,). Row r is a pure function of (senders[r], its epoch, streams.seed, purpose), and
        a column of its index besides.
        """
        from agents.privacy._noise_kernels import geometric_steps

        senders = np.asarray(senders, np.uint64)
        epochs = np.broadcast_to(np.asarray(epochs).astype(np.uint64), senders.shape)
        return (
            geometric_steps(senders, np.ascontiguousarray(epochs), columns, streams.key(purpose), self.rate) * self.grid
        )
