"""Training on the published graph: full batch, one thread, no global random state, weights of the best epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from server.denoising import normalise
from server.label_propagation import spread
from server.models import BACKBONES, Backbone
from server.settings import NetworkTraining
from server.sparse_torch import Inputs
from sim.kernel.randomness import Streams

Progress = Callable[[int, int, float, float], None]
"""Called after every epoch with (epoch, epochs at most, training loss, validation accuracy)."""


class TrainingError(ValueError):
    """Training cannot start: what was found, and what is needed."""


@dataclass(frozen=True)
class TrainResult:
    """A trained classifier's answers, of the selected epoch. Accuracies are against the labels that were given."""

    predictions: np.ndarray  # (n,) int64
    probabilities: np.ndarray  # (n, classes) float32, rows sum to 1
    loss: float  # mean cross-entropy of the training nodes without dropout; NaN for label-propagation
    epochs: int  # epochs run, the ones after the selected epoch included
    train_accuracy: float
    validation_accuracy: float  # NaN without validation nodes
    state: dict[str, np.ndarray] = field(repr=False, default_factory=dict)  # weights, for a warm start


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread inside, the former number after: the same bits whatever the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    settings: NetworkTraining,
    features: np.ndarray | sparse.csr_array,
    structure: sparse.csr_array,
    labels: np.ndarray,
    train_nodes: np.ndarray,
    validation_nodes: np.ndarray,
    *,
    seed: int,
    classes: int | None = None,
    transition: np.ndarray | None = None,
    warm: dict[str, np.ndarray] | None = None,
    standardise: bool = False,
    progress: Progress | None = None,
) -> TrainResult:
    """Train `settings.model` and answer for every node.

    `features`: (n, d), dense or sparse. `structure`: (n, n) symmetric, positive weights, empty diagonal; `labels`: (n,)
    int64, -1 unknown; `train_nodes`, `validation_nodes`: (n,) bool, those without a label are left out. `seed`: any
    integer; it alone decides initial weights and dropout. `classes`: number of classes, if not all occur among the
    labels. `transition`: (classes, classes), [i, j] the probability that true label i was reported as j; the loss is
    then the forward-corrected one (Patrini et al. 2017, Eq. 10). `warm`: the `state` of an earlier result.
    `standardise` divides the features by one standard deviation over all entries, for private estimates whose scale
    depends on epsilon. Raises TrainingError for input that cannot be trained on.
    """
    labels = np.asarray(labels, dtype=np.int64)
    train_nodes, validation_nodes = (np.flatnonzero(mask & (labels >= 0)) for mask in (train_nodes, validation_nodes))
    classes = _check(structure, features, labels, train_nodes, classes, transition)
    task = _Task(settings, labels, train_nodes, validation_nodes, classes, transition, progress)
    if settings.model == "label-propagation":
        return task.propagate(structure)
    with one_thread(), torch.enable_grad():
        # torch's generator reads 32 bits of a seed only, so all bits are folded into those first
        generator = torch.Generator().manual_seed(Streams(seed).integer("training") & 0xFFFFFFFF)
        inputs = Inputs(_standardised(features) if standardise else features)
        backbone = BACKBONES[settings.model](settings, inputs, structure, classes, generator)
        return task.fit(backbone, generator, warm)


@dataclass
class _Task:
    settings: NetworkTraining
    labels: np.ndarray
    train_nodes: np.ndarray
    validation_nodes: np.ndarray
    classes: int
    transition: np.ndarray | None
    progress: Progress | None

    def fit(self, backbone: Backbone, generator: torch.Generator, warm: dict[str, np.ndarray] | None) -> TrainResult:
        """Gradient descent with early stopping."""
        settings = self.settings
        optimiser = Adam(list(backbone.weights.values()), settings.learning_rate, settings.weight_decay)
        best, best_accuracy, best_epoch = _copy(backbone), -1.0, 0
        if warm is not None:
            _restore(backbone, warm)
            best, best_accuracy = _copy(backbone), self._validation(backbone)
        epoch = 0
        for epoch in range(1, settings.epochs + 1):
            loss = self._loss(backbone.scores(generator))
            optimiser.step(torch.autograd.grad(loss, list(backbone.weights.values())))
            accuracy = self._validation(backbone)
            if accuracy > best_accuracy:
                best, best_accuracy, best_epoch = _copy(backbone), accuracy, epoch
            if self.progress:
                self.progress(epoch, settings.epochs, float(loss.detach()), accuracy)
            if epoch - best_epoch >= settings.patience:
                break
        if settings.select == "best" and best_accuracy >= 0:
            _restore(backbone, best)
        with torch.no_grad():
            scores = backbone.scores()
            final = float(self._loss(scores))
        probabilities = torch.softmax(scores, dim=1).numpy()
        return self._result(scores.numpy(), probabilities, final, epoch, _copy(backbone))

    def propagate(self, structure: sparse.csr_array) -> TrainResult:
        """Label propagation; an epoch is a step."""
        settings = self.settings
        known = np.zeros((self.labels.size, self.classes), dtype=np.float32)
        answers = np.eye(self.classes) if self.transition is None else np.linalg.inv(self.transition)
        known[self.train_nodes] = answers[self.labels[self.train_nodes]]  # unbiased for the true one-hot label
        held, accuracy, best_accuracy, best_epoch = known, float("nan"), -1.0, 0
        epoch = 0
        for epoch, scores in enumerate(spread(normalise(structure), known, settings.restart), start=1):
            accuracy = self._accuracy(scores, self.validation_nodes)
            if settings.select == "last" or not accuracy <= best_accuracy:
                held = scores
            if accuracy > best_accuracy:
                best_accuracy, best_epoch = accuracy, epoch
            if self.progress:
                self.progress(epoch, settings.epochs, float("nan"), accuracy)
            if epoch == settings.epochs or epoch - best_epoch >= settings.patience:
                break
        positive = np.maximum(held, 0) + np.float32(1e-30)
        return self._result(held, positive / positive.sum(axis=1, keepdims=True), float("nan"), epoch, {})

    def _loss(self, scores: Tensor) -> Tensor:
        logs = torch.log_softmax(scores[torch.from_numpy(self.train_nodes)], dim=1)
        if self.transition is not None:
            noisy = logs.exp() @ torch.from_numpy(np.asarray(self.transition, dtype=np.float32))
            logs = noisy.clamp_min(1e-12).log()
        return torch.nn.functional.nll_loss(logs, torch.from_numpy(self.labels[self.train_nodes]))

    def _validation(self, backbone: Backbone) -> float:
        if self.validation_nodes.size == 0:
            return float("nan")
        with torch.no_grad():
            return self._accuracy(backbone.scores().numpy(), self.validation_nodes)

    def _accuracy(self, scores: np.ndarray, nodes: np.ndarray) -> float:
        if nodes.size == 0:
            return float("nan")
        return float(np.mean(scores[nodes].argmax(axis=1) == self.labels[nodes]))

    def _result(
        self, scores: np.ndarray, probabilities: np.ndarray, loss: float, epochs: int, state: dict[str, np.ndarray]
    ) -> TrainResult:
        predictions = scores.argmax(axis=1).astype(np.int64)
        train, validation = (self._accuracy(scores, nodes) for nodes in (self.train_nodes, self.validation_nodes))
        return TrainResult(predictions, probabilities, loss, epochs, train, validation, state)


