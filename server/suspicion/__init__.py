"""Suspicion: a score per user from what both ends of a tie say. One file a kind."""

from server.suspicion.base import SuspicionScore

__all__ = ["SuspicionScore"]
