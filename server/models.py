"""Backbones: networks over one fixed, weighted, undirected graph.

A backbone prepares its graph operator once, holds its weights as plain tensors in a dict, and maps the features to
class scores. Every layer's formula stands in its class; w are the tie weights (1 when unweighted), N(i) the neighbours
of i.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from server.denoising import normalise
from server.settings import NetworkTraining
from server.sparse_torch import Attention, Inputs, Operator, Pattern

ACTIVATIONS = {"relu": torch.relu, "elu": torch.nn.functional.elu, "selu": torch.selu}


class Backbone(ABC):
    """`layers` layers with an activation and dropout between them; the input is not dropped.

    Weights are Glorot-uniform, biases zero, drawn from `generator` alone: no global random state is touched.
    """

    def __init__(
        self, settings: NetworkTraining, inputs: Inputs, structure: Any, classes: int, generator: torch.Generator
    ) -> None:
        self.settings = settings
        self.inputs = inputs
        self.weights: dict[str, Tensor] = {}
        self.products: dict[str, tuple[int, Tensor]] = {}
        self.activation = ACTIVATIONS[settings.activation]
        self.prepare(structure)
        widths = [inputs.width, *[settings.hidden] * (settings.layers - 1), classes]
        for layer, (incoming, outgoing) in enumerate(pairwise(widths)):
            self.make(layer, incoming, outgoing, generator)
        for weight in self.weights.values():
            weight.requires_grad_(True)

    @abstractmethod
    def prepare(self, structure: Any) -> None:
        """Build what the layers need of the graph, once."""

    @abstractmethod
    def make(self, layer: int, incoming: int, outgoing: int, generator: torch.Generator) -> None:
        """Draw the weights of a layer."""

    @abstractmethod
    def layer(self, layer: int, x: Tensor | Inputs, generator: torch.Generator | None) -> Tensor:
        """Apply a layer to the first input or to hidden values (n, incoming)."""

    def scores(self, generator: torch.Generator | None = None) -> Tensor:
        """Class scores (n, classes) before softmax. A generator means training: dropout draws from it."""
        x: Tensor | Inputs = self.inputs
        last = self.settings.layers - 1
        for layer in range(last):
            x = self.drop(self.activation(self.layer(layer, x, generator)), generator)
        return self.layer(last, x, generator)

    def drop(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Inverted dropout."""
        keep = self.kept(x.shape, generator)
        return x if keep is None else x * keep

    def kept(self, shape: Any, generator: torch.Generator | None) -> Tensor | None:
        """Factors of dropout: 0, or 1/(1 - rate); None outside training."""
        rate = self.settings.dropout
        if generator is None or rate == 0:
            return None
        return (torch.rand(shape, generator=generator) >= rate).to(torch.float32) / (1 - rate)

    def matrix(self, name: str, incoming: int, outgoing: int, generator: torch.Generator) -> None:
        """A Glorot-uniform weight (incoming, outgoing)."""
        bound = math.sqrt(6 / (incoming + outgoing))
        self.weights[name] = (torch.rand(incoming, outgoing, generator=generator) * 2 - 1) * bound

    def bias(self, name: str, width: int) -> None:
        """A zero bias."""
        self.weights[name] = torch.zeros(width)

    def times(self, x: Tensor | Inputs, name: str) -> Tensor:
        """x W of the weight `name`. A product with the input is kept until the weight changes: the validation after one
        epoch and the training step of the next share it."""
        weight = self.weights[name]
        if not isinstance(x, Inputs):
            return x @ weight
        version, product = self.products.get(name, (-1, weight))
        if version != weight._version:
            with torch.enable_grad():
                product = x @ weight
            self.products[name] = weight._version, product
        return product

    def linear(self, name: str, x: Tensor | Inputs) -> Tensor:
        """x W + b of the weights `name` and `name.bias`."""
        return self.times(x, name) + self.weights[f"{name}.bias"]


class Perceptron(Backbone):
    """No graph: x W + b."""

    def prepare(self, structure: Any) -> None:
        pass

    def make(self, layer: int, incoming: int, outgoing: int, generator: torch.Generator) -> None:
        self.matrix(f"{layer}", incoming, outgoing, generator)
        self.bias(f"{layer}.bias", outgoing)

    def layer(self, layer: int, x: Tensor | Inputs, generator: torch.Generator | None) -> Tensor:
        return self.linear(f"{layer}", x)


class Summing(Backbone):
    """Layers that begin with one fixed linear map over the graph: the first layer's is applied once, for all epochs."""

    operator: Operator

    def prepare(self, structure: Any) -> None:
        self.operator = Operator(self.map_of(structure))
        self.summed = self.inputs.under(self.operator)

    @abstractmethod
    def map_of(self, structure: Any) -> Any:
        """The (n, n) matrix of the map."""

    def sum_times(self, x: Tensor | Inputs, name: str) -> Tensor:
        """map @ x @ W of the weight `name`, in the cheaper order."""
        if isinstance(x, Inputs):
            return self.operator(self.times(x, name)) if self.summed is None else self.times(self.summed, name)
        weight = self.weights[name]
        if weight.shape[1] <= weight.shape[0]:
            return self.operator(x @ weight)
        return self.operator(x) @ weight


