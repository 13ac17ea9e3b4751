"""Which users' mutual pairs look like an attack rather than like everybody else's?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from server.channel import channel_of
from server.evidence import Evidence, MutualPairs, Suspicion
from server.suspicion.base import SuspicionScore
from server.suspicion.mean_gap import silent_to_nan
from sim.kernel.randomness import Streams

if TYPE_CHECKING:
    from server.suspicion._typed import Detector


FEWEST = 4  # users that must have reported


def parts(evidence: Evidence, count: int) -> np.ndarray:
    """A part number 0..count-1 per user: parts of like sizes and lengths of lists, chosen without regard to ids."""
    from server._canonical import fingerprints

    lists = evidence.lists
    words = fingerprints(lists.indptr, lists.indices, lists.data, np.zeros(evidence.n, np.uint64), 2)
    order = np.lexsort((words, np.diff(lists.indptr), ~evidence.reported))
    part = np.empty(evidence.n, dtype=np.int64)
    part[order] = np.arange(evidence.n) % count
    return part


def pack(fitted: Detector) -> dict[str, np.ndarray]:
    """A fitted detector as plain arrays, to be kept with the scores."""
    return {
        "noise": fitted.mixtures[0].noise,
        "law": fitted.mixtures[0].law,
        "templates": np.array([mixture.templates for mixture in fitted.mixtures]),
        "null_score": np.concatenate([null.score for null in fitted.nulls]),
        "null_group": np.concatenate([null.group for null in fitted.nulls]),
        "null_part": np.repeat(np.arange(len(fitted.nulls)), [len(null.score) for null in fitted.nulls]),
    }


def unpack(details: dict[str, np.ndarray]) -> Detector:
    """The detector behind a `Suspicion` of this kind."""
    from server.suspicion._null import Null
    from server.suspicion._typed import Detector, Mixture

    mixtures = [Mixture(details["noise"], details["law"], templates) for templates in details["templates"]]
    of_part = [details["null_part"] == which for which in range(len(mixtures))]
    nulls = [Null(details["null_score"][mine], details["null_group"][mine]) for mine in of_part]
    return Detector(mixtures, nulls)


class TypedMixture(SuspicionScore, kind="typed-mixture"):
    """Likelihood of a user's mutual pairs under fitted attack types against the fitted honest law.

    A mixture of honest users, over-claimers, under-claimers (framing) and low-trust users (level matching) is fitted
    to the tables of levels given and received; the score is the log-likelihood ratio of attack to honest, its p-value
    comes from honest tables with as many pairs. With one level, or fewer than 4 reports, the tables say nothing:
    score 0, p-value 1.
    """

    source: ClassVar[str] = "Graphwarden, expectation maximisation with a parametric bootstrap"
    has_p_values: ClassVar[bool] = True

    def score(self, evidence: Evidence, streams: Streams) -> Suspicion:
        n, channel = evidence.n, channel_of(evidence)
        if channel.levels == 1 or evidence.reported.sum() < FEWEST:
            flat = silent_to_nan(np.zeros(n), evidence)
            return Suspicion(flat, flat + 1.0)
        from server.suspicion._typed import PARTS, fit_detector, tables_of

        tables = tables_of(evidence.pairs, n, channel.levels)
        part = parts(evidence, PARTS)
        present = evidence.reported
        fitted = fit_detector(tables[present], part[present], channel, streams.generator("typed-mixture/null"))
        score, p = fitted.score(tables, part)
        return Suspicion(
            silent_to_nan(score, evidence),
            silent_to_nan(p, evidence),
            {"pairs_p_value": p, "part": part, **pack(fitted)},
        )

    def rescore(self, evidence: Evidence, suspicion: Suspicion, user: int, without: np.ndarray) -> float:
        """p-value of `user` without its pairs with `without` whose two levels differ by 2 or more."""
        levels = channel_of(evidence).levels
        if "pairs_p_value" not in suspicion.details:
            return 0.0
        from server.suspicion._typed import tables_of

        pairs = evidence.pairs
        mine = np.flatnonzero((pairs.u == user) | (pairs.v == user))
        partner = np.where(pairs.u[mine] == user, pairs.v[mine], pairs.u[mine])
        odd = np.abs(pairs.x[mine] - pairs.y[mine]) >= 2
        left_out = odd & without[partner]
        if not left_out.any():
            return float(suspicion.details["pairs_p_value"][user])
        mine = mine[~left_out]
        left = MutualPairs(pairs.u[mine], pairs.v[mine], pairs.x[mine], pairs.y[mine])
        table = tables_of(left, evidence.n, levels)[[user]]
        return float(unpack(suspicion.details).score(table, suspicion.details["part"][[user]])[1][0])

    def warm_up(self) -> None:
        from server import _canonical
        from server.suspicion import _typed

        _canonical.warm_up()
        _typed.warm_up()
