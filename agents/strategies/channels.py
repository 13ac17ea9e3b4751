"""How claims leave the device: through the protocol's own client, verbatim, or verbatim under camouflage."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from agents.privacy.ties import TieProtocol, TieReports
from agents.protocol import RoundCall
from agents.strategies.base import ClaimStrategy
from sim.kernel.randomness import Streams


def send(
    claims: ClaimStrategy,
    intended: sparse.csr_array,
    senders: np.ndarray,
    victims: np.ndarray,
    call: RoundCall,
    streams: Streams,
    secret: Streams,
) -> TieReports:
    """What `senders` (k,) report in one phase, given what they intend, (k, N) levels. Each row depends on its own
    intention, its sender and the coalition's `victims` alone.

    `streams` is the run's randomness, which the protocol's client draws from; `secret` is the coalition's.
    """
    ties = call.protocol.ties
    if claims.channel == "compliant":
        return ties.encode(intended, senders, streams, call)
    plain = ties.verbatim(intended, senders, call)
    if claims.channel == "bypass":
        return plain
    # Numbers are those of the claims: in an honest report they do not count the noise of its list either.
    noisy = camouflaged(claims, ties, intended, senders, victims, call.epoch, secret)
    return TieReports(ties.verbatim(noisy, senders, call).lists, plain.numbers)


def camouflaged(
    claims: ClaimStrategy,
    ties: TieProtocol,
    intended: sparse.csr_array,
    senders: np.ndarray,
    victims: np.ndarray,
    epoch: int,
    secret: Streams,
) -> sparse.csr_array:
    """`intended` plus spurious entries, as many as randomised response makes on average out of the entries that are
    zero: round(q0 x zero entries) in each row. They go to other members' victims first, then to anybody.
    """
    everybody = np.arange(intended.shape[1])
    rows = []
    for position, sender in enumerate(senders.tolist()):
        random = secret.generator("camouflage", ident=sender, epoch=epoch)
        own = slice(*intended.indptr[position : position + 2])
        free = ties.speaks_for(np.full(len(everybody), sender), everybody)
        free[intended.indices[own]] = False
        free[sender] = False
        wanted = round(ties.false_positive * np.count_nonzero(free))
        first = victims[free[victims]]
        free[first] = False
        chosen = np.concatenate([random.permutation(first), random.permutation(np.flatnonzero(free))])[:wanted]
        levels = np.full(wanted, ties.levels)
        if claims.spurious == "uniform":
            levels = random.integers(1, ties.levels + 1, wanted)
        columns = np.concatenate([intended.indices[own], chosen])
        order = np.argsort(columns, kind="stable")
        values = np.concatenate([intended.data[own], levels]).astype(np.int8)
        rows.append((columns[order], values[order]))
    return stack(rows, intended.shape[1])


def stack(rows: list[tuple[np.ndarray, np.ndarray]], columns: int) -> sparse.csr_array:
    """Level lists from (ascending ids, levels), one pair of arrays a row."""
    indptr = np.cumsum([0, *(len(ids) for ids, _ in rows)])
    indices = np.concatenate([np.empty(0, dtype=np.int64), *(ids for ids, _ in rows)])
    data = np.concatenate([np.empty(0, dtype=np.int8), *(levels for _, levels in rows)])
    return sparse.csr_array((data, indices, indptr), shape=(len(rows), columns))