class Adam:
    """Adam with the decay added to the gradient (Kingma and Ba 2015, Algorithm 1), as torch.optim.Adam.

    Written out because the first use of torch.optim imports torch's compiler, two seconds in every process.
    """

    RATES = (0.9, 0.999)
    EPSILON = 1e-8

    def __init__(self, weights: list[Tensor], learning_rate: float, weight_decay: float) -> None:
        self.weights, self.learning_rate, self.weight_decay = weights, learning_rate, weight_decay
        self.moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights]
        self.steps = 0

    @torch.no_grad()
    def step(self, gradients: tuple[Tensor, ...]) -> None:
        """Move the weights, in place."""
        self.steps += 1
        first_rate, second_rate = self.RATES
        size = self.learning_rate / (1 - first_rate**self.steps)
        spread_correction = (1 - second_rate**self.steps) ** 0.5
        for weight, gradient, (first, second) in zip(self.weights, gradients, self.moments):
            gradient = gradient.add(weight, alpha=self.weight_decay)
            first.lerp_(gradient, 1 - first_rate)
            second.mul_(second_rate).addcmul_(gradient, gradient, value=1 - second_rate)
            weight.addcdiv_(first, (second.sqrt() / spread_correction).add_(self.EPSILON), value=-size)


def _copy(backbone: Backbone) -> dict[str, np.ndarray]:
    return {name: weight.detach().numpy().copy() for name, weight in backbone.weights.items()}


def _restore(backbone: Backbone, state: dict[str, np.ndarray]) -> None:
    wanted = {name: tuple(weight.shape) for name, weight in backbone.weights.items()}
    found = {name: np.shape(values) for name, values in state.items()}
    if wanted != found:
        raise TrainingError(f"the warm start holds weights {found}; this model has {wanted}")
    with torch.no_grad():
        for name, weight in backbone.weights.items():
            weight.copy_(torch.from_numpy(state[name]))


def _standardised(features: Any) -> Any:
    """features / one standard deviation over all entries, zeros included; unchanged when that is 0."""
    held: Any = features
    total = held.shape[0] * held.shape[1]
    values = np.asarray(held.data if sparse.issparse(features) else held, dtype=np.float64)
    mean = values.sum() / max(1, total)
    deviation = np.sqrt(max(0.0, float((values**2).sum()) / max(1, total) - mean**2))
    return held if deviation == 0 else (held / np.float32(deviation)).astype(np.float32)


def _check(
    structure: Any, features: Any, labels: np.ndarray, train_nodes: np.ndarray, classes: int | None, transition: Any
) -> int:
    """The number of classes, after refusing what no backbone can use. No weight is ever ignored."""
    n = labels.size
    held: Any = structure
    if held.shape != (n, n) or features.shape[0] != n:
        raise TrainingError(f"{n} labels, features {features.shape}, structure {held.shape}; expected one row a node")
    if train_nodes.size == 0:
        raise TrainingError("no training node has a label; expected at least one")
    if held.nnz and not (np.isfinite(held.data).all() and held.data.min() > 0):
        raise TrainingError(f"tie weights reach down to {held.data.min():g} or are not finite; allowed: above 0")
    if held.diagonal().any():
        raise TrainingError("the structure ties nodes to themselves; expected an empty diagonal")
    if abs(held - held.T).max() > 0:
        raise TrainingError("the structure is not symmetric; expected every tie in both directions")
    values: Any = features
    values = values.data if sparse.issparse(features) else values
    if not np.isfinite(values).all():
        raise TrainingError("features hold NaN or infinity")
    if transition is not None:
        classes = classes or len(transition)
        if np.shape(transition) != (classes, classes) or not np.allclose(np.sum(transition, axis=1), 1, atol=1e-6):
            raise TrainingError(
                f"the label transition has shape {np.shape(transition)}; "
                f"expected ({classes}, {classes}) with rows that sum to 1"
            )
    found = int(labels.max()) + 1
    if classes is not None and classes < found:
        raise TrainingError(f"labels reach {found - 1} but there are {classes} classes")
    return classes or found
