"""What attackers report as features. All kinds but `illegal-dense` keep the format: m coordinates, values in
range."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from agents.protocol import Protocol
from agents.strategies.base import FeatureStrategy, View
from sim.kernel.errors import SettingError
from sim.kernel.randomness import Streams

QUANTILE = 0.999
_QUANTILE_DRAWS = 20_000


def no_features(rows: int, dimensions: int) -> sparse.csr_array:
    """Rows without any stored feature."""
    none = np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int32), np.zeros(rows + 1, dtype=np.int32)
    return sparse.csr_array(none, shape=(rows, dimensions))


def legal_range(protocol: Protocol, streams: Streams) -> tuple[float, float]:
    """Smallest and largest value that does not stand out: the mechanism's output range, and where that is unbounded
    the 0.1 % and 99.9 % quantiles of an honest user's outputs for a feature of 0."""
    mechanism, dimensions = protocol.features, protocol.dimensions
    low, high = mechanism.output_range(dimensions)
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    rows = -(-_QUANTILE_DRAWS // mechanism.sampled(dimensions))
    drawn = mechanism.perturb(
        no_features(rows, dimensions),
        np.arange(rows, dtype=np.int64),
        np.zeros(rows, dtype=np.uint64),
        streams,
    ).data
    tails = np.quantile(drawn, [1 - QUANTILE, QUANTILE])
    return (low if np.isfinite(low) else float(tails[0])), (high if np.isfinite(high) else float(tails[1]))


def _pick(view: View, purpose: str, epoch: int = 0) -> np.ndarray:
    """The m coordinates that all members share, ascending."""
    d = view.protocol.dimensions
    m = view.protocol.features.sampled(d)
    return np.sort(view.random(purpose, epoch).choice(d, size=m, replace=False))


def _rows(columns: np.ndarray, values: np.ndarray, members: int, dimensions: int) -> sparse.csr_array:
    """The same sparse row (columns ascending) for every member."""
    indptr = np.arange(members + 1) * len(columns)
    data = np.tile(values.astype(np.float32), members)
    return sparse.csr_array((data, np.tile(columns, members), indptr), shape=(members, dimensions))


def _inside(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """float32 values that are inside [low, high] also after rounding to float32."""
    out = values.astype(np.float32)
    out = np.where(out.astype(float) > high, np.nextafter(out, np.float32(-np.inf)), out)
    return np.where(out.astype(float) < low, np.nextafter(out, np.float32(np.inf)), out)


class Extreme(FeatureStrategy, kind="extreme"):
    """The largest legal deviation, on m coordinates that all members share, so that neighbours' errors add up.

    `sign`: `positive` writes the top of the output range, `negative` the bottom, `mixed` a random pattern of both,
    shared.
    """

    source: ClassVar[str] = "Devil's Hand (He et al. 2026); crafting per mechanism ours"
    sign: Literal["positive", "negative", "mixed"] = "positive"

    def craft(self, view: View) -> sparse.csr_array:
        low, high = legal_range(view.protocol, view.streams)
        columns = _pick(view, "features/coordinates")
        up = np.full(len(columns), self.sign != "negative")
        if self.sign == "mixed":
            up = view.random("features/signs").random(len(columns)) < 0.5
        values = _inside(np.where(up, high, low), low, high)
        return _rows(columns, values, view.size, view.protocol.dimensions)


class IllegalDense(FeatureStrategy, kind="illegal-dense"):
    """All d coordinates at the top of the output range: the strong form of the attack, which violates the format.

    Intake rejects such a report unless its check of the number of non-zero features is off.
    """

    source: ClassVar[str] = "Devil's Hand without the limits of the format; ours"

    def craft(self, view: View) -> sparse.csr_array:
        low, high = legal_range(view.protocol, view.streams)
        d = view.protocol.dimensions
        return _rows(np.arange(d), _inside(np.full(d, high), low, high), view.size, d)


class Random(FeatureStrategy, kind="random"):
    """Values drawn evenly from the output range, on m coordinates that each member draws for itself."""

    source: ClassVar[str] = "random-value baseline of data poisoning against LDP (He X. et al. 2025, RVA)"

    def craft(self, view: View) -> sparse.csr_array:
        low, high = legal_range(view.protocol, view.streams)
        d = view.protocol.dimensions
        m = view.protocol.features.sampled(d)
        random = view.random("features/random", view.epoch)
        columns = [np.sort(random.choice(d, size=m, replace=False)) for _ in range(view.size)]
        values = _inside(random.uniform(low, high, size=view.size * m), low, high)
        indices = np.concatenate([np.empty(0, dtype=np.int64), *columns])
        return sparse.csr_array((values, indices, np.arange(view.size + 1) * m), shape=(view.size, d))


class Constant(FeatureStrategy, kind="constant"):
    """The same legal report from every member: m shared coordinates at one place of the output range.

    `position` is that place: 0 the bottom, 1 the top, 0.5 the middle.
    """

    source: ClassVar[str] = "constant poisoning, common in the federated-learning literature"
    position: float = Field(0.5, ge=0, le=1)

    def craft(self, view: View) -> sparse.csr_array:
        low, high = legal_range(view.protocol, view.streams)
        columns = _pick(view, "features/coordinates")
        values = _inside(np.full(len(columns), low + self.position * (high - low)), low, high)
        return _rows(columns, values, view.size, view.protocol.dimensions)


def made_up(view: View, density: float) -> sparse.csr_array:
    """(members, d) binary feature rows out of thin air, the same in every round: each coordinate is 1 with
    `density`."""
    d = view.protocol.dimensions
    random = view.random("features/made-up")
    rows = [np.flatnonzero(random.random(d) < density) for _ in range(view.size)]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.concatenate([np.empty(0, dtype=np.int64), *rows])
    return sparse.csr_array((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=(view.size, d))


def through_mechanism(view: View, raw: sparse.csr_array) -> sparse.csr_array:
    """Reports of members who hold `raw` and follow the protocol."""
    epochs = np.full(view.size, view.epoch, dtype=np.uint64)
    return view.protocol.features.perturb(raw, view.members, epochs, view.streams)


class HonestLike(FeatureStrategy, kind="honest-like"):
    """Made-up sparse binary features, perturbed by the mechanism as an honest user's would be.

    `density` is the chance that a made-up feature is 1.
    """

    source: ClassVar[str] = "input poisoning"
    density: float = Field(0.01, ge=0, le=1)

    def craft(self, view: View) -> sparse.csr_array:
        return through_mechanism(view, made_up(view, self.density))


class Opposite(FeatureStrategy, kind="opposite"):
    """The complement of made-up features, through the mechanism: members hold what ordinary users lack.

    `density` is the chance that an ordinary user's feature is 1.
    """

    source: ClassVar[str] = "input poisoning; the sign-flipping attack of federated learning"
    density: float = Field(0.01, ge=0, le=1)

    def craft(self, view: View) -> sparse.csr_array:
        ordinary = made_up(view, self.density).toarray()
        return through_mechanism(view, sparse.csr_array(np.float32(1) - ordinary))


class MimicClass(FeatureStrategy, kind="mimic-class"):
    """Features of one class as the attacker imagines them, through the mechanism.

    Nobody's features are known, so what marks class `label` is either told (`coordinates`: which features are 1), or
    guessed: every coordinate j with j mod classes = label.
    """

    source: ClassVar[str] = "input poisoning towards a class; ours"
    label: int = Field(0, ge=0)
    coordinates: list[int] | None = None

    def craft(self, view: View) -> sparse.csr_array:
        d, classes = view.protocol.dimensions, view.protocol.classes
        if self.label >= classes:
            raise SettingError(
                f"mimic-class: found label {self.label}; allowed: 0 to {classes - 1}, the classes of this graph"
            )
        marks = np.arange(self.label, d, classes) if self.coordinates is None else np.unique(self.coordinates)
        if len(marks) and (marks[0] < 0 or marks[-1] >= d):
            raise SettingError(f"mimic-class: coordinates must lie in 0..{d - 1}; found {marks[0]} to {marks[-1]}")
        return through_mechanism(view, _rows(marks, np.ones(len(marks)), view.size, d))
