"""Feature mechanisms: how one user perturbs its feature row. One file a kind."""

from agents.privacy.features.base import FeatureMechanism

__all__ = ["FeatureMechanism"]
