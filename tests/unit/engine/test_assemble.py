"""Each switch becomes one object, and nothing else looks at it."""

import pytest

from labkit.device.virtual import VirtualDevice
from labkit.engine.assemble import assemble
from labkit.engine.carry_over import CarryOver, HostFeed
from labkit.engine.launch import EagerLauncher, GraphLauncher
from labkit.engine.loop import run_async, run_sync
from labkit.engine.ordering import Events, NoEvents
from labkit.errors import InvalidArgument, InvalidSwitches, UnsafeSwitches
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes
from labkit.switches import Switches, ladder

SIZES = Sizes(max_rows=2, token_budget=8, block_size=4, num_blocks=6, max_model_len=16)


def core_of(switches, **options):
    return assemble(switches, SIZES, VirtualDevice(), ToyModel(), unsafe=True, **options)


def carry_of(core):
    launcher = core.launcher
    return type(launcher.kernels.carry)


@pytest.mark.parametrize(
    ("switch", "part", "off", "on"),
    [
        ("events", lambda core: type(core.order), NoEvents, Events),
        ("lookahead", lambda core: core._new_loop, run_sync, run_async),
        ("double_buffering", lambda core: len(core.slots.slots), 1, 2),
        ("carry_over", carry_of, HostFeed, CarryOver),
        ("cuda_graphs", lambda core: type(core.launcher), EagerLauncher, GraphLauncher),
        ("streams", lambda core: core.non_blocking, False, True),
        ("streams", lambda core: core.slots.slots[0].inputs_host.place, "pageable", "pinned"),
        ("streams", lambda core: len({core.streams.h2d, core.streams.compute, core.streams.d2h}), 1, 3),
    ],
)
def test_a_switch_chooses_one_part(switch, part, off, on):
    assert part(core_of(Switches())) == off
    assert part(core_of(Switches(**{switch: True}))) == on


def test_without_streams_everything_is_on_the_default_stream():
    core = core_of(Switches())
    assert core.streams.compute is core.device.default_stream


def test_the_cache_has_one_block_more_than_the_pool():
    core = core_of(Switches())
    assert [tuple(buffer.tensor.shape) for buffer in core.kv] == [(7, 4), (7, 4)]
    assert {buffer.place for buffer in core.kv} == {"device"}


def test_a_wrong_combination_needs_unsafe():
    with pytest.raises(UnsafeSwitches, match="Wrong without events: Nothing orders"):
        assemble(ladder("streams"), SIZES, VirtualDevice(), ToyModel())
    assert assemble(ladder("streams"), SIZES, VirtualDevice(), ToyModel(), unsafe=True).non_blocking


def test_sizes_that_the_model_cannot_serve():
    with pytest.raises(InvalidArgument, match="max_model_len=16: at most 8 for toy"):
        assemble(Switches(), SIZES, VirtualDevice(), ToyModel(max_model_len=8))


class TwoForms(ToyModel):
    """A toy that has a compiled form, which remembers its block size."""

    block_size = 0

    def compiled(self):
        model = TwoForms(self.vocab_size, self.max_model_len)
        model.name = "compiled toy"
        return model

    def for_block_size(self, block_size):
        self.block_size = block_size
        return self


@pytest.mark.parametrize(("compiled", "name"), [(False, "toy"), (True, "compiled toy")])
def test_compiled_asks_the_model_for_its_compiled_form(compiled, name):
    model = assemble(Switches(compiled=compiled), SIZES, VirtualDevice(), TwoForms()).model
    assert (model.name, model.block_size) == (name, SIZES.block_size)


def test_a_model_with_nothing_to_compile_runs_as_it_is():
    assert type(core_of(Switches(compiled=True)).model) is ToyModel


def test_an_unknown_wait_to_drop():
    with pytest.raises(InvalidSwitches, match="dropped wait='h2d': the waits are compute_waits_h2d"):
        core_of(ladder("events"), dropped_waits=["h2d"])
