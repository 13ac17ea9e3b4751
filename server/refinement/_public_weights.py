"""A weighted graph of public information only: the control that shows what private bits add."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from server.evidence import Structure
from server.refinement._pair_ranking import Ranking, Score
from server.refinement._public import PublicView, published, second_round, symmetric

KAPPAS = (5.0, 10.0, 15.0, 20.0)
Validate = Callable[[Structure], float]


def public_graph(view: PublicView, kappa: float, per_user: float = 25.0, self_loop: float = 0.5) -> Structure:
    """Weights exp(kappa cosine) (agreement + .05)^1.5 on the `per_user` m best pairs, scaled to sum to 2 m.

    Two rounds like the method that it is a control of: the first graph (60 m pairs) gives neighbours, these give class
    probabilities, these the agreement of the second. Weights count relative to a self-loop of weight `self_loop`.
    """
    score = Score.of_similarity(kappa)
    i, j, weight = best_pairs(view, view.first_round, score, 60 * view.size)
    classes = second_round(view, view.first_round, symmetric(i, j, scaled(weight, view.size), view.size))
    i, j, weight = best_pairs(view, classes, score, int(per_user * view.size))
    u, v, columns = published(view, i, j, weight=scaled(weight, view.size) / self_loop)
    return Structure(u, v, columns["weight"], summary={"kappa": kappa})


def best_pairs(
    view: PublicView, classes: np.ndarray, score: Score, wanted: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(i, j, log weight) of the `wanted` best pairs."""
    ranking = Ranking(view, classes, score, score)
    typical = score.by_cosine[len(score.by_cosine) // 20] + score.by_agreement[len(score.by_agreement) // 4]
    pairs = ranking.top(wanted, "prior", float(typical))
    return pairs.i, pairs.j, pairs.prior


def scaled(log_weight: np.ndarray, size: int) -> np.ndarray:
    """Weights that sum to 2 `size`."""
    weight = np.exp(log_weight - log_weight.max(initial=-np.inf))
    return weight * (2 * size / max(weight.sum(), 1e-300))


def tuned_public_graph(
    view: PublicView, per_user: float = 25.0, self_loop: float = 0.5, validate: Validate | None = None
) -> Structure:
    """The public graph whose kappa (5, 10, 15 or 20) gives the best validation accuracy; the smaller one on a tie.

    `validate` maps a structure to an accuracy, for example by training the run's own model; without it, validation
    users are classified by the weighted vote of their neighbours' labels and class probabilities.
    """
    judge = validate or (lambda structure: vote_accuracy(view, structure))
    graphs = [public_graph(view, kappa, per_user, self_loop) for kappa in KAPPAS]
    return graphs[int(np.argmax([judge(graph) for graph in graphs]))]


def vote_accuracy(view: PublicView, structure: Structure) -> float:
    """Share of the validation users whose label wins the vote of their neighbours and of their own class
    probabilities."""
    asked = view.validation & (view.labels >= 0)
    if not asked.any():
        return 0.0
    place = np.zeros(int(view.users.max()) + 1, dtype=np.int64)
    place[view.users] = np.arange(view.size)
    weight = np.ones(len(structure.u)) if structure.weight is None else structure.weight
    graph: sparse.csr_array = symmetric(place[structure.u], place[structure.v], weight, view.size)
    voice = view.first_round.copy()
    voice[view.train] = np.eye(view.classes)[view.labels[view.train]]
    votes = graph @ voice + voice
    return float((votes[asked].argmax(axis=1) == view.labels[asked]).mean())
