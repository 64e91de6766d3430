"""The two loops on an engine that only writes down which phase it is in."""

from types import SimpleNamespace

from labkit.engine.loop import run_async, run_sync


class Diary:
    """Plans steps 0, 1, 2 and so on; ``gaps`` are turns in which there is nothing to plan."""

    def __init__(self, steps, gaps=()):
        self.lines, self.left, self.gaps, self.turn, self.step = [], steps, gaps, -1, 0
        self.slots = SimpleNamespace(next=lambda: "AB"[(self.step - 1) % 2])

    def plan(self):
        self.turn += 1
        if self.turn in self.gaps or not self.left:
            self.lines.append("plan -")
            return None
        self.left -= 1
        self.step += 1
        self.lines.append(f"plan {self.step - 1}")
        return self.step - 1

    def __getattr__(self, phase):
        def run(slot, batch):
            self.lines.append(f"{phase} {batch}{slot}")
            return [f"tokens of {batch}"]

        return run


def enqueue(step):
    return [f"{phase} {step}{'AB'[step % 2]}" for phase in ("fill", "upload", "compute", "download")]


def test_sync_settles_a_step_before_it_plans_the_next():
    engine = Diary(2)
    assert list(run_sync(engine)) == [["tokens of 0"], ["tokens of 1"]]
    expected = ["plan 0", *enqueue(0), "settle 0A", "plan 1", *enqueue(1), "settle 1B", "plan -"]
    assert engine.lines == expected


def test_async_is_one_step_ahead_from_a_cold_start_to_the_drain():
    engine = Diary(3)
    assert list(run_async(engine)) == [["tokens of 0"], ["tokens of 1"], ["tokens of 2"]]
    assert engine.lines == [
        *("plan 0", *enqueue(0)),  # cold start: nothing to settle
        *("plan 1", *enqueue(1), "settle 0A"),
        *("plan 2", *enqueue(2), "settle 1B"),
        *("plan -", "settle 2A"),  # drain: nothing to plan
        "plan -",
    ]


def test_async_settles_before_it_gives_up_on_a_turn_with_nothing_to_plan():
    """A plan may have to wait for the step in flight; the loop then plans again and starts cold."""
    engine = Diary(2, gaps=(1,))
    assert list(run_async(engine)) == [["tokens of 0"], ["tokens of 1"]]
    assert engine.lines == [
        "plan 0",
        *enqueue(0),
        "plan -",
        "settle 0A",
        "plan 1",
        *enqueue(1),
        "plan -",
        "settle 1B",
        "plan -",
    ]


def test_nothing_to_do():
    for loop in (run_sync, run_async):
        engine = Diary(0)
        assert list(loop(engine)) == []
        assert engine.lines == ["plan -"]
