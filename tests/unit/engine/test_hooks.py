"""Observers: told what they ask for, in order, and nobody is asked for more."""

import pytest

from labkit.engine.assemble import assemble
from labkit.engine.hooks import METHODS, Hooks
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine, default_sizes, open_device
from labkit.errors import EngineFault, InvalidArgument
from labkit.model.toy import ToyModel
from labkit.switches import ladder

PARAMS = SamplingParams(max_new_tokens=3, eos_token_ids=())


class Diary:
    def __init__(self):
        self.lines = []

    def planned(self, batch, scheduler):
        assert scheduler.steps == batch.step + 1
        self.lines.append(("planned", batch.step))

    def filled(self, slot, batch):
        assert slot.host.seq_lens[: batch.rows].tolist() == [
            start + count for start, count in zip(batch.starts, batch.counts, strict=True)
        ]
        self.lines.append(("filled", batch.step))

    def settled(self, slot, batch, tokens):
        assert len(tokens) == batch.rows
        self.lines.append(("settled", batch.step))


class OnlyDropped:
    def __init__(self):
        self.times = 0

    def dropped(self):
        self.times += 1


@pytest.mark.parametrize(
    ("rung", "order"),
    [
        (0, ["planned 0", "filled 0", "settled 0", "planned 1", "filled 1", "settled 1"]),
        (5, ["planned 0", "filled 0", "planned 1", "filled 1", "settled 0", "planned 2"]),
    ],
)
def test_an_observer_hears_of_each_step_in_the_loop_s_order(rung, order):
    diary = Diary()
    with Engine(ToyModel(), switches=rung, observers=[diary]) as engine:
        engine.generate([[1, 2, 3]], PARAMS)
    assert [f"{what} {step}" for what, step in diary.lines][:6] == order
    assert [what for what, _ in diary.lines].count("settled") == 3


def test_observers_change_no_token_and_no_virtual_time():
    def run(**options):
        with Engine(ToyModel(), **options) as engine:
            return engine.generate([[1, 2, 3], [4, 5]], PARAMS)

    seen, unseen = run(observers=[Diary()]), run()
    assert seen.tokens == unseen.tokens
    assert seen.trace == unseen.trace


def test_without_a_trace_an_observer_is_told_all_the_same():
    diary = Diary()
    with Engine(ToyModel(), trace=False, observers=[diary]) as engine:
        engine.generate([[1, 2, 3]], PARAMS)
    assert ("settled", 2) in diary.lines


def test_a_fault_drops_the_steps_in_flight_and_says_so():
    watcher, model = OnlyDropped(), ToyModel()

    def broken(*_):
        raise RuntimeError("broken")

    with Engine(model, switches=0, observers=[watcher]) as engine:
        vars(engine.core.launcher)["run"] = broken
        with pytest.raises(EngineFault, match="broken"):
            engine.generate([[1, 2, 3]], PARAMS)
    assert watcher.times == 1


def test_an_object_without_any_of_the_methods_is_refused():
    class Misspelt:
        def plannned(self, batch, scheduler): ...

    with pytest.raises(InvalidArgument, match=r"observers.*planned, filled, settled, dropped"):
        Hooks([Misspelt()])


def test_an_engine_without_observers_has_nothing_to_call():
    model = ToyModel()
    core = assemble(ladder(0), default_sizes(model), open_device("virtual"), model)
    assert [getattr(core._hooks, name) for name in METHODS] == [()] * 4
