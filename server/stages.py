"""The `server` section of a scenario: one component or section a stage."""

from __future__ import annotations

from typing import Literal

from server.attestation import Attestation
from server.denoising import Denoising, DualDenoising
from server.intake import Intake
from server.pruning import Pruning
from server.pruning.threshold import Threshold
from server.refinement import Refinement
from server.refinement.attested import Attested
from server.settings import NetworkTraining, Training
from server.suspicion import SuspicionScore
from server.suspicion.mean_gap import MeanGap
from sim.kernel.component import Section


class ServerSettings(Section):
    """What the server does with the reports, stage by stage."""

    memory: Literal["none", "last"] = "last"  # does a user's last report stand in when it sends nothing?
    intake: Intake = Intake()
    """Checks on the form of a report."""
    attestation: Attestation = Attestation()
    """How ties are attested from both ends."""
    suspicion: SuspicionScore = MeanGap()
    """How suspicious each user is."""
    pruning: Pruning = Threshold()
    """Which users are removed."""
    refinement: Refinement = Attested()
    """How the published graph is made."""
    denoising: Denoising = DualDenoising()
    """How private features are cleaned."""
    training: Training = NetworkTraining()
    """What is trained on graph and features."""
