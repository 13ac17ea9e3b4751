"""Every backbone against PyTorch Geometric's layers with equal weights, and against dense formulas with tie weights."""

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from server.models import BACKBONES
from server.settings import NetworkTraining
from server.sparse_torch import DENSE_BYTES, Attention, Inputs, Operator, Pattern

N, D, CLASSES = 30, 11, 4


def graph(seed: int = 0, weighted: bool = False) -> sparse.csr_array:
    """A random undirected graph; node 0 has no ties."""
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.random((N, N)) < 0.2, 1) * (generator.uniform(0.2, 3, (N, N)) if weighted else 1.0)
    upper[0] = 0
    return sparse.csr_array((upper + upper.T).astype(np.float32))


def features(seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return (generator.random((N, D)) * (generator.random((N, D)) < 0.4)).astype(np.float32)


def backbone(model: str, structure: sparse.csr_array, layers: int = 2, held=None):
    settings = NetworkTraining(model=model, hidden=12, heads=3, layers=layers, dropout=0.0)
    inputs = Inputs(features() if held is None else held)
    made = BACKBONES[model](settings, inputs, structure, CLASSES, torch.Generator().manual_seed(0))
    for name, weight in made.weights.items():
        if name.endswith("bias"):
            with torch.no_grad():
                weight.copy_(torch.linspace(-1, 1, len(weight)))
    return made


def edge_index(structure: sparse.csr_array) -> Tensor:
    rows, columns = structure.nonzero()
    return torch.from_numpy(np.stack([columns, rows]).astype(np.int64))


def pyg_layers(model: str, weights: dict[str, Tensor]) -> list:
    from torch_geometric import nn

    def linear(name: str, incoming: int, outgoing: int) -> torch.nn.Linear:
        made = torch.nn.Linear(incoming, outgoing)
        made.weight.data, made.bias.data = weights[name].t(), weights[f"{name}.bias"]
        return made

    made = []
    for layer, (incoming, outgoing, heads) in enumerate([(D, 12, 3), (12, CLASSES, 1)]):
        convolution: torch.nn.Module
        if model == "gcn":
            convolution = nn.GCNConv(incoming, outgoing)
            convolution.lin.weight.data, convolution.bias.data = weights[f"{layer}"].t(), weights[f"{layer}.bias"]
        elif model == "graphsage":
            convolution = nn.SAGEConv(incoming, outgoing)
            convolution.lin_l.weight.data = weights[f"{layer}.neighbours"].t()
            convolution.lin_l.bias.data = weights[f"{layer}.self.bias"]
            convolution.lin_r.weight.data = weights[f"{layer}.self"].t()
        elif model == "gat":
            convolution = nn.GATConv(incoming, outgoing // heads, heads=heads)
            convolution.lin.weight.data, convolution.bias.data = weights[f"{layer}"].t(), weights[f"{layer}.bias"]
            convolution.att_src.data = weights[f"{layer}.source"][None]
            convolution.att_dst.data = weights[f"{layer}.target"][None]
        else:
            inside = [linear(f"{layer}.first", incoming, 12), torch.nn.ReLU(), linear(f"{layer}.second", 12, outgoing)]
            convolution = nn.GINConv(torch.nn.Sequential(*inside))
        made.append(convolution)
    return made


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gat", "gin"])
def test_scores_equal_pyg_layers(model):
    structure = graph()
    ours = backbone(model, structure)
    first, second = pyg_layers(model, {name: w.detach() for name, w in ours.weights.items()})
    ends = edge_index(structure)
    with torch.no_grad():
        theirs = second(torch.relu(first(torch.from_numpy(features()), ends)), ends)
        assert torch.allclose(ours.scores(), theirs, atol=2e-5, rtol=1e-4)


def test_weighted_gcn_equals_pyg():
    structure = graph(weighted=True)
    ours = backbone("gcn", structure)
    first, second = pyg_layers("gcn", {name: w.detach() for name, w in ours.weights.items()})
    ends, weights = edge_index(structure), torch.from_numpy(structure.data)
    with torch.no_grad():
        theirs = second(torch.relu(first(torch.from_numpy(features()), ends, weights)), ends, weights)
        assert torch.allclose(ours.scores(), theirs, atol=2e-5, rtol=1e-4)


def dense_layer(model: str, weights: dict[str, Tensor], layer: int, x: Tensor, ties: Tensor, heads: int) -> Tensor:
    """The layer's formula on a dense weighted matrix."""
    if model == "graphsage":
        mean = ties @ x / ties.sum(1, keepdim=True).clamp_min(1e-30)
        return mean @ weights[f"{layer}.neighbours"] + x @ weights[f"{layer}.self"] + weights[f"{layer}.self.bias"]
    if model == "gin":
        first = torch.relu((x + ties @ x) @ weights[f"{layer}.first"] + weights[f"{layer}.first.bias"])
        return first @ weights[f"{layer}.second"] + weights[f"{layer}.second.bias"]
    looped = ties + torch.eye(N)
    parts = []
    for head, z in enumerate((x @ weights[f"{layer}"]).chunk(heads, dim=1)):
        raw = (z @ weights[f"{layer}.target"][head])[:, None] + (z @ weights[f"{layer}.source"][head])[None, :]
        unnormalised = looped * torch.nn.functional.leaky_relu(raw, 0.2).exp()  # w exp(e) = exp(e + log w)
        parts.append(unnormalised / unnormalised.sum(1, keepdim=True) @ z)
    return torch.cat(parts, 1) + weights[f"{layer}.bias"]


@pytest.mark.parametrize("model", ["graphsage", "gat", "gin"])
def test_weighted_scores_and_gradients_equal_dense_formulas(model):
    structure = graph(seed=5, weighted=True)
    ours = backbone(model, structure)
    copies = {name: w.detach().clone().requires_grad_(True) for name, w in ours.weights.items()}
    ties = torch.from_numpy(structure.toarray())
    hidden = torch.relu(dense_layer(model, copies, 0, torch.from_numpy(features()), ties, heads=3))
    expected = dense_layer(model, copies, 1, hidden, ties, heads=1)
    found = ours.scores()
    assert torch.allclose(found, expected, atol=2e-5, rtol=1e-4)
    target = torch.arange(N) % CLASSES
    loss = torch.nn.functional.cross_entropy
    gradients = torch.autograd.grad(loss(found, target), list(ours.weights.values()))
    wanted = torch.autograd.grad(loss(expected, target), list(copies.values()))
    for name, ours_is, theirs_is in zip(ours.weights, gradients, wanted):
        assert torch.allclose(ours_is, theirs_is, atol=1e-5, rtol=1e-3), name


@pytest.mark.parametrize("model", sorted(BACKBONES))
def test_sparse_and_dense_features_give_the_same_scores(model):
    structure = graph(seed=3, weighted=True)
    with torch.no_grad():
        dense = backbone(model, structure).scores()
        thin = backbone(model, structure, held=sparse.csr_array(features())).scores()
    assert torch.allclose(dense, thin, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("model", sorted(BACKBONES))
@pytest.mark.parametrize("layers", [1, 3])
def test_any_number_of_layers(model, layers):
    scores = backbone(model, graph(), layers=layers).scores()
    assert scores.shape == (N, CLASSES) and torch.isfinite(scores).all()


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gat", "gin"])
def test_without_ties_every_node_speaks_for_itself(model):
    nothing = sparse.csr_array((N, N), dtype=np.float32)
    held = features()
    alone = backbone(model, nothing).scores()
    held[1:] = 7.0  # what the others hold does not matter to node 0
    assert torch.allclose(alone[0], backbone(model, nothing, held=held).scores()[0], atol=1e-6)


def test_the_gradient_of_a_directed_product_uses_the_transpose():
    matrix = sparse.csr_array(np.array([[0, 2, 0], [0, 0, 3]], dtype=np.float32))
    x = torch.ones(3, 1, requires_grad=True)
    product = Operator(matrix)(x)
    assert product[:, 0].tolist() == [2, 3]
    (gradient,) = torch.autograd.grad((product[:, 0] * torch.tensor([1.0, 10.0])).sum(), x)
    assert gradient[:, 0].tolist() == [0, 2, 30]


def test_attention_gradient_on_a_directed_pattern():
    generator = np.random.default_rng(2)
    held = np.triu(generator.uniform(0.5, 2, (6, 6)))
    pattern = Pattern(sparse.csr_array(held))
    log_weight = torch.from_numpy(np.log(sparse.csr_array(held).data).astype(np.float32))
    keep = torch.from_numpy((generator.random(len(log_weight)) < 0.7).astype(np.float32)) * 2
    arguments = [torch.from_numpy(generator.normal(size=s).astype(np.float32)).requires_grad_() for s in (6, 6, (6, 4))]
    found = Attention.apply(pattern, log_weight, keep, *arguments)
    copies = [a.detach().clone().requires_grad_() for a in arguments]
    source, target, z = copies
    raw = target[:, None] + source[None, :]
    scores = torch.from_numpy(held.astype(np.float32)) * torch.nn.functional.leaky_relu(raw, 0.2).exp()
    factors = torch.zeros(6, 6)
    factors[pattern.row, pattern.column] = keep
    expected = (scores / scores.sum(1, keepdim=True) * factors) @ z
    assert torch.allclose(found, expected, atol=1e-6)
    weights = torch.from_numpy(generator.normal(size=(6, 4)).astype(np.float32))
    ours = torch.autograd.grad((found * weights).sum(), arguments)
    theirs = torch.autograd.grad((expected * weights).sum(), copies)
    for one, other in zip(ours, theirs):
        assert torch.allclose(one, other, atol=1e-5)


def test_a_sparse_input_is_aggregated_once_only_on_thick_graphs():
    held = Inputs(sparse.csr_array(features()))
    thin, thick = sparse.eye_array(N, format="csr"), sparse.csr_array(np.ones((N, N)))
    assert held.under(Operator(thin)) is None
    summed = held.under(Operator(thick))
    assert summed is not None and summed.held == pytest.approx(np.ones((N, N)) @ features(), rel=1e-5)
    assert DENSE_BYTES > 4 * N * D


def test_dropout_keeps_the_mean_and_is_off_outside_training():
    settings = NetworkTraining(dropout=0.25)
    made = BACKBONES["mlp"](settings, Inputs(features()), graph(), CLASSES, torch.Generator().manual_seed(0))
    dropped = made.drop(torch.ones(200, 200), torch.Generator().manual_seed(1))
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.75])
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.015)  # five standard errors
    assert torch.equal(made.drop(torch.ones(3, 3), None), torch.ones(3, 3))
