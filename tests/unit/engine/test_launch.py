"""Which launches a step makes, and when a graph takes their place."""

import pytest

from labkit.device.virtual import VirtualDevice
from labkit.engine.assemble import assemble
from labkit.engine.launch import GraphKey
from labkit.engine.sampling import SamplingParams
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes
from labkit.switches import Switches

SIZES = Sizes(max_rows=4, token_budget=8, block_size=4, num_blocks=16, max_model_len=32)


class Recording(VirtualDevice):
    """Keeps the labels of launches, replays and captures."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def launch(self, fn, stream, **options):
        self.calls.append(options["label"])
        return super().launch(fn, stream, **options)

    def replay(self, graph, stream, work=None):
        self.calls.append(f"replay {graph.name}")
        return super().replay(graph, stream, work)

    def capture(self, name, stream, pool=None):
        self.calls.append(f"capture {name}")
        return super().capture(name, stream, pool)


class TwoBounds(ToyModel):
    def context_bucket(self, context, limit):
        return 8 if context <= 8 else limit


def core_of(model=None, **switches):
    core = assemble(Switches(**switches), SIZES, Recording(), model or ToyModel(), unsafe=True)
    warm_up, core.device.calls = core.device.calls, []
    return core, warm_up


def calls_of_step(core):
    core.device.calls.clear()
    core.step()
    return list(core.device.calls)


@pytest.mark.parametrize(
    ("carry", "decode"), [(False, ["forward", "sample"]), (True, ["carry_over", "forward", "sample"])]
)
def test_eager_steps(carry, decode):
    core, warm_up = core_of(carry_over=carry)
    core.submit([1, 2, 3], SamplingParams(max_new_tokens=4))
    assert warm_up == []
    assert calls_of_step(core) == ["forward", "sample"], "nothing decodes yet"
    assert calls_of_step(core) == decode


def test_warm_up_captures_every_slot_size_and_bound():
    core, warm_up = core_of(TwoBounds(), cuda_graphs=True, double_buffering=True)
    assert [call for call in warm_up if call.startswith("replay")] == []
    keys = {GraphKey(slot, rows, context, False, False) for slot in (0, 1) for rows in (1, 2, 4) for context in (8, 32)}
    assert set(core.launcher.graphs) == keys


def test_a_decode_step_is_one_replay_and_a_prefill_step_none():
    core, _ = core_of(cuda_graphs=True)
    for length in (2, 3, 2):
        core.submit([5] * length, SamplingParams(max_new_tokens=4))
    assert calls_of_step(core) == ["forward", "sample"]
    assert calls_of_step(core) == ["replay graph[A,4]"]


def test_a_new_key_runs_eagerly_once_and_is_then_captured():
    core, _ = core_of(cuda_graphs=True)
    core.submit([5, 6], SamplingParams(max_new_tokens=5, temperature=1.0, logprobs=True))
    calls_of_step(core)
    assert calls_of_step(core) == ["forward", "sample", "capture graph[A,1,random,logprobs]", "forward", "sample"]
    assert calls_of_step(core) == ["replay graph[A,1,random,logprobs]"]
    assert core.launcher.graphs.keys() >= {GraphKey(0, 1, 32, True, True)}


def test_clear_drops_the_graphs():
    core, _ = core_of(cuda_graphs=True)
    core.launcher.clear()
    assert core.launcher.graphs == {}
