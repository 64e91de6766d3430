"""Where asynchrony pays, said in a sentence, and a host with more to do."""

import pytest

from labkit.bench.decode import Decode, Prefilled
from labkit.bench.gain import BusyHost, GainPoint, crossover
from labkit.model.toy import ToyModel
from labkit.switches import ladder


def points(**gains):
    return [GainPoint(int(name[1:]), 100.0, 100 - gain) for name, gain in gains.items()]


def test_a_gain_is_a_share_of_the_synchronous_step():
    assert GainPoint(1, 100, 80).gain == pytest.approx(0.2)
    assert GainPoint(1, 100, 104).to_dict()["gain"] == pytest.approx(-0.04)


def test_the_crossover_is_named():
    text = crossover("8b", points(b1=0, b2=1, b4=3, b8=9, b16=5, b32=1))
    assert (
        text
        == "8b: asynchrony saves 2% of a step or more at batch 4 to 16, and less elsewhere (at most 9.0%, at batch 8)."
    )


def test_two_stretches_are_both_named():
    assert "at batch 1 and 4 to 8," in crossover("x", points(b1=5, b2=0, b4=3, b8=9, b16=0))


def test_always_and_never():
    assert "pays at every batch size (at most 9.0%, at batch 2; least 3.0%, at batch 1)" in crossover(
        "x", points(b1=3, b2=9)
    )
    assert "less than 2% of a step at every batch size (at most 1.0%, at batch 2)" in crossover(
        "x", points(b1=-3, b2=1)
    )


@pytest.mark.parametrize(("rung", "hidden"), [("events", False), ("carry_over", True)])
def test_a_busy_host_costs_a_synchronous_step_and_hides_in_an_asynchronous_one(rig, rung, hidden):
    def step_ns(*observers):
        switches = ladder(rung).with_(cuda_graphs=True)
        model = Prefilled(ToyModel(), 16)
        with Decode(model, switches, rig.device, batch=2, longest=200, block_size=16, observers=observers) as decode:
            return decode.steady(100, steps=5, blocks=2).ns

    plain, busy = step_ns(), step_ns(BusyHost(rig.device, 700_000))
    assert busy - plain == pytest.approx(0 if hidden else 700_000, abs=100)


class Ticking:
    """A clock that moves by itself, as a real host's does."""

    name = "cuda"

    def __init__(self):
        self.now = 0

    def now_ns(self):
        self.now += 7
        return self.now


def test_a_real_host_spins_until_the_time_is_over():
    device = Ticking()
    BusyHost(device, 100).planned(None, None)
    assert 100 <= device.now < 130
