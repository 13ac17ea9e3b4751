"""Tie protocols: how one user reports whom it is tied to. One file a kind."""

from agents.privacy.ties.base import TieProtocol, TieReports

__all__ = ["TieProtocol", "TieReports"]
