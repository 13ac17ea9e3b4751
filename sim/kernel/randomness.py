"""One seed -> independent streams, keyed by (purpose, stable id, epoch, block); never by order of creation.

Every random number of a run comes from Philox4x64-10, a counter-based generator: the key is a digest of (seed,
purpose) and the counter words are (position, block, id, epoch). A stream can therefore be opened by anyone, anywhere,
in any order, with the same bits. `sim.kernel.counter` is the same generator for numba kernels.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

MASK = (1 << 64) - 1
BLOCK = 8192
"""Columns (stable ids) that share one noise stream of a list."""


@dataclass(frozen=True)
class Streams:
    """All streams of a run. `seed` is any integer, 0 included; streams differ by every argument."""

    seed: int

    def key(self, purpose: str) -> np.ndarray:
        """The Philox key of `purpose`: two uint64 words."""
        digest = hashlib.blake2b(f"{self.seed}\x00{purpose}".encode(), digest_size=16).digest()
        return np.frombuffer(digest, dtype="<u8").astype(np.uint64)

    def generator(self, purpose: str, ident: int = 0, epoch: int = 0, block: int = 0) -> np.random.Generator:
        """The generator of one stream: 2^64 draws before it would meet a neighbour."""
        counter = np.array([0, block & MASK, ident & MASK, epoch & MASK], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self.key(purpose), counter=counter))

    def integer(self, purpose: str, ident: int = 0) -> int:
        """A 63-bit integer, for libraries that take a seed (torch, scikit-learn, networkx, Mesa)."""
        return int(self.generator(purpose, ident).integers(0, 2**63 - 1))

    def child(self, name: str) -> Streams:
        """Streams of their own for one room, from which the parent's cannot be reopened."""
        return Streams(self.integer(f"child/{name}"))


def digest64(values: np.ndarray) -> int:
    """A fixed 64-bit digest of an array's bytes: names a held value, so that memoized noise can be keyed by it."""
    return int.from_bytes(hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=8).digest(), "little")
