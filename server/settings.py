"""Settings of the server's training stage, importable without torch."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from sim.kernel.component import Component

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "veritas": {model: {"hidden": 64, "layers": 2} for model in ("gcn", "graphsage", "gat", "gin", "mlp")},
    "edgerefine": {
        "gcn": {"hidden": 16, "layers": 2},
        "gat": {"hidden": 128, "heads": 8, "layers": 2},
        "gin": {"hidden": 32, "layers": 2},
        "graphsage": {"hidden": 16, "layers": 2},
        "mlp": {"hidden": 16, "layers": 2},
    },
}
"""Layer shapes of the papers. EdgeRefine's GAT is eight heads of 16 units, side by side."""

OPTIMISERS: dict[str, dict[str, Any]] = {
    "veritas": {},
    "edgerefine": {
        "epochs": 700,
        "patience": 100,
        "learning_rate": 0.005,
        "weight_decay": 1e-5,
        "dropout": 0.6,
        "select": "last",
    },
}
"""Training settings that come with a preset, where its paper states them."""


class Training(Component, family="server.training", home="server.settings"):
    """How the server trains a classifier on the published graph and features."""

    default_kind: ClassVar[str] = "gnn"


class NoTraining(Training, kind="none"):
    """No training: the learning columns stay empty."""


class NetworkTraining(Training, kind="gnn"):
    """A graph neural network (or a baseline without one), full batch, Adam, early stopping on validation accuracy.

    `preset` fills every key that is not given with the layer shape and optimiser settings of a paper. `hidden` is the
    width of a hidden layer; for `gat` all heads together. `select: best` restores the weights of the first epoch with
    the best validation accuracy, `last` keeps those of the last epoch. `patience` is how many epochs may pass without
    a strictly better one. `warm_start` begins a round from the last round's weights. `label-propagation` uses neither
    features nor weights: `epochs` bounds its steps and `restart` is the share of the known labels in each step.
    """

    source: ClassVar[str] = "Kipf 2017, Hamilton 2017, Velickovic 2018, Xu 2019, Zhou 2004"

    model: Literal["gcn", "graphsage", "gat", "gin", "mlp", "label-propagation"] = "gcn"
    preset: Literal["veritas", "edgerefine"] | None = None
    hidden: int = Field(64, ge=1)
    layers: int = Field(2, ge=1)
    heads: int = Field(8, ge=1)
    activation: Literal["relu", "elu", "selu"] = "relu"
    epochs: int = Field(200, ge=1)
    patience: int = Field(50, ge=1)
    learning_rate: float = Field(0.01, gt=0)
    weight_decay: float = Field(0.01, ge=0)
    dropout: float = Field(0.5, ge=0, lt=1)
    restart: float = Field(0.1, gt=0, lt=1)
    select: Literal["best", "last"] = "best"
    warm_start: bool = False

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        preset, model = values.get("preset"), values.get("model", "gcn")
        if not isinstance(preset, str) or not isinstance(model, str) or preset not in PRESETS:
            return values
        return {**OPTIMISERS[preset], **PRESETS[preset].get(model, {}), **values}

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> NetworkTraining:
        if self.model == "gat" and self.layers > 1 and self.hidden % self.heads:
            raise ValueError(
                f"hidden {self.hidden} with heads {self.heads}; allowed: a width that the heads divide evenly"
            )
        return self
