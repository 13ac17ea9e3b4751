"""The collection window on a SimPy clock."""

import math

import numpy as np
import pytest
import simpy

from sim.kernel.component import build
from sim.kernel.network import ConstantLatency, ExponentialLatency, LognormalLatency, Network, Stragglers, collect
from sim.kernel.randomness import Streams


def window(journeys, deadline, initial=0.0):
    environment = simpy.Environment(initial_time=initial)
    return environment.run(until=environment.process(collect(environment, np.array(journeys, dtype=float), deadline)))


def test_the_window_closes_when_everybody_has_reported():
    closed = window([0.3, 0.1, 0.2], 10.0)
    assert closed.arrived == [1, 2, 0] and closed.closed == pytest.approx(0.3)


def test_a_lost_report_keeps_it_open_until_the_deadline_and_late_ones_are_dropped():
    closed = window([0.3, math.inf, 4.0], 2.0, initial=5.0)
    assert closed.arrived == [0] and closed.closed == pytest.approx(7.0)


def test_a_report_that_arrives_exactly_at_the_deadline_counts():
    assert window([2.0, 0.5], 2.0).arrived == [1, 0]
    assert window([2.0, math.inf], 2.0).arrived == [0]


def test_nobody_expected_closes_at_once():
    assert window([], 3.0).closed == 0.0


def test_more_users_shift_nobodys_journey():
    network, streams = Network(loss=0.1, stragglers=Stragglers(share=0.2)), Streams(4)
    few = network.journeys(np.arange(50), streams, 16)
    many = network.journeys(np.arange(80), streams, 16)
    assert np.array_equal(few, many[:50])
    assert not np.array_equal(few, network.journeys(np.arange(50), streams, 17))


def test_stragglers_are_the_same_users_every_round_and_slower():
    network = Network(latency=ConstantLatency(seconds=1.0), stragglers=Stragglers(share=0.3, slowdown=7.0))
    first, second = (network.journeys(np.arange(400), Streams(1), epoch) for epoch in (16, 32))
    assert set(first) == {1.0, 7.0} and np.array_equal(first, second)
    assert 80 < (first == 7.0).sum() < 160


@pytest.mark.parametrize(
    "latency, median",
    [
        (LognormalLatency(median=0.2, sigma=0.5), 0.2),
        (ExponentialLatency(mean=1.0), math.log(2)),
        (ConstantLatency(), 0.2),
    ],
)
def test_latencies_have_their_median(latency, median):
    sample = latency.sample(20_000, np.random.default_rng(1))
    assert np.median(sample) == pytest.approx(median, rel=0.03) and (sample >= 0).all()


def test_an_omitted_kind_means_the_usual_one():
    problems = []
    made = build(Network, {"latency": {"median": 0.5}}, (), problems)
    assert not problems and made.latency == LognormalLatency(median=0.5)
