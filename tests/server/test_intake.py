"""Intake: what no honest run could send is rejected, with its reason; the last report can stand in."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from agents.privacy.features.laplace import Laplace
from agents.privacy.features.piecewise import Piecewise
from agents.privacy.ties.verification_list import VerificationList
from agents.protocol import Protocol
from agents.report import ReportBatch, join
from server.intake import Intake, Shelf

PROTOCOL = Protocol(
    6, 10, 2, Piecewise(epsilon=1.0, dimensions=2), VerificationList(epsilon=5.0, levels=3), "list-entry", 1, 2.0
)
TOP = PROTOCOL.features.output_range(10)[1]


def batch(features, lists, senders=(0, 1, 2), numbers=None):
    rows = len(senders)
    return ReportBatch(
        np.array(senders),
        sparse.csr_array(np.array(features, dtype=np.float32)),
        sparse.csr_array(np.array(lists, dtype=np.int8)),
        np.zeros((rows, 0)) if numbers is None else np.array(numbers, dtype=float),
    )


def row(*pairs, width=10):
    values = [0.0] * width
    for index, value in pairs:
        values[index] = value
    return values


def test_well_formed_reports_pass():
    accepted, reasons = Intake().check(
        batch(
            [row((0, 1.0)), row((1, TOP), (2, -TOP)), row()], [row((1, 3), width=6), row(width=6), row((0, 1), width=6)]
        ),
        PROTOCOL,
    )
    assert accepted.all() and sum(reasons.values()) == 0


def test_each_fault_has_its_reason_and_its_switch():
    features = [row((0, 1.0), (1, 1.0), (2, 1.0)), row((0, TOP * 1.01)), row((3, 1.0))]
    lists = [row(width=6), row(width=6), row((1, 4), width=6)]
    made = batch(features, lists)
    accepted, reasons = Intake().check(made, PROTOCOL)
    assert not accepted.any()
    assert reasons == {"too many features": 1, "feature out of range": 1, "malformed list": 1}
    for switch, position in (("count", 0), ("range", 1), ("levels", 2)):
        accepted, _ = Intake(**{switch: False}).check(made, PROTOCOL)
        assert accepted.tolist() == [i == position for i in range(3)]


@pytest.mark.parametrize("entry", [(0, 1), (1, -1)])
def test_an_entry_about_oneself_and_a_negative_level_are_malformed(entry):
    made = batch([row()], [row(entry, width=6)], senders=(0,))
    assert Intake().check(made, PROTOCOL)[1]["malformed list"] == 1


def test_numbers_must_be_finite():
    made = batch([row(), row()], [row(width=6)] * 2, senders=(0, 1), numbers=[[1.0], [np.nan]])
    assert Intake().check(made, PROTOCOL)[0].tolist() == [True, False]


def test_an_unbounded_mechanism_still_asks_for_finite_features():
    protocol = replace(PROTOCOL, features=Laplace(epsilon=1.0, dimensions=2))
    made = batch([row((0, 1e6)), row((0, np.inf)), row((1, -np.inf)), row((2, np.nan))], [row(width=6)] * 4, range(4))
    assert Intake().check(made, protocol)[0].tolist() == [True, False, False, False]


def test_the_shelf_remembers_the_last_report_of_the_silent():
    first = batch([row((0, 1.0)), row((1, 1.0))], [row((2, 1), width=6), row((3, 2), width=6)], senders=(0, 1))
    second = batch([row((5, 1.0))], [row((4, 3), width=6)], senders=(1,))
    for keep, senders, levels in ((True, [0, 1], [1, 3]), (False, [1], [3])):
        shelf = Shelf()
        shelf.merge(first, keep)
        merged = shelf.merge(second, keep)
        assert merged.senders.tolist() == senders and merged.lists.data.tolist() == levels


def test_joined_batches_are_in_order_of_sender():
    a = batch([row((0, 1.0))], [row((2, 1), width=6)], senders=(4,))
    b = batch([row((1, 2.0))], [row((3, 2), width=6)], senders=(1,))
    assert join([a, b]).senders.tolist() == [1, 4] and join([a, b]).row(0).feature_values.tolist() == [2.0]
