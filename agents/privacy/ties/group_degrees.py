"""How many ties a user has into each of several groups, in two phases: the client half of LDPGen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.privacy.noise import DegreeNoise
from agents.privacy.ties.base import TieProtocol, TieReports, no_lists
from agents.privacy.ties.memo import row_epochs
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from agents.protocol import RoundCall

_PARTITION = Streams(0)


class GroupDegrees(TieProtocol, kind="group-degrees"):
    """Numbers of ties into groups of users, under Laplace noise, twice: into random groups, then into published ones.

    Half of epsilon pays for each phase. One list entry moves one number of a phase by one, so every number carries
    Laplace noise of scale 2/epsilon. No list leaves the device. A tie counts at both of its ends and costs twice
    epsilon.
    """

    form: ClassVar[str] = "group-degrees"
    phases: ClassVar[int] = 2
    memoizes: ClassVar[str] = "list"  # one answer per distinct list and grouping, not per entry
    source: ClassVar[str] = "LDPGen: Qin et al., CCS 2017"

    first_groups: int = Field(2, ge=1)

    def spent(self, phase: int) -> float:
        return self.epsilon / 2 if phase in (0, 1) else 0.0

    def groups(self, call: RoundCall, participants: int) -> np.ndarray:
        """(n,) the group of every user that phase `call.phase` asks about, -1 for none: public, in stable ids.

        Phase 0: a partition into `first_groups` by a public hash, the same in every run; phase 1: what the server
        published as "groups".
        """
        if call.phase == 0:
            ids = np.arange(participants, dtype=np.int64)
            return _PARTITION.generator("ties/group-degrees/partition").permuted(ids) % self.first_groups
        return np.asarray(call.broadcast["groups"], dtype=np.int64)

    @property
    def false_positive(self) -> float:
        """0: no list leaves the device."""
        return 0.0

    def verbatim(self, truth: sparse.csr_array, senders: np.ndarray, call: RoundCall) -> TieReports:
        """What users send who skip the noise: the exact numbers of the ties that they claim."""
        groups = self.groups(call, truth.shape[1])
        return TieReports(no_lists(*truth.shape), group_counts(truth, groups, self.width(groups, call)))

    def width(self, groups: np.ndarray, call: RoundCall) -> int:
        """How many numbers the phase asks for."""
        return self.first_groups if call.phase == 0 else int(groups.max(initial=-1)) + 1

    def encode(self, truth: sparse.csr_array, senders: np.ndarray, streams: Streams, call: RoundCall) -> TieReports:
        rows, participants = truth.shape
        groups = self.groups(call, participants)
        count = self.width(groups, call)
        exact = group_counts(truth, groups, count)
        noise = DegreeNoise("laplace", self.epsilon / 2)
        drawn = noise.draw(count, senders, row_epochs(truth, call, groups), streams, f"ties/group-degrees/{call.phase}")
        return TieReports(no_lists(rows, participants), exact + drawn)


def group_counts(lists: sparse.csr_array, groups: np.ndarray, count: int) -> np.ndarray:
    """(k, count) float64: number of entries of each list that lie in each group; group -1 is left out."""
    rows = lists.shape[0]
    row = np.repeat(np.arange(rows), np.diff(lists.indptr))
    group = groups[lists.indices]
    inside = group >= 0
    flat = np.bincount(row[inside] * count + group[inside], minlength=rows * count)
    return flat.reshape(rows, count).astype(np.float64)
