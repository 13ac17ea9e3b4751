"""What attackers do: features, targets, ties, claims, timing. One family a module; see `agents.strategies.base`."""
