"""Choosing the event that tells two worlds apart best, from a pilot sample.

A report is observed as groups of numbers, each group a (k, c) array whose columns share one distribution. The pilot
gives every group a histogram of log-likelihood ratios; a report's score is the sum over its numbers, and an event is
"the score is at least t". Whatever the pilot chooses, the bound that fresh draws give for the event is valid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.privacy.audit.bounds import EXCESS, error_per_root_draw

Observed = Sequence[np.ndarray]

BINS = 32
THRESHOLDS = 200


class Binning:
    """Histogram bins of one group: a bin a value when there are few, else equal shares of the pilot; absent numbers
    (NaN) have their own bin."""

    def __init__(self, values: np.ndarray) -> None:
        present = values[~np.isnan(values)]
        distinct = np.unique(present)
        if len(distinct) <= BINS:
            self.edges = (distinct[1:] + distinct[:-1]) / 2
        else:
            self.edges = np.unique(np.quantile(present, np.linspace(0, 1, BINS + 1)[1:-1]))
        self.count = len(self.edges) + 2

    def index(self, values: np.ndarray) -> np.ndarray:
        """The bin of every value."""
        bins = np.searchsorted(self.edges, values, side="right")
        bins[np.isnan(values)] = self.count - 1
        return bins


@dataclass(frozen=True)
class Score:
    """The learned sum of log-likelihood ratios."""

    binnings: list[Binning]
    weights: list[np.ndarray]

    def __call__(self, observed: Observed) -> np.ndarray:
        """(k,) scores."""
        total = np.zeros(len(observed[0]))
        for binning, weight, group in zip(self.binnings, self.weights, observed):
            for column in group.T:
                total += weight[binning.index(column)]
        return total


@dataclass(frozen=True)
class Event:
    """ "score >= threshold", with its pilot probabilities in the first and the second world of a pair."""

    pair: tuple[int, int]
    score: Score
    threshold: float
    first: float
    second: float
    draws: float  # needed to find the excess; infinite when no number of draws would do
    power: float  # expected distance beyond epsilon, in units of its error

    def hits(self, observed: Observed) -> int:
        """How many reports the event holds for."""
        return int((self.score(observed) >= self.threshold).sum())


def learn(first: Observed, second: Observed) -> Score:
    """The score that tells `first` from `second`."""
    binnings, weights = [], []
    for a, b in zip(first, second):
        binning = Binning(np.concatenate([a.ravel(), b.ravel()]))
        counts = [np.bincount(binning.index(side.ravel()), minlength=binning.count) + 0.5 for side in (a, b)]
        binnings.append(binning)
        weights.append(np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum()))
    return Score(binnings, weights)


def best_event(
    pair: tuple[int, int], first: Observed, second: Observed, epsilon: float, delta: float, alpha: float
) -> Event:
    """The event with the most power against a mechanism at `EXCESS` times epsilon.

    The first half of the pilot learns the score, the second half chooses the threshold.
    """
    half = len(first[0]) // 2
    score = learn([group[:half] for group in first], [group[:half] for group in second])
    scores = [np.sort(score([group[half:] for group in side])) for side in (first, second)]
    pooled = np.unique(np.concatenate(scores))
    if len(pooled) > THRESHOLDS:
        pooled = pooled[np.linspace(0, len(pooled) - 1, THRESHOLDS).astype(int)]
    events = []
    for threshold in pooled[1:] if len(pooled) > 1 else pooled:
        chances = []
        for side in scores:
            hits = len(side) - int(np.searchsorted(side, threshold, side="left"))
            chances.append((hits + 0.5) / (len(side) + 1))
        draws, power = plan(chances[0], chances[1], epsilon, delta, alpha, len(scores[0]))
        events.append(Event(pair, score, float(threshold), chances[0], chances[1], draws, power))
    return max(events, key=lambda event: event.power)


def plan(first: float, second: float, epsilon: float, delta: float, alpha: float, pilot: int) -> tuple[float, float]:
    """(draws, power) of an event with these pilot probabilities.

    Its log-ratio r, less one pilot error, would be `EXCESS` r in a twin with that much more epsilon: power is how far
    that is beyond epsilon per error. The draws are those that find the twin (r counts for at most epsilon here, since
    more is no honest mechanism's), or that find an excess which the pilot is already sure of.
    """
    if first <= 2 * delta or first <= second:
        return math.inf, -math.inf
    ratio = math.log((first - delta) / second)
    doubt = math.sqrt(((1 - first) / first + (1 - second) / second) / pilot)
    error = error_per_root_draw(first, second, alpha, delta)
    gain = max(EXCESS * min(ratio + doubt, epsilon) - epsilon, ratio - 3 * doubt - epsilon)
    return (error / gain) ** 2 if gain > 0 else math.inf, (EXCESS * (ratio - doubt) - epsilon) / error
