"""Refinement: how a structure comes out of reports. One file a kind."""

from server.refinement.base import Refinement

__all__ = ["Refinement"]