class Convolution(Summing):
    """GCN: D^-1/2 (A + I) D^-1/2 x W + b, D the weighted degrees of A + I (Kipf and Welling 2017, Eq. 2)."""

    def map_of(self, structure: Any) -> Any:
        return normalise(sparse.csr_array(structure) + sparse.eye_array(structure.shape[0], format="csr"))

    def make(self, layer: int, incoming: int, outgoing: int, generator: torch.Generator) -> None:
        self.matrix(f"{layer}", incoming, outgoing, generator)
        self.bias(f"{layer}.bias", outgoing)

    def layer(self, layer: int, x: Tensor | Inputs, generator: torch.Generator | None) -> Tensor:
        return self.sum_times(x, f"{layer}") + self.weights[f"{layer}.bias"]


class Sage(Summing):
    """GraphSAGE: mean_N(i) x_j W_n + x_i W_s + b; with weights the mean is sum w_ij x_j / sum w_ij (Hamilton 2017)."""

    def map_of(self, structure: Any) -> Any:
        held: Any = sparse.csr_array(structure, dtype=np.float64)
        degree = np.asarray(held.sum(axis=1)).reshape(-1)
        held.data /= degree[np.repeat(np.arange(degree.size), np.diff(held.indptr))]
        return held

    def make(self, layer: int, incoming: int, outgoing: int, generator: torch.Generator) -> None:
        self.matrix(f"{layer}.neighbours", incoming, outgoing, generator)
        self.matrix(f"{layer}.self", incoming, outgoing, generator)
        self.bias(f"{layer}.self.bias", outgoing)

    def layer(self, layer: int, x: Tensor | Inputs, generator: torch.Generator | None) -> Tensor:
        return self.sum_times(x, f"{layer}.neighbours") + self.linear(f"{layer}.self", x)


class Isomorphism(Summing):
    """GIN: relu((x_i + sum_j w_ij x_j) W1 + b1) W2 + b2, W1 to the hidden width (Xu 2019, Eq. 4.1, epsilon 0)."""

    def map_of(self, structure: Any) -> Any:
        return sparse.csr_array(structure) + sparse.eye_array(structure.shape[0], format="csr")

    def make(self, layer: int, incoming: int, outgoing: int, generator: torch.Generator) -> None:
        inside = self.settings.hidden
        self.matrix(f"{layer}.first", incoming, inside, generator)
        self.bias(f"{layer}.first.bias", inside)
        self.matrix(f"{layer}.second", inside, outgoing, generator)
        self.bias(f"{layer}.second.bias", outgoing)

    def layer(self, layer: int, x: Tensor | Inputs, generator: torch.Generator | None) -> Tensor:
        first = self.sum_times(x, f"{layer}.first") + self.weights[f"{layer}.first.bias"]
        return self.linear(f"{layer}.second", torch.relu(first))


class Attentive(Backbone):
    """GAT: heads side by side, each sum_j alpha_ij z_j over N(i) and i itself, z = x W; one head in the last layer.

    alpha_i. is the softmax over j of leaky_relu(a_t z_i + a_s z_j) + log w_ij: a tie of weight 2 counts as two ties.
    The self loop has weight 1. Dropout also falls on alpha (Velickovic 2018, Eq. 3 to 5).
    """

    def prepare(self, structure: Any) -> None:
        held: Any = sparse.csr_array(structure) + sparse.eye_array(structure.shape[0], format="csr")
        held.sort_indices()
        self.pattern = Pattern(held)
        self.log_weight = torch.from_numpy(np.log(held.data).astype(np.float32))

    def heads(self, layer: int) -> int:
        """Number of heads of a layer."""
        return 1 if layer == self.settings.layers - 1 else self.settings.heads

    def make(self, layer: int, incoming: int, outgoing: int, generator: torch.Generator) -> None:
        heads = self.heads(layer)
        self.matrix(f"{layer}", incoming, outgoing, generator)
        self.matrix(f"{layer}.source", heads, outgoing // heads, generator)
        self.matrix(f"{layer}.target", heads, outgoing // heads, generator)
        self.bias(f"{layer}.bias", outgoing)

    def layer(self, layer: int, x: Tensor | Inputs, generator: torch.Generator | None) -> Tensor:
        heads = self.heads(layer)
        joined = self.times(x, f"{layer}")
        outputs = []
        for head, z in enumerate(joined.chunk(heads, dim=1)):
            source = z @ self.weights[f"{layer}.source"][head]
            target = z @ self.weights[f"{layer}.target"][head]
            keep = self.kept(self.log_weight.shape, generator)
            outputs.append(Attention.apply(self.pattern, self.log_weight, keep, source, target, z.contiguous()))
        return torch.cat(outputs, dim=1) + self.weights[f"{layer}.bias"]


BACKBONES: dict[str, type[Backbone]] = {
    "gcn": Convolution,
    "graphsage": Sage,
    "gat": Attentive,
    "gin": Isomorphism,
    "mlp": Perceptron,
}
