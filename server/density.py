"""What size a graph of noisy bits will have, told before it is published."""

from __future__ import annotations

from dataclasses import dataclass

from agents.protocol import Protocol
from server.bits import BIT_FORMS, BitChannel, pair_channel

DENSE = 0.05
"""Share of all pairs from which on a graph is called dense."""
BYTES_PER_TIE = 48
"""8 for the published pair, 16 for the symmetric matrix (4 + 4 a direction), 24 for the model's copy (8 + 4)."""


@dataclass(frozen=True)
class ExpectedDensity:
    """A graph whose ties are the reported ones."""

    density: float  # share of all pairs
    ties: float
    true_ties: float

    @property
    def megabytes(self) -> float:
        """Memory of the published graph and of the model's copy of it."""
        return megabytes(self.ties)


def megabytes(ties: float) -> float:
    """Memory of a published graph of so many ties, and of the model's copy of it."""
    return ties * BYTES_PER_TIE / 1e6


def expected_density(channel: BitChannel, n: int, mean_degree: float) -> ExpectedDensity:
    """Density q0 + (p - q0) d of reported ones among n users, with d the density of the true graph."""
    pairs = n * (n - 1) / 2
    true = min(n * mean_degree / 2, pairs)
    ties = true * channel.hit + (pairs - true) * channel.false_alarm
    return ExpectedDensity(ties / pairs if pairs else 0.0, ties, true * channel.hit)


def size_warning(protocol: Protocol, n: int, channel: BitChannel | None = None) -> str | None:
    """A sentence for the user when publishing every reported tie of n users would give a dense graph, else None.

    `channel` is that of a pair's bit (default: of the bit that the server forms from one end or both).
    """
    if protocol.ties.form not in BIT_FORMS:
        return None
    size = expected_density(channel or pair_channel(protocol.ties), n, protocol.mean_degree)
    if size.density < DENSE:
        return None
    return (
        f"the reported ties of {n} users make a dense graph: {size.density:.1%} of all pairs expected, "
        f"{size.ties:,.0f} ties, {size.true_ties:,.0f} of them true; about {size.megabytes:,.0f} MB"
    )


def dense_note(name: str, n: int, ties: float) -> tuple[str, ...]:
    """The note of a method that publishes `ties` ties among n users: empty unless that is dense."""
    pairs = n * (n - 1) / 2
    if not pairs or ties / pairs < DENSE:
        return ()
    return (f"{name} publishes {ties:,.0f} ties, {ties / pairs:.1%} of all pairs: about {megabytes(ties):,.0f} MB",)
