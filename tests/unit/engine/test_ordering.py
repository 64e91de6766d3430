"""Records and waits between the streams, and what dropping one of them does to the tokens."""

from dataclasses import replace

import pytest

from labkit.device.costs import Link, load_profile
from labkit.device.virtual import VirtualDevice
from labkit.engine.ordering import WAITS, Events, NoEvents, Streams
from labkit.engine.slots import SlotSet
from labkit.entry import Engine
from labkit.errors import InvalidSwitches
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes

SIZES = Sizes(max_rows=2, token_budget=8, block_size=4, num_blocks=16, max_model_len=32)


class Recording(VirtualDevice):
    def __init__(self):
        super().__init__()
        self.calls = []

    def record(self, event, stream):
        self.calls.append(("record", event.name, stream.name))
        super().record(event, stream)

    def wait(self, stream, event):
        self.calls.append(("wait", event.name, stream.name))
        super().wait(stream, event)

    def synchronize(self, target=None):
        self.calls.append(("synchronize", target.name))
        super().synchronize(target)


def one_step(dropped=()):
    device = Recording()
    streams = Streams(device.stream("h2d"), device.stream("compute"), device.stream("d2h"))
    slot = SlotSet(device, SIZES, count=1, host_place="pinned").slots[0]
    order = Events(streams, frozenset(dropped))
    for call in ("uploaded", "before_compute", "computed", "before_download", "downloaded", "before_read"):
        getattr(order, call)(slot)
    return device.calls


FULL = [
    ("record", "h2d_done[A]", "h2d"),
    ("wait", "h2d_done[A]", "compute"),
    ("record", "compute_done[A]", "compute"),
    ("wait", "compute_done[A]", "d2h"),
    ("record", "d2h_done[A]", "d2h"),
    ("synchronize", "d2h_done[A]"),
]


def test_a_step_records_three_events_and_waits_for_each_once():
    assert one_step() == FULL


@pytest.mark.parametrize(("dropped", "place"), list(zip(WAITS, (1, 3, 5), strict=True)))
def test_a_dropped_wait_is_left_out_and_nothing_else(dropped, place):
    assert one_step([dropped]) == FULL[:place] + FULL[place + 1 :]


def test_no_events_does_nothing():
    assert [NoEvents().before_compute(None), NoEvents().uploaded(None), NoEvents().before_read(None)] == [None] * 3


def test_an_unknown_wait():
    with pytest.raises(InvalidSwitches, match="dropped wait='x': the waits are compute_waits_h2d, d2h_waits_compute"):
        Events(None, frozenset({"x"}))


SLOW_UPLOADS = replace(load_profile("h200-8b"), h2d=Link(latency_ns=5_000_000))


def tokens(**options):
    with Engine(ToyModel(), sizes=SIZES, switches="events", profile=SLOW_UPLOADS, trace=False, **options) as engine:
        return engine.generate([[1, 2, 3], [4, 5]], max_new_tokens=8).tokens


@pytest.mark.parametrize("dropped", WAITS)
def test_without_any_one_of_the_waits_the_synchronous_tokens_are_wrong(dropped):
    """Where uploads are slow. Where one is quicker than the launch, a missing wait for it goes unnoticed."""
    assert tokens(dropped_waits=[dropped]) != tokens()
