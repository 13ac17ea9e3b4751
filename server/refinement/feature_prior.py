"""Feature-prior refinement: a tie prior on public features, fitted to noisy bits, and the posterior it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.privacy.ties import TieProtocol
from agents.privacy.ties.pair_bits import PairBits
from server.channel import CERTAIN
from server.evidence import Evidence, Structure
from server.refinement.base import Refinement
from sim.kernel.randomness import Streams


class FeaturePrior(Refinement, kind="feature-prior"):
    """Ties by their posterior probability under a prior on public features, fitted to the noisy bits themselves.

    Pair scores are the tf-idf cosine of the features and the agreement of two class probabilities. The prior, a
    logistic function of six terms in them, maximises the likelihood of the noisy bits under their known noise; no true
    tie, degree or count is used, and all of epsilon goes to the bits. One structural round looks at neighbours'
    classes and, from `common_from` epsilon on, at common neighbours, and fits again.

    `publish`: `soft`, the `per_user` n pairs with the largest P + pi as weights (P with the pair's own bit, pi
    without: the latter keeps similar users together that are not tied); `top`, the floor(sum P) largest P, unweighted;
    `hard`, P > 1/2. `self_loop` is the weight of a node itself, relative to which soft weights count. `evidence:
    coefficients` is the control in which bits enter through the fitted coefficients only (P = pi throughout).
    """

    source: ClassVar[str] = "own method: empirical Bayes on public pair scores under randomised response"
    accepts: ClassVar[tuple[str, ...]] = ("pair-bits",)
    uses_features: ClassVar[bool] = True
    weighted: ClassVar[bool] = True

    publish: Literal["soft", "top", "hard"] = "soft"
    bits_enter: Literal["pairs", "coefficients"] = "pairs"
    per_user: float = Field(25.0, gt=0)
    self_loop: float = Field(0.5, gt=0)
    structural_round: bool = True
    common_from: float = Field(2.0, ge=0)

    def tie_protocol(self, epsilon: float, levels: int) -> TieProtocol:
        return PairBits(epsilon=epsilon)

    def refine(self, evidence: Evidence, kept: np.ndarray, streams: Streams) -> Structure:
        from server.refinement._public import public_view

        return self._structure(public_view(evidence, kept), evidence)

    def _structure(self, view: Any, evidence: Evidence) -> Structure:
        if evidence.reported[view.users].sum() < 3:
            note = "feature-prior: too few users reported to fit a prior"
            return Structure(np.zeros(0, np.int32), np.zeros(0, np.int32), notes=(note,))
        return self._publish(estimate(view, evidence, self))

    def _publish(self, found: Estimate) -> Structure:
        from server.refinement._prior_fit import sigmoid
        from server.refinement._public import published

        view, rank = found.ranking.view, "prior" if self.bits_enter == "coefficients" else "posterior"
        wanted = int(self.per_user * view.size) if self.publish == "soft" else int(found.expected_ties)
        if self.publish == "soft" and rank == "posterior":
            rank = "sum"
        if self.publish == "hard":
            pairs = found.ranking.all_above(0.0)
            pairs = pairs.take(getattr(pairs, rank) > 0)
        else:
            pairs = found.top(wanted, rank)
        before, after = sigmoid(pairs.prior), sigmoid(pairs.posterior)
        probability = before if self.bits_enter == "coefficients" else after
        weight = None
        if self.publish == "soft":
            weight = (before if self.bits_enter == "coefficients" else before + after) / self.self_loop
        u, v, columns = published(
            view, pairs.i, pairs.j, weight=weight, probability=probability, hard=probability > 0.5
        )
        hard = columns["hard"] if self.publish == "soft" else None
        summary = {"expected_ties": found.expected_ties, "prior_mass": found.prior_mass}
        return Structure(u, v, columns["weight"], hard, columns["probability"], summary, found.notes)

    def controls(
        self,
        evidence: Evidence,
        kept: np.ndarray,
        validate: Callable[[Structure], float] | None = None,
        per_user: float = 25.0,
    ) -> dict[str, Structure]:
        """Twins that decide whether private bits matter: `public_only` (no bit), `fit_only` (bits through coefficients
        only) and `knn` (the 10 most similar users). `validate` chooses the public graph, see `tuned_public_graph`; it
        has as many ties a user as the method itself, whatever `per_user` says."""
        from server.refinement._public import knn_graph, public_view
        from server.refinement._public_weights import tuned_public_graph

        view = public_view(evidence, kept)
        public_only = tuned_public_graph(view, self.per_user, self.self_loop, validate)
        controls = {"public_only": public_only, "knn": knn_graph(view)}
        if evidence.protocol.ties.form in self.accepts:
            twin = self.model_copy(update={"bits_enter": "coefficients"})
            controls["fit_only"] = twin._structure(view, evidence)
        return controls

    def warm_up(self) -> None:
        from server.refinement._feature_warm import warm_up

        warm_up()


@dataclass(frozen=True)
class Estimate:
    """A fitted prior and posterior over all pairs of a view."""

    ranking: Any  # server.refinement._pair_ranking.Ranking
    cells: Any  # server.refinement._prior_fit.Cells
    prior: np.ndarray  # pi of each cell
    after: np.ndarray  # prior probability of each cell that the bits update (common neighbours included)
    epsilon: float
    notes: tuple[str, ...] = ()

    @property
    def expected_ties(self) -> float:
        """Sum of P over all pairs."""
        from server.refinement._prior_fit import expected_ties

        return expected_ties(self.after, self.cells, self.epsilon)

    @property
    def prior_mass(self) -> float:
        """Sum of pi over all pairs."""
        return float((self.prior * self.cells.pairs).sum())

    def top(self, wanted: int, rank: Any) -> Any:
        """The pairs that rank highest, see `Ranking.top`."""
        from server.refinement._pair_ranking import rank_value, value_exceeded
        from server.refinement._prior_fit import odds_of

        logit, cells = np.log(odds_of(self.after)), self.cells
        prior = np.log(odds_of(self.prior))
        values = np.concatenate(
            [rank_value(rank, prior, logit + self.epsilon), rank_value(rank, prior, logit - self.epsilon)]
        )
        counts = np.concatenate([cells.ones, cells.pairs - cells.ones])
        return self.ranking.top(wanted, rank, value_exceeded(values, counts, wanted))


def estimate(view: Any, evidence: Evidence, settings: FeaturePrior) -> Estimate:
    """Prior and posterior of all pairs of a view: fitted on the features, and again after one structural round.

    The round looks through W = P + pi on the pairs where it is above .01, at most 60 a user; common neighbours are
    counted in P, where it is above .01 on those pairs. A common neighbour of i and j says nothing of the pair's own
    bit.
    """
    from server.refinement._prior_fit import Commons, cosine_bins, sigmoid
    from server.refinement._public import second_round, symmetric

    bits = noisy_bits(view, evidence)
    bins = cosine_bins(view)
    first = fitted(view, view.first_round, bins, None, bits)
    if not settings.structural_round:
        return first
    size = view.size
    rank = "prior" if settings.bits_enter == "coefficients" else "sum"
    pairs = first.top(60 * size, rank)
    weight = sigmoid(pairs.prior) if rank == "prior" else sigmoid(pairs.prior) + sigmoid(pairs.posterior)
    near = weight > 0.01
    classes = second_round(view, view.first_round, symmetric(pairs.i[near], pairs.j[near], weight[near], size))
    if settings.bits_enter == "coefficients" or bits.epsilon < settings.common_from:
        return fitted(view, classes, bins, None, bits)
    tied = sigmoid(pairs.posterior)
    near = tied > 0.01
    graph = symmetric(pairs.i[near], pairs.j[near], tied[near], size)
    commons = Commons(graph.indptr.astype(np.int32), graph.indices.astype(np.int32), graph.data.astype(np.float32))
    return fitted(view, classes, bins, commons, bits)


def fitted(view: Any, classes: np.ndarray, bins: np.ndarray, commons: Any, bits: Any) -> Estimate:
    """One pass over the pairs and a maximum-likelihood fit; with common neighbours, a second fit for the posterior."""
    from server.refinement._pair_ranking import Ranking, Score
    from server.refinement._prior_fit import count_pairs, fit_prior, sigmoid

    cells = count_pairs(view, classes, bins, commons, bits)
    design = cells.design(with_common=False)
    theta = fit_prior(design, cells, bits.flip)
    prior = after = sigmoid(design @ theta)
    theta_after = theta
    if commons is not None:
        wider = cells.design(with_common=True)
        theta_after = fit_prior(wider, cells, bits.flip)
        after = sigmoid(wider @ theta_after)
    ranking = Ranking(view, classes, Score.of_prior(theta), Score.of_prior(theta_after), commons, bits)
    return Estimate(ranking, cells, prior, after, bits.epsilon)


def noisy_bits(view: Any, evidence: Evidence) -> Any:
    """The pair bits of a round, packed in the order of the view. A pair that a silent user may speak for has no bit."""
    from server.refinement._bit_rows import pack_either, words_of
    from server.refinement._prior_fit import Bits

    place = np.full(evidence.n, -1, dtype=np.int64)
    place[view.users] = np.arange(view.size)
    rows = np.zeros((view.size, words_of(view.size)), dtype=np.uint64)
    pack_either(evidence.lists.indptr, evidence.lists.indices, place, rows)
    ties = evidence.protocol.ties
    epsilon = float(getattr(ties, "bit_epsilon", ties.epsilon))
    return Bits(rows, ~evidence.reported[view.users], min(epsilon, CERTAIN))
