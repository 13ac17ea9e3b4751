"""Which users' mutual pairs look like an attack rather than like everybody else's?"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from server.channel import channel_of
from server.evidence import Evidence, MutualPairs, Suspicion
from server.suspicion.base import SuspicionScore
from server.suspicion.mean_gap import silent_to_nan
from sim.kernel.randomness import Streams

FITTED = ("noise", "law", "templates", "null_score", "null_excess")


class TypedMixture(SuspicionScore, kind="typed-mixture"):
    """Likelihood of a user's mutual pairs under fitted attack types against the fitted honest law.

    A mixture of honest users, over-claimers, under-claimers (framing) and low-trust users (level matching) is fitted
    to the tables of levels given and received; the score is the log-likelihood ratio of attack to honest, its p-value
    comes from tables redrawn from the honest fit. With one level the tables say nothing: score 0, p-value 1.
    """

    source: ClassVar[str] = "Graphwarden, expectation maximisation with a parametric bootstrap"

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        n, channel = evidence.n, channel_of(evidence)
        if channel.levels == 1 or not evidence.reported.any():
            flat = silent_to_nan(np.zeros(n), evidence)
            return Suspicion(flat, flat + 1.0)
        from server.suspicion._typed import fit_mixture, simulate_null, tables_of

        tables = tables_of(evidence.pairs, n, channel.levels)
        present = tables[evidence.reported]
        fitted = fit_mixture(present, channel, len(present) - 1)
        null = simulate_null(fitted, present, streams.generator("typed-mixture/null"))
        score = fitted.score(tables)
        p = null.p_values(score, fitted.excess(tables))
        state = (np.array(fitted.noise), fitted.law, fitted.templates, null.score, null.excess)
        return Suspicion(silent_to_nan(score, evidence), silent_to_nan(p, evidence), dict(zip(FITTED, state)))

    def rescore(self, evidence: Evidence, suspicion: Suspicion, user: int, without: np.ndarray) -> float:
        """p-value of `user` without its pairs with `without` whose two levels differ by 2 or more."""
        levels = channel_of(evidence).levels
        if levels == 1:
            return 0.0
        from server.suspicion._typed import Mixture, Null, tables_of

        noise, law, templates, null_score, null_excess = (suspicion.details[key] for key in FITTED)
        pairs = evidence.pairs
        mine = np.flatnonzero((pairs.u == user) | (pairs.v == user))
        partner = np.where(pairs.u[mine] == user, pairs.v[mine], pairs.u[mine])
        odd = np.abs(pairs.x[mine] - pairs.y[mine]) >= 2
        mine = mine[~(odd & without[partner])]
        left = MutualPairs(pairs.u[mine], pairs.v[mine], pairs.x[mine], pairs.y[mine])
        table = tables_of(left, evidence.n, levels)[[user]]
        fitted = Mixture(float(noise), law, templates)
        return float(Null(null_score, null_excess).p_values(fitted.score(table), fitted.excess(table))[0])

    def warm_up(self) -> None:
        from server.suspicion._typed import warm_up

        warm_up()
