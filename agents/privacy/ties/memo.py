"""Memoized noise of reports that answer with a whole list at once, rather than entry by entry."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from sim.kernel.randomness import digest64

if TYPE_CHECKING:
    from agents.protocol import RoundCall


def row_epochs(truth: sparse.csr_array, call: RoundCall, question: np.ndarray | None = None) -> np.ndarray:
    """(k,) uint64: which perturbation each row of `truth` belongs to.

    The round's epoch, or, when noise is memoized, a digest of the held list and of the public `question` about it (such
    as a grouping): a list held before gets its old answer, and a list that moved a wholly new one. Where one noisy
    number depends on the whole list, noise that is kept entry by entry would answer one question twice, so what is
    memoized, and what a ledger has to count, is the list.
    """
    rows = truth.shape[0]
    if not call.memoized:
        return np.full(rows, call.epoch, dtype=np.uint64)
    asked = np.array([0 if question is None else digest64(np.asarray(question, dtype=np.int64))], dtype=np.uint64)
    starts, partners = truth.indptr, truth.indices.astype(np.uint64)
    held = [digest64(np.concatenate([asked, partners[a:b]])) for a, b in pairwise(starts)]
    return np.array(held, dtype=np.uint64)
