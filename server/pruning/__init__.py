"""Pruning: which users are removed from the graph and from training. One file a kind."""

from server.pruning.base import Decision, Pruning

__all__ = ["Decision", "Pruning"]
