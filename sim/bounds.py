"""The Neyman-Pearson bound on detection: what the best possible rule on mutual pairs could tell, knowing everything
but who is who.

A user's table counts its mutual pairs by (level given, level received). Honest and attacking users' tables follow
laws that the truth and the channel fix; the likelihood ratio of the two is the best test there is, and its ROC curve
bounds every rule that reads a user's own mutual pairs, for attackers whose reports go through the channel (compliant
ones).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse, special

from server.channel import Channel

DRAWS = 4000
MOST_CELLS = 5_000_000  # cells of all simulated tables together: beyond 35 levels, fewer tables are drawn
MOST_TIES = 400  # users with more ties count as if they had this many; no attack of interest reaches there


@dataclass(frozen=True)
class PairLaw:
    """How the table of one kind of user comes about: Poisson background plus a random number of ties."""

    background: np.ndarray  # (kappa^2,) expected mutual pairs of noise per cell
    chance: np.ndarray  # (kappa^2,) probability that a tie shows as a mutual pair of each cell; sums to at most 1
    counts: np.ndarray  # (most + 1,) law of the number of ties

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Simulated tables (size, kappa^2)."""
        ties = rng.choice(len(self.counts), size, p=self.counts)
        outcomes = np.append(self.chance, max(1.0 - self.chance.sum(), 0.0))
        return rng.multinomial(ties, outcomes / outcomes.sum())[:, :-1] + rng.poisson(
            self.background, (size, len(self.chance))
        )

    def log_likelihood(self, tables: np.ndarray) -> np.ndarray:
        """Exact log-likelihood of each table, up to a term that all laws share."""
        from sim._bounds import log_likelihoods

        number, least = np.arange(len(self.counts)), 1e-300
        missed = np.log(max(1.0 - self.chance.sum(), least))
        share = np.log(np.maximum(self.counts, least))
        log_weight = np.empty(len(number))
        for j in number:  # j of d ties are mutual in d!/(d-j)! orders, d-j are not
            rest = number[j:] - j
            terms = share[j:] + special.gammaln(number[j:] + 1) - special.gammaln(rest + 1) + rest * missed
            log_weight[j] = special.logsumexp(terms)
        return log_likelihoods(tables, self.background, np.maximum(self.chance, least), log_weight)


@dataclass(frozen=True)
class Bound:
    """No rule on a user's own mutual pairs does better than this on average."""

    auc: float
    false_positive_rates: tuple[float, ...]
    true_positive_rates: tuple[float, ...]  # the largest possible at each of those rates


def neyman_pearson(
    honest: PairLaw,
    attacks: Sequence[tuple[float, PairLaw]],
    rng: np.random.Generator,
    false_positive_rates: Sequence[float] = (0.01, 0.001),
    draws: int = DRAWS,
) -> Bound:
    """The bound by Monte Carlo of the exact likelihood ratio; `attacks` are (share, law) of several groups at once.

    Standard errors: about 0.003 of an AUC near 0.97 at the default number of draws. Tables of many levels are large, so
    fewer of them are drawn.
    """
    draws = min(draws, max(MOST_CELLS // len(honest.background), 200))
    shares = np.array([share for share, _ in attacks])
    shares = shares / shares.sum()
    sizes = rng.multinomial(draws, shares)
    clean = honest.draw(draws, rng)
    dirty = np.concatenate([law.draw(int(size), rng) for size, (_, law) in zip(sizes, attacks)])

    def ratio(tables: np.ndarray) -> np.ndarray:
        attack = special.logsumexp([law.log_likelihood(tables) for _, law in attacks], axis=0, b=shares[:, None])
        return attack - honest.log_likelihood(tables)

    null, alternative = np.sort(ratio(clean)), ratio(dirty)
    below = np.searchsorted(null, alternative, side="left")
    up_to = np.searchsorted(null, alternative, side="right")
    cuts = np.quantile(null, [1 - rate for rate in false_positive_rates], method="higher")
    return Bound(
        float((below + up_to).mean() / (2 * draws)),
        tuple(false_positive_rates),
        tuple(float((alternative > cut).mean()) for cut in cuts),
    )


def tie_law(true_law: np.ndarray, channel: Channel) -> np.ndarray:
    """(kappa^2,): chance that a pair whose true levels follow `true_law` (kappa+1, kappa+1; zeros included) is mutual
    in each cell."""
    return (channel.matrix.T @ true_law @ channel.matrix)[1:, 1:].ravel()


def counts_of(numbers: np.ndarray) -> np.ndarray:
    """The law of the number of ties, from the numbers of some users."""
    counts = np.bincount(np.minimum(numbers, MOST_TIES))
    return counts / counts.sum()


def detection_bound(
    truth: sparse.csr_array, group: np.ndarray, channel: Channel, rng: np.random.Generator, draws: int = DRAWS
) -> Bound | None:
    """The bound of a run, from the true lists `truth` (n, n) and `group` (n,), -1 for honest users; None without
    attackers or pairs of theirs.

    Within a group, the number of pairs of each member is exact and their levels are drawn from the group's own. Pairs
    between attackers count as background.
    """
    n, levels = truth.shape[0], channel.levels
    mine, yours, level, back = both_sides(truth)
    noise = np.full(levels**2, (n - 1) * channel.flip**2)

    def law(selected: np.ndarray) -> np.ndarray:
        flat = np.bincount(level[selected] * (levels + 1) + back[selected], minlength=(levels + 1) ** 2)
        return tie_law(flat.reshape(levels + 1, levels + 1) / max(flat.sum(), 1), channel)

    good, partner_good = group[mine] < 0, group[yours] < 0
    users = int((group < 0).sum())
    attacked = good & ~partner_good
    honest = PairLaw(
        noise + law(attacked) * attacked.sum() / max(users, 1),
        law(good & partner_good),
        counts_of(np.bincount(mine[good & partner_good], minlength=n)[group < 0]),
    )
    attacks = []
    for name in np.unique(group[group >= 0]):
        members = group == name
        own, fellow = members[mine] & partner_good, members[mine] & ~partner_good
        background = noise + law(fellow) * fellow.sum() / members.sum()
        attacks.append(
            (
                float(members.sum()),
                PairLaw(background, law(own), counts_of(np.bincount(mine[own], minlength=n)[members])),
            )
        )
    if not attacks:
        return None
    return neyman_pearson(honest, attacks, rng, draws=draws)


def both_sides(lists: sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(user, partner, level given, level received) of every pair in which either level is above 0, seen from each
    end."""
    n = np.int64(lists.shape[0])
    giver = np.repeat(np.arange(n), np.diff(lists.indptr))
    receiver, level = lists.indices.astype(np.int64), lists.data.astype(np.int64)
    keys = np.unique(np.concatenate([giver * n + receiver, receiver * n + giver]))
    given, received = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    given[np.searchsorted(keys, giver * n + receiver)] = level
    received[np.searchsorted(keys, receiver * n + giver)] = level
    return keys // n, keys % n, given, received
