"""Who takes part: honest users, attackers, what they report, and how they keep it private."""
