"""Sparse operators for torch: constant matrices with their transposes, and attention over a fixed pattern."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

DENSE_BYTES = 1 << 28
"""Largest first-layer input that is aggregated once and held dense."""


def csr_tensor(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A torch CSR tensor. The one place where torch's beta notice is silenced."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)


def to_csr(matrix: Any) -> Tensor:
    """A scipy matrix as a float32 torch CSR tensor with int64 indices."""
    held: Any = sparse.csr_array(matrix)
    held.sort_indices()
    indptr, indices = (torch.from_numpy(part.astype(np.int64)) for part in (held.indptr, held.indices))
    return csr_tensor(indptr, indices, torch.from_numpy(held.data.astype(np.float32)), held.shape)


class _Product(torch.autograd.Function):
    """matrix @ x for a constant sparse matrix whose transpose is at hand (torch would build it every time)."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
        ctx.transposed = transposed
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.transposed @ gradients[0].contiguous()


class Operator:
    """A constant sparse linear map, with its transpose for the backward pass."""

    def __init__(self, matrix: Any) -> None:
        held: Any = sparse.csr_array(matrix, dtype=np.float32)
        self.scipy = held
        self.matrix = to_csr(held)
        self.transposed = to_csr(held.T)

    def __call__(self, x: Tensor) -> Tensor:
        """matrix @ x, differentiable in x."""
        return _Product.apply(self.matrix, self.transposed, x)


class Inputs:
    """First-layer input (n, d): dense, or sparse (public 0/1 features) and multiplied as such.

    Columns of zeros, which regularised private features have many of, are left out of the products.
    """

    def __init__(self, features: Any) -> None:
        self.is_sparse = sparse.issparse(features)
        held: Any = sparse.csr_array(features, dtype=np.float32) if self.is_sparse else np.asarray(features, np.float32)
        self.held = held
        self.width: int = held.shape[1]
        if self.is_sparse:
            self._times: Any = Operator(held)
            return
        used = np.flatnonzero(held.any(axis=0))
        self._used = torch.from_numpy(used) if used.size < self.width else None
        self._times = torch.from_numpy(self.held[:, used]).clone(memory_format=torch.contiguous_format).matmul

    def __matmul__(self, weight: Tensor) -> Tensor:
        if self.is_sparse or self._used is None:
            return self._times(weight)
        return self._times(weight[self._used])

    def under(self, operator: Operator) -> Inputs | None:
        """operator @ features, computed once for all epochs; None where repeating the product is cheaper.

        The first layer's input never changes, so neither does its neighbourhood sum. A sparse input becomes dense by
        it, which pays once the graph holds many ties: a dense product handles about eight times as many numbers a
        second as a sparse one.
        """
        if self.is_sparse:
            numbers = self.held.shape[0] * self.width
            if 4 * numbers > DENSE_BYTES or numbers > 8 * operator.scipy.nnz:
                return None
        product: Any = operator.scipy @ self.held
        return Inputs(product.toarray() if self.is_sparse else product)


class Pattern:
    """The places of a sparse matrix, by row and (through a permutation) by column."""

    def __init__(self, matrix: Any) -> None:
        held: Any = sparse.csr_array(matrix)
        held.sort_indices()
        self.shape: tuple[int, int] = held.shape
        self.indptr = torch.from_numpy(held.indptr.astype(np.int64))
        self.column = torch.from_numpy(held.indices.astype(np.int64))
        self.row = torch.repeat_interleave(torch.arange(held.shape[0]), self.indptr.diff())
        self.by_column = torch.from_numpy(np.argsort(held.indices, kind="stable"))
        self.turned_column = self.row[self.by_column]
        counts = np.bincount(held.indices, minlength=held.shape[1])
        self.turned_indptr = torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

    def matrix(self, values: Tensor) -> Tensor:
        """The matrix with these values, row-major."""
        return csr_tensor(self.indptr, self.column, values, self.shape)

    def transposed(self, values: Tensor) -> Tensor:
        """Its transpose."""
        turned = (self.shape[1], self.shape[0])
        return csr_tensor(self.turned_indptr, self.turned_column, values[self.by_column], turned)

    def row_sums(self, values: Tensor) -> Tensor:
        """Sum of the values of every row; no row may be empty."""
        return torch.segment_reduce(values, "sum", offsets=self.indptr)

    def column_sums(self, values: Tensor) -> Tensor:
        """Sum of the values of every column; no column may be empty."""
        return torch.segment_reduce(values[self.by_column], "sum", offsets=self.turned_indptr)

    def row_softmax(self, values: Tensor) -> Tensor:
        """exp(value) over its row's sum, safe for large values."""
        top = torch.segment_reduce(values, "max", offsets=self.indptr)
        raised = (values - top[self.row]).exp_()
        return raised.div_(self.row_sums(raised)[self.row])


class Attention(torch.autograd.Function):
    """One head of graph attention over a pattern without empty rows or columns.

    out_i = sum_j keep_ij alpha_ij z_j with alpha_i. = softmax over j of (leaky(target_i + source_j) + log w_ij), slope
    0.2. Arguments: pattern, log weights (m,), keep (m,) or None, source (n,), target (n,), z (n, f). The backward pass
    is written out because it needs products at the pattern's places only, never an (m, f) array.
    """

    SLOPE = 0.2

    @staticmethod
    def forward(
        ctx: Any, pattern: Pattern, log_weight: Tensor, keep: Tensor | None, source: Tensor, target: Tensor, z: Tensor
    ) -> Tensor:
        raw = target[pattern.row] + source[pattern.column]
        alpha = pattern.row_softmax(torch.nn.functional.leaky_relu(raw, Attention.SLOPE) + log_weight)
        used = alpha if keep is None else alpha * keep
        ctx.pattern, ctx.keep = pattern, keep
        ctx.save_for_backward(raw, alpha, used, z)
        return pattern.matrix(used) @ z

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None, Tensor, Tensor, Tensor]:
        pattern, keep = ctx.pattern, ctx.keep
        raw, alpha, used, z = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        places = pattern.matrix(torch.zeros_like(used))
        to_alpha = torch.sparse.sampled_addmm(places, gradient, z.t().contiguous(), beta=0.0).values()
        if keep is not None:
            to_alpha = to_alpha * keep
        weighted = alpha * to_alpha
        to_raw = weighted - alpha * pattern.row_sums(weighted)[pattern.row]
        to_raw = torch.where(raw > 0, to_raw, Attention.SLOPE * to_raw)
        to_z = pattern.transposed(used) @ gradient
        return None, None, None, pattern.column_sums(to_raw), pattern.row_sums(to_raw), to_z
