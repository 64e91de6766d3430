"""The front door: building an engine by names, and the defaults. Requests are tested in tests/engine."""

import pytest
import torch

import labkit
from labkit import Engine, ladder
from labkit.device.costs import Costs, load_profile
from labkit.device.traced import TracedDevice
from labkit.device.virtual import VirtualDevice
from labkit.engine.sampling import SamplingParams
from labkit.entry import default_sizes, open_device
from labkit.errors import InvalidArgument, InvalidSwitches, UnsafeSwitches
from labkit.model.toy import ToyModel


def test_the_lines_of_the_readme():
    with Engine.from_pretrained("toy", switches=ladder("carry_over"), device="virtual") as engine:
        run = engine.generate(["Name three rivers.", "And a lake."], max_new_tokens=6)
    assert [len(tokens) for tokens in run.tokens] == [6, 6]
    assert run.switches == ladder("carry_over")
    assert run.trace.meta["model"] == "toy"
    assert run.trace.meta["source"] == "virtual"


@pytest.mark.parametrize("switches", ["events", 2, ladder(2)])
def test_switches_by_name_number_or_themselves(switches):
    with Engine(ToyModel(), switches=switches) as engine:
        assert engine.switches == ladder("events")


def test_wrong_switches():
    with pytest.raises(InvalidSwitches, match="rung='event'"):
        Engine(ToyModel(), switches="event")
    with pytest.raises(UnsafeSwitches):
        Engine(ToyModel(), switches="streams")
    with Engine(ToyModel(), switches="streams", unsafe=True) as engine:
        assert len(engine.generate([[1]], max_new_tokens=2).tokens[0]) == 2


def test_devices_by_name_or_themselves():
    assert isinstance(open_device("virtual"), VirtualDevice)
    assert open_device("virtual", "article-8b").name == "virtual (article-8b)"
    assert open_device("virtual", Costs(load_profile("article-8b"))).name == "virtual (article-8b)"
    mine = VirtualDevice()
    assert open_device(mine) is mine
    with pytest.raises(InvalidArgument, match='device=\'tpu\': "virtual", "cuda", or a Device'):
        open_device("tpu")
    with pytest.raises(InvalidArgument, match="profile='fast': "):
        open_device("virtual", "fast")


def test_one_device_serves_several_engines_one_after_the_other():
    device, runs = VirtualDevice(), []
    for rung in (0, 5, 6):
        with Engine(ToyModel(), switches=rung, device=device) as engine:
            runs.append(engine.generate([[1, 2, 3]], max_new_tokens=6).tokens)
    assert runs[0] == runs[1] == runs[2]


def test_an_unknown_model():
    with pytest.raises(InvalidArgument, match="no-such-model"):
        Engine.from_pretrained("./no-such-model")


def test_without_a_trace_nothing_is_recorded():
    with Engine(ToyModel(), trace=False) as engine:
        assert not isinstance(engine.device, TracedDevice)
        run = engine.generate([[1]], max_new_tokens=2)
        assert run.trace is None
        assert engine.take_trace() is None


def test_a_run_s_trace_holds_that_run_alone():
    with Engine(ToyModel(), switches="cuda_graphs") as engine:
        first, second = (engine.generate([[1, 2]], max_new_tokens=4) for _ in range(2))
    assert min(span.step for span in second.trace.spans if span.step >= 0) == first.stats["steps"]
    assert [span.kind for span in first.trace.spans] == [span.kind for span in second.trace.spans]
    assert not any("capture" in span.name for span in first.trace.spans), "nor the warm-up"


def test_a_trace_of_steps_by_hand():
    with Engine(ToyModel()) as engine:
        engine.submit([1, 2], max_new_tokens=3)
        while engine.busy:
            engine.step()
        assert engine.take_trace().steps >= 3
        assert len(engine.take_trace()) == 0


def test_default_sizes_hold_every_row_at_full_length():
    sizes = default_sizes(ToyModel(max_model_len=100))
    assert sizes.max_model_len == 100
    assert sizes.num_blocks == sizes.max_rows * sizes.blocks_per_request
    assert default_sizes(ToyModel(max_model_len=10**6)).max_model_len == 2048
    changed = default_sizes(ToyModel(), max_rows=3, block_size=8, max_model_len=64)
    assert (changed.max_rows, changed.block_size, changed.num_blocks) == (3, 8, 24)
    assert default_sizes(ToyModel(), num_blocks=5).num_blocks == 5


def test_an_unknown_size():
    with pytest.raises(InvalidArgument, match="rows=3: the sizes are max_rows, token_budget, block_size"):
        default_sizes(ToyModel(), rows=3)


def test_sizes_beyond_the_model():
    with pytest.raises(InvalidArgument, match="max_model_len=2048: at most 50 for toy"):
        Engine(ToyModel(max_model_len=50), sizes=labkit.Sizes())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "toy"}, r"model='toy': a Model; one by name is Engine.from_pretrained"),
        ({"sizes": 32}, "sizes=32: Sizes"),
        ({"device": None}, "device=None: "),
        ({"profile": 3}, "profile=3: a Profile, its name"),
        ({"dropped_waits": "host_waits_d2h"}, "dropped_waits='host_waits_d2h': a list"),
    ],
)
def test_what_is_no_part_of_an_engine_is_named(changes, message):
    with pytest.raises(InvalidArgument, match=message):
        Engine(**{"model": ToyModel(), **changes})


def test_a_run_is_the_same_object_of_numbers_every_time():
    def run():
        with Engine(ToyModel(), switches="cuda_graphs") as engine:
            return engine.generate([[1, 2, 3]] * 3, SamplingParams(max_new_tokens=5))

    first, second = run(), run()
    assert first.tokens == second.tokens
    assert first.trace == second.trace


def test_the_default_dtype_of_torch_is_left_alone():
    before = torch.get_default_dtype()
    with Engine.from_pretrained("toy") as engine:
        engine.generate(["x"], max_new_tokens=1)
    assert torch.get_default_dtype() == before
